"""Apps and stand-ins for cut sweeps."""

import asyncio
from collections.abc import Callable
from typing import Any

from platform_sim.lab.sweep.app_subject import AppSubject
from platform_sim.lab.sweep.asking import SweptRequest
from platform_sim.lab.sweep.places import Place
from platform_sim.lab.sweep.trial import Cuts, Finding, Trial
from tests.support.asgi import respond

__all__ = ["ORDER", "ScriptedSubject", "place", "plain_app", "subject_of"]

ORDER = SweptRequest.of("POST /orders", data={"id": "o-1"})


def place(line: int = 1, **more: Any) -> Place:
    """Return a place in a file."""
    fields: dict[str, Any] = {"file": "app.py", "line": line, "function": "f", "task": "t"}
    return Place(**(fields | more))


def plain_app(after: Callable[[Any], Any] | None = None, *, status: int = 202) -> Any:
    """Return an app that sleeps, answers, and does what follows."""

    async def app(scope: Any, _receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            raise RuntimeError("no lifespan here")
        await asyncio.sleep(0.1)
        await respond(send, status=status)
        if after is not None:
            await after(scope)

    return app


def subject_of(make: Callable[[], Any], **more: Any) -> AppSubject:
    """Return an app as a subject."""
    fields: dict[str, Any] = {"title": "an app", "make": make, "request": ORDER}
    return AppSubject(**(fields | more))


class ScriptedSubject:
    """A subject whose trials are computed, not run.

    Args:
        wrong: Says what is wrong after a cut.
        lines: The lines the request passes.
        redrive: How many resumptions redrive has after a cut.
    """

    title = "a script"
    seed = 7
    has_redrive = True
    if_not_acknowledged: str | None = None

    def __init__(
        self,
        wrong: Callable[[Cuts], tuple[Finding, ...]] = lambda _: (),
        *,
        lines: tuple[int, ...] = (1, 2, 3),
        redrive: int = 2,
    ) -> None:
        self.asked: list[Cuts] = []
        self.wrong = wrong
        self.lines = lines
        self.redrive = redrive

    def run(self, cuts: Cuts) -> Trial:
        """Return the trial."""
        self.asked.append(cuts)
        at = cuts.request_at
        was_cut = at is not None and at <= len(self.lines)
        redrive_cut = cuts.redrive_at is not None and cuts.redrive_at <= self.redrive
        return Trial(
            resumptions=len(self.lines) if at is None else min(at, len(self.lines)),
            redrive_resumptions=self.redrive if was_cut else 0,
            place=place(self.lines[at - 1]) if at is not None and was_cut else None,
            redrive_place=place(99, task="the redrive run") if redrive_cut else None,
            places=tuple(place(line) for line in self.lines) if cuts.recording else (),
            findings=self.wrong(cuts),
        )
