"""A stage for lifetime tests: an emulated app on virtual time, and two records of what happened.

`log` is what the app's own code wrote, `recorder` what the emulator saw; both carry the loop's
time, which starts at 0.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from platform_sim.lifetime.emulator import App, Emulator
from platform_sim.lifetime.invocation import Invocation
from platform_sim.lifetime.profile import WORKERS, Profile
from platform_sim.view.event import Event, EventKind
from platform_sim.view.recorder import Recorder

__all__ = ["Stage"]


class Stage:
    """One emulator and what came of it.

    Attributes:
        profile: The limits.
        emulator: The app under its profile.
        recorder: Every event.
        log: (time, what) as the app's code wrote it.
    """

    def __init__(
        self,
        app: Callable[["Stage"], App],
        *,
        profile: Profile = WORKERS,
        on_start: Callable[[Invocation], None] | None = None,
        **changes: Any,
    ) -> None:
        self.profile = replace(profile, **changes)
        self.recorder = Recorder()
        self.log: list[tuple[float, str]] = []
        self.emulator = Emulator(
            app(self),
            profile=self.profile,
            observer=self.recorder,
            on_start=on_start,
        )

    def write(self, what: str) -> None:
        """Write one line of the app's log."""
        self.log.append((round(asyncio.get_running_loop().time(), 6), what))

    async def work(self, name: str, *sleeps_s: float) -> None:
        """Be some work: sleep, write `name`, and so on; write also when cancelled."""
        for sleep_s in sleeps_s:
            try:
                await asyncio.sleep(sleep_s)
            except asyncio.CancelledError:
                self.write(f"{name} cancelled")
                raise
            self.write(name)

    async def rest(self, within_s: float = 1000.0) -> float:
        """Wait until every request's context has ended; return the time."""
        await self.emulator.drain(within_s=within_s)
        return round(asyncio.get_running_loop().time(), 6)

    def events(self, *kinds: EventKind) -> list[Event]:
        """Return the events of these kinds."""
        return self.recorder.of(*kinds)

    def story(self, *kinds: EventKind) -> list[tuple[float, str, str]]:
        """Return time, kind and name (or reason) of the events of these kinds."""
        return [
            (
                event.at_s,
                str(event.kind),
                str(event.fields.get("name", event.fields.get("reason", ""))),
            )
            for event in self.recorder.of(*kinds)
        ]

    def end(self) -> tuple[float, str]:
        """Return when and why the only request's context ended."""
        (event,) = self.recorder.of(EventKind.CONTEXT_END)
        return event.at_s, event.fields["reason"]
