"""The stage of a trial of any ASGI app: the app is served, asked, cut, redriven, and looked at.

Rules: each app is served under the profile, with its start-up run; its shutdown runs when the trial
is over, so no check profits from it. After the answer or the cut the world goes on for a while.
Then redrive, if there is one, is run as often as is asked; a run that is cut does not count.

Not here: the event loop (`loop`), what is judged (`check`).
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextvars import copy_context
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from platform_sim.lab.sweep.asking import Answer, Asking, SweptRequest
from platform_sim.lab.sweep.cutter import Cutter
from platform_sim.lab.sweep.errors import BadSweep
from platform_sim.lab.sweep.kill import kill_gate, kill_request
from platform_sim.lab.sweep.outside import CURRENT_OUTSIDE, OutsideWorld
from platform_sim.lab.sweep.places import Code, Place
from platform_sim.lab.sweep.trial import Cuts, Finding, Trial
from platform_sim.lifetime.births import CURRENT_GATE, mind_births
from platform_sim.lifetime.emulator import App, Emulator
from platform_sim.lifetime.gate import Gate
from platform_sim.lifetime.invocation import Invocation
from platform_sim.lifetime.profile import Profile
from platform_sim.view.event import Event, EventKind

__all__ = ["DEFAULT_AFTER_S", "DEFAULT_REDRIVE_RUNS", "Aftermath", "Redrive", "Stage"]

DEFAULT_AFTER_S = 60.0
"""Virtual seconds between the answer, or the cut, and what comes next."""

DEFAULT_REDRIVE_RUNS = 3
"""How often redrive runs after the request."""

_SHUTDOWN_S = 10.0

Redrive = Callable[..., Awaitable[object]]
"""Finishes what was cut; is given the app if it takes an argument."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Aftermath:
    """What there is to see when everything is at rest; a check is given this.

    Attributes:
        app: The app, as it is now.
        answer: What the client got.
        outside: What reached the world outside.
        cut: Where the request was cut, or None.
        unfinished: The work that the cut stopped before its end.
        cut_by_platform: What the platform itself cut, in words.
    """

    app: Any
    answer: Answer
    outside: OutsideWorld
    cut: Place | None
    unfinished: tuple[Place, ...]
    cut_by_platform: tuple[str, ...]

    @property
    def acknowledged(self) -> bool:
        """Whether the client got a whole 2xx."""
        return self.answer.acknowledged


class Stage:
    """One trial of one or more apps, on the running event loop.

    Args:
        cuts: Where it is cut.
        profile: What the apps are served under.
        code: Names the places.
        after_s: Virtual seconds between the answer, or the cut, and what comes next.
        redrive_runs: How often redrive runs.
    """

    def __init__(
        self,
        cuts: Cuts,
        *,
        profile: Profile,
        code: Code,
        after_s: float = DEFAULT_AFTER_S,
        redrive_runs: int = DEFAULT_REDRIVE_RUNS,
    ) -> None:
        self.outside = OutsideWorld()
        self._request = Cutter(code, at=cuts.request_at, recording=cuts.recording)
        self._redrive = Cutter(code, at=cuts.redrive_at)
        self._profile = profile
        self._after_s = after_s
        self._redrive_runs = redrive_runs
        self._served: dict[int, _Served] = {}
        self._platform_cuts: list[str] = []
        self._answers: list[Answer] = []
        self._raised: list[str] = []

    def observe(self, event: Event) -> None:
        """Note what the platform itself cuts, and what the app raises."""
        if event.kind is EventKind.CUT and event.fields["reason"] != "killed":
            self._platform_cuts.append(event.fields["text"])
        if event.kind in {EventKind.APP_FAILED, EventKind.TASK_FAILED}:
            self._raised.append(event.fields["error"])

    async def ask(
        self, app: App, request: SweptRequest, *, redrive: Redrive | None = None
    ) -> Aftermath:
        """Send one request to an app, and let everything come to rest.

        Raises:
            BadSweep: The app refuses to start.
        """
        CURRENT_OUTSIDE.set(self.outside)
        served = self._served.get(id(app))
        if served is None:
            served = self._served[id(app)] = _Served(app, self._emulator(app))
            await served.start()
        cut_before = self._request.place
        answer = await Asking(request).ask(served.emulator, served.state)
        await asyncio.sleep(self._after_s)
        self._answers.append(replace(answer, raised=", ".join(self._raised) or None))
        self._raised.clear()
        if redrive is not None:
            await self._run_redrive(partial(redrive, *([app] if _takes_app(redrive) else [])))
        is_cut = cut_before is None and self._request.place is not None
        return Aftermath(
            app=app,
            answer=answer,
            outside=self.outside,
            cut=self._request.place if is_cut else None,
            unfinished=self._request.unfinished if is_cut else (),
            cut_by_platform=tuple(self._platform_cuts),
        )

    def _emulator(self, app: App) -> Emulator:
        return Emulator(app, profile=self._profile, observer=self, on_start=self._watch)

    def _watch(self, invocation: Invocation) -> None:
        self._request.watch(invocation.gate, partial(kill_request, invocation))

    async def _run_redrive(self, run: Callable[[], Awaitable[object]]) -> None:
        done = 0
        while done < self._redrive_runs:
            done += await self._run_once(run)
            await asyncio.sleep(self._after_s)

    async def _run_once(self, run: Callable[[], Awaitable[object]]) -> bool:
        """Run redrive to its end or its cut; return whether it was the end."""
        loop = asyncio.get_running_loop()
        mind_births(loop)
        gate = Gate()
        cut: asyncio.Future[None] = loop.create_future()

        def kill() -> None:
            kill_gate(gate)
            cut.set_result(None)

        if self._request.place is not None:
            self._redrive.watch(gate, kill, root="the redrive run")
        context = copy_context()
        context.run(CURRENT_GATE.set, gate)
        task = loop.create_task(_finish(run), context=context)
        await asyncio.wait({task, cut}, return_when=asyncio.FIRST_COMPLETED)
        if cut.done():
            return False
        task.result()
        return True

    async def aclose(self) -> None:
        """Run the apps' shutdown."""
        for served in self._served.values():
            await served.stop()

    def trial(self, findings: tuple[Finding, ...]) -> Trial:
        """Return what came of it, with what was found wrong."""
        return Trial(
            resumptions=self._request.count,
            redrive_resumptions=self._redrive.count,
            place=self._request.place,
            redrive_place=self._redrive.place,
            places=tuple(self._request.places),
            findings=findings,
            answers=tuple(self._answers) if self._request.place is None else (),
        )


async def _finish(run: Callable[[], Awaitable[object]]) -> None:
    await run()


def _takes_app(redrive: Redrive) -> bool:
    try:
        inspect.signature(redrive).bind(None)
    except TypeError:
        return False
    return True


class _Served:
    """One app behind the emulator, with its lifespan."""

    def __init__(self, app: App, emulator: Emulator) -> None:
        self.emulator = emulator
        self.state: dict[str, Any] = {}
        self._app = app  # kept, so that its id stays its own
        self._told: asyncio.Queue[Mapping[str, Any]] = asyncio.Queue()
        self._heard: asyncio.Queue[MutableMapping[str, Any]] = asyncio.Queue()
        self._lifespan: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Run the start-up; an app that knows no lifespan has none.

        Raises:
            BadSweep: The app refuses to start.
        """
        scope = {"type": "lifespan", "asgi": {"version": "3.0"}, "state": self.state}
        self._lifespan = asyncio.ensure_future(
            _finish(partial(self.emulator, scope, self._heard.get, self._told.put))
        )
        self._heard.put_nowait({"type": "lifespan.startup"})
        told = asyncio.ensure_future(self._told.get())
        await asyncio.wait({told, self._lifespan}, return_when=asyncio.FIRST_COMPLETED)
        if not told.done():
            told.cancel()
            self._lifespan.exception()  # looked at: no lifespan is no fault
            return
        message = told.result()
        if message["type"] == "lifespan.startup.failed":
            raise BadSweep(f"the app refuses to start: {message.get('message', '')}")

    async def stop(self) -> None:
        """Run the shutdown, if it comes to an end."""
        if self._lifespan is not None and not self._lifespan.done():
            self._heard.put_nowait({"type": "lifespan.shutdown"})
            await asyncio.wait({self._lifespan}, timeout=_SHUTDOWN_S)
