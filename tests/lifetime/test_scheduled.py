"""Scheduled runs: the result waits for the handler and all its work, inside one limit."""

import asyncio
from typing import Any

import pytest

from platform_sim.lifetime.cut import EndReason
from platform_sim.lifetime.invocation import Invocation
from platform_sim.lifetime.profile import GENERIC, WORKERS, Profile
from platform_sim.lifetime.scheduled import (
    SCHEDULED,
    Handler,
    ScheduledOutcome,
    ScheduledRun,
    run_scheduled,
)
from platform_sim.view.event import EventKind
from platform_sim.view.recorder import Recorder
from tests.support.asgi import lifetime_of
from tests.support.virtual import run_virtual


class Run:
    """One run: what the handler wrote, what was recorded, what came of it and when."""

    def __init__(self, profile: Profile = WORKERS) -> None:
        self.log: list[tuple[float, str]] = []
        self.recorder = Recorder()
        self.profile = profile
        self.result: ScheduledRun | None = None
        self.ended_at = -1.0

    def write(self, what: str) -> None:
        """Write one line of the handler's log."""
        self.log.append((round(asyncio.get_running_loop().time(), 6), what))

    async def work(self, name: str, after_s: float, *, fails: bool = False) -> None:
        """Be some work."""
        try:
            await asyncio.sleep(after_s)
        except asyncio.CancelledError:
            self.write(f"{name} cancelled")
            raise
        self.write(name)
        if fails:
            raise ValueError(name)

    async def of(self, handler: Handler) -> "Run":
        """Run it to its end."""
        self.result = await run_scheduled(
            handler, profile=self.profile, cron="*/5 * * * *", observer=self.recorder
        )
        self.ended_at = asyncio.get_running_loop().time()
        return self


def test_the_result_waits_for_the_handler_and_for_its_work() -> None:
    """s25 ok: the handler returns at once, its work ends at 2.0, and so does the run."""

    async def main() -> Run:
        run = Run()

        async def handler(scope: Any) -> None:
            run.write(f"{scope['type']} {scope['cron']} {lifetime_of(scope)['platform']}")
            lifetime_of(scope)["wait_until"](run.work("bg", 2.0))

        return await run.of(handler)

    run = run_virtual(main)

    assert run.log == [(0.0, "scheduled */5 * * * * workers"), (2.0, "bg")]
    assert (run.result, run.ended_at) == (
        ScheduledRun(outcome=ScheduledOutcome.OK, no_retry=False),
        2.0,
    )


def test_a_handler_that_waits_itself_holds_the_run() -> None:
    """What a redrive does: it awaits its work and registers nothing."""

    async def main() -> Run:
        run = Run()

        async def handler(scope: Any) -> None:
            del scope
            await run.work("pass", 40.0)

        return await run.of(handler)

    run = run_virtual(main)

    assert (run.log, run.ended_at) == ([(40.0, "pass")], 40.0)


@pytest.mark.parametrize("whose", ["handler", "work"])
def test_one_failure_makes_the_outcome_and_its_siblings_finish(whose: str) -> None:
    """s25 throw, waitfail: the outcome is exception, at the end of the last work."""

    async def main() -> Run:
        run = Run()

        async def handler(scope: Any) -> None:
            lifetime_of(scope)["wait_until"](run.work("sibling", 1.5))
            if whose == "handler":
                await run.work("handler", 0.5, fails=True)
            lifetime_of(scope)["wait_until"](run.work("work", 0.5, fails=True))

        return await run.of(handler)

    run = run_virtual(main)

    assert run.log == [(0.5, whose), (1.5, "sibling")]
    assert run.ended_at == 1.5
    assert run.result == ScheduledRun(outcome=ScheduledOutcome.EXCEPTION, no_retry=False)


def test_a_run_may_ask_not_to_be_repeated() -> None:
    """s25 noretry."""

    async def main() -> Run:
        run = Run()

        async def handler(scope: Any) -> None:
            scope["extensions"][SCHEDULED]["no_retry"]()

        return await run.of(handler)

    assert run_virtual(main).result == ScheduledRun(outcome=ScheduledOutcome.OK, no_retry=True)


def test_the_limit_cuts_handler_and_work_at_the_tick() -> None:
    """900 s from the run's start, for everything together; late work gets what is left."""

    async def main() -> Run:
        run = Run()

        async def late(scope: Any) -> None:
            await asyncio.sleep(800.0)
            run.write(f"remaining {lifetime_of(scope)['remaining']()}")
            lifetime_of(scope)["wait_until"](run.work("late", 101.0))

        async def handler(scope: Any) -> None:
            lifetime_of(scope)["wait_until"](late(scope))
            await run.work("handler", 1000.0)

        return await run.of(handler)

    run = run_virtual(main)

    assert sorted(run.log) == [
        (800.0, "remaining 100.0"),
        (900.0, "handler cancelled"),
        (900.0, "late cancelled"),
    ]
    assert run.result == ScheduledRun(outcome=ScheduledOutcome.EXCEEDED, no_retry=False)
    (cut,) = run.recorder.of(EventKind.CUT)
    assert cut.fields["text"] == (
        "cancel at 900.0 (ceiling): Run.work (registered at 800.0), the app call; "
        "window 900.0 s counted from the dispatch at 0.0"
    )


def test_a_platform_without_a_limit_lets_a_run_take_its_time() -> None:
    """None means unbounded; floating work is still nobody's."""
    kept: list[Any] = []

    async def main() -> Run:
        run = Run(GENERIC)

        async def handler(scope: Any) -> None:
            del scope
            kept.append(asyncio.create_task(run.work("floating", 6000.0)))
            await run.work("handler", 5000.0)

        return await run.of(handler)

    run = run_virtual(main)

    assert run.log == [(5000.0, "handler"), (5000.0, "floating cancelled")]
    assert run.result == ScheduledRun(outcome=ScheduledOutcome.OK, no_retry=False)


def test_a_run_whose_caller_goes_ends_with_it() -> None:
    """As when the process that schedules is told to stop."""

    async def main() -> Run:
        run = Run()

        async def handler(scope: Any) -> None:
            lifetime_of(scope)["wait_until"](run.work("bg", 50.0))

        task = asyncio.create_task(run.of(handler))
        await asyncio.sleep(1.0)
        task.cancel()
        await asyncio.wait({task})
        await asyncio.sleep(0.5)
        return run

    run = run_virtual(main)

    assert run.log == [(1.0, "bg cancelled")]
    assert run.result is None
    assert [e.fields["reason"] for e in run.recorder.of(EventKind.CONTEXT_END)] == ["shutdown"]


def test_an_experiment_that_kills_a_run_gets_it_back_as_cancelled() -> None:
    """It is handed the run before its first step."""
    started: list[Invocation] = []

    async def main() -> tuple[list[tuple[float, str]], ScheduledRun]:
        run = Run()

        async def handler(scope: Any) -> None:
            del scope
            await run.work("handler", 50.0)

        def start(invocation: Invocation) -> None:
            started.append(invocation)
            loop = asyncio.get_running_loop()
            loop.call_later(2.0, invocation.end, EndReason.KILLED)

        result = await run_scheduled(handler, profile=WORKERS, on_start=start)
        return run.log, result

    log, result = run_virtual(main)

    assert log == [(2.0, "handler cancelled")]
    assert result.outcome is ScheduledOutcome.CANCELLED
