"""A scheduled run's life: no client, no answer, one limit for the handler and all its work.

Rules: the handler is itself work that holds the run, so the result waits for it and for everything
given to `wait_until`, whichever ends last. One failure makes the outcome `exception`, and the
others still run to their end. The profile's scheduled limit counts from the start; what is alive
then is cut, and the outcome is `exceeded`. Floating work is cut with the last work that held the
run. Sources: workerd src/workerd/io/worker-entrypoint.c++:811-828 and io/io-context.c++:667,
https://developers.cloudflare.com/workers/platform/limits/.

Not here: the schedule itself, and a process that runs it (`platform_sim.host.cron`).
"""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from contextvars import copy_context
from dataclasses import dataclass, replace
from enum import StrEnum, unique
from typing import Any

from platform_sim.lifetime.births import mind_births
from platform_sim.lifetime.clock import Clock
from platform_sim.lifetime.cut import EndReason
from platform_sim.lifetime.invocation import Invocation, Surroundings
from platform_sim.lifetime.profile import ClockStart, FloatingRule, Profile
from platform_sim.lifetime.wait_until import CURRENT_INVOCATION, extend
from platform_sim.lifetime.window import CountedFrom
from platform_sim.view.event import Event, EventKind
from platform_sim.view.recorder import Observer, Silent, Tee

__all__ = ["SCHEDULED", "Handler", "ScheduledOutcome", "ScheduledRun", "run_scheduled"]

Handler = Callable[[MutableMapping[str, Any]], Awaitable[None]]
"""A scheduled handler: takes one scope, of type `scheduled`, with the platform contract in it."""

SCHEDULED = "outlast.scheduled"
"""The scope extension of a scheduled run: `no_retry()` asks that a failed run be not repeated."""


@unique
class ScheduledOutcome(StrEnum):
    """How a run ended."""

    OK = "ok"
    EXCEPTION = "exception"  # the handler or some work of it failed
    EXCEEDED = "exceeded"  # the limit ended it
    CANCELLED = "cancelled"  # an experiment or an orderly stop ended it


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledRun:
    """What came of a run.

    Attributes:
        outcome: How it ended.
        no_retry: Whether the handler asked that it be not repeated.
    """

    outcome: ScheduledOutcome
    no_retry: bool


class _Tally:
    """Notes what decides the outcome."""

    def __init__(self) -> None:
        self._failed = False
        self._reason: str | None = None

    def observe(self, event: Event) -> None:
        if event.kind in {EventKind.APP_FAILED, EventKind.TASK_FAILED}:
            self._failed = True
        elif event.kind is EventKind.CONTEXT_END:
            self._reason = event.fields["reason"]

    @property
    def outcome(self) -> ScheduledOutcome:
        if self._reason == EndReason.CEILING:
            return ScheduledOutcome.EXCEEDED
        if self._reason in {EndReason.SHUTDOWN, EndReason.KILLED}:
            return ScheduledOutcome.CANCELLED
        return ScheduledOutcome.EXCEPTION if self._failed else ScheduledOutcome.OK


async def run_scheduled(
    handler: Handler,
    *,
    profile: Profile,
    cron: str = "",
    observer: Observer | None = None,
    invocation_id: str = "1",
    on_start: Callable[[Invocation], None] | None = None,
) -> ScheduledRun:
    """Run `handler` once by the profile's rules for scheduled runs, and wait for all its work.

    Cancelling this ends the run: its caller is gone.

    Args:
        handler: Is called with a scope of type `scheduled`.
        profile: The platform's limits.
        cron: The schedule that is due, as the handler sees it in `scope["cron"]`.
        observer: Is told what happens; times count from the run's start.
        invocation_id: Names the run in the record.
        on_start: Is given the run before its first step.
    """
    loop = asyncio.get_running_loop()
    mind_births(loop)
    tally = _Tally()
    ended: asyncio.Future[None] = loop.create_future()
    outside = copy_context()
    invocation = Invocation(
        invocation_id,
        Surroundings(
            profile=_rules(profile),
            clock=Clock(loop, loop.time()),
            observer=Tee(tally, observer or Silent()),
        ),
        outside,
        on_ended=lambda _: None if ended.done() else ended.set_result(None),
    )
    asked: list[None] = []
    scope = extend(
        {"type": "scheduled", "cron": cron}, platform=profile.name, stopping=lambda: False
    )
    scope["extensions"][SCHEDULED] = {"no_retry": lambda: asked.append(None)}
    inside = outside.copy()
    inside.run(CURRENT_INVOCATION.set, invocation)
    if on_start is not None:
        on_start(invocation)
    invocation.start(
        _run(handler, scope),
        name=f"scheduled {cron}".strip(),
        inside=inside,
        counted_from=CountedFrom.DISPATCH,
    )
    invocation.over.add_done_callback(_hear)
    try:
        await ended
    except asyncio.CancelledError:
        invocation.end(EndReason.SHUTDOWN)
        raise
    return ScheduledRun(outcome=tally.outcome, no_retry=bool(asked))


def _rules(profile: Profile) -> Profile:
    return replace(
        profile,
        allowance_s=profile.scheduled_limit_s,
        clock_start=ClockStart.REQUEST,
        floating=FloatingRule.CUT,
    )


async def _run(handler: Handler, scope: MutableMapping[str, Any]) -> None:
    await handler(scope)


def _hear(over: "asyncio.Future[None]") -> None:
    over.exception()  # told as an event; there is no server that would hear of it
