"""Playing a trace's part again against an app under the emulator, on virtual time.

Rules: the app lives under the profile that is given; it finds `log` and its pace in its scope, and
its lifespan is run. Whatever it, its client and the platform do is noted with the virtual time
from the client's first byte until the observation ends; then what is left is cut and forgotten.

Not here: what the notes are held against (`compare`).
"""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from platform_sim.lab.conformance.apps.desk import CONFORMANCE
from platform_sim.lab.conformance.client import Client
from platform_sim.lab.conformance.compare import TOLERANCE_S
from platform_sim.lab.conformance.lifespan import AppFailed, Lifespan
from platform_sim.lab.conformance.pace import AS_WRITTEN, Pace
from platform_sim.lab.conformance.plan import Dispatch, Plan, Request
from platform_sim.lab.conformance.tail import Tail
from platform_sim.lab.conformance.trace import Source, TraceEvent, Word
from platform_sim.lab.scenario.errors import Stuck
from platform_sim.lab.scenario.loop import VirtualLoop
from platform_sim.lifetime.emulator import Emulator
from platform_sim.lifetime.profile import Profile
from platform_sim.lifetime.scheduled import run_scheduled

__all__ = ["play"]

_App = Callable[..., Awaitable[None]]
_Scope = MutableMapping[str, Any]


def play(
    plan: Plan, app: _App, *, profile: Profile, pace: Pace = AS_WRITTEN
) -> tuple[TraceEvent, ...]:
    """Ask the app what the plan asks and return all that happened, in order.

    Args:
        plan: What is asked.
        app: An ASGI app; where the plan has scheduled runs, a handler of one scope.
        profile: The rules it lives by.
        pace: Its timing, as it finds it in its scope.

    Raises:
        AppFailed: It refused to start, or it turns and turns without time going on.
    """
    stage = _Stage(plan, app, profile, pace)
    try:
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            runner.run(stage.play())
    except Stuck as stuck:
        raise AppFailed(f"the app never comes to rest: {stuck}") from stuck
    return tuple(stage.notes)


class _Stage:
    """One run of a plan."""

    def __init__(self, plan: Plan, app: _App, profile: Profile, pace: Pace) -> None:
        self.notes: list[TraceEvent] = []
        self._plan = plan
        self._app = app
        self._profile = profile
        self._extension = {"log": self._log, "pace": pace}
        self._emulator = Emulator(self._equipped, profile=profile, observer=Tail(self._note))
        self._watching = False
        self._epoch_s = 0.0
        self._state: dict[str, Any] = {}
        self._tasks: list[asyncio.Task[None]] = []

    def _note(self, source: Source, name: str, **fields: Any) -> None:
        if self._watching:
            at_s = round(asyncio.get_running_loop().time() - self._epoch_s, 6)
            event = TraceEvent(at_s=at_s, source=source, name=str(name), fields=fields)
            self.notes.append(event)

    def _log(self, event: str, /, **fields: Any) -> None:
        self._note(Source.WORKER, event, **fields)

    async def _equipped(self, scope: _Scope, *channels: Any) -> None:
        extensions = {**(scope.get("extensions") or {}), CONFORMANCE: self._extension}
        await self._app({**scope, "extensions": extensions}, *channels)

    async def play(self) -> None:
        """Run everything, and wait until the observation is over."""
        if self._plan.requests:
            lifespan = Lifespan(self._emulator, self._state)
            await lifespan.start()
            await self._observe()
            await lifespan.stop()
        else:
            await self._observe()

    async def _observe(self) -> None:
        self._epoch_s = asyncio.get_running_loop().time()
        self._watching = True
        for request in self._plan.requests:
            self._begin(self._request(request))
        for number, dispatch in enumerate(self._plan.dispatches, start=1):
            self._begin(self._dispatch(dispatch, str(number)))
        if self._plan.term_at_s is not None:
            self._begin(self._stop(self._plan.term_at_s))
        await self._until(self._plan.end_s + TOLERANCE_S)
        self._watching = False
        await self._emulator.drain(within_s=0)
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks)

    async def _until(self, at_s: float) -> None:
        passed_s = asyncio.get_running_loop().time() - self._epoch_s
        await asyncio.sleep(max(0.0, at_s - passed_s))

    def _begin(self, doing: Any) -> None:
        self._tasks.append(asyncio.create_task(doing))

    async def _request(self, request: Request) -> None:
        client = Client(request, self._note)
        await self._until(request.sent_at_s)
        client.send()
        leave = request.leave
        if leave is not None:
            loop = asyncio.get_running_loop()
            loop.call_at(self._epoch_s + leave.at_s, client.leave, leave.how)
        await self._until(request.arrives_at_s)
        await client.be_served(self._emulator, self._state)

    async def _dispatch(self, dispatch: Dispatch, number: str) -> None:
        await self._until(dispatch.at_s)
        self._note(Source.DRIVER, Word.SCHEDULED, cron=dispatch.cron)
        await self._until(dispatch.arrives_at_s)
        run = await run_scheduled(
            self._equipped,
            profile=self._profile,
            cron=dispatch.cron,
            observer=Tail(self._note, scheduled=True),
            invocation_id=number,
        )
        result = {"outcome": str(run.outcome), "noRetry": run.no_retry}
        self._note(Source.DRIVER, Word.SCHEDULED_RESULT, result=result)

    async def _stop(self, at_s: float) -> None:
        await self._until(at_s)
        self._note(Source.DRIVER, Word.TERM)
        await self._emulator.drain(within_s=self._profile.shutdown_grace_s)
        self._note(Source.PROCESS, Word.EXITED, rc=0)
