"""The schedule: runs never overlap, never outlive their limit and survive others that fail."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from platform_sim.host.cron import Cron, Ending, Run, Schedule
from tests.support.virtual import run_virtual


@dataclass
class Summary:
    """What a scheduled function may return."""

    delivered: int

    def as_dict(self) -> dict[str, int]:
        """Return it as JSON-able data."""
        return {"delivered": self.delivered}


def watch(
    call: Callable[[], Awaitable[Any]], *, for_s: float, every_s: float = 10, limit_s: float = 5
) -> list[Run]:
    """Let a cron run on virtual time, stop it, and return what it reported."""
    runs: list[Run] = []
    schedule = Schedule(every_s=every_s, limit_s=limit_s, grace_s=2)

    async def main() -> None:
        task = asyncio.ensure_future(Cron(call, schedule, runs.append).keep_running())
        await asyncio.sleep(for_s)
        task.cancel()
        await asyncio.wait({task})

    run_virtual(main)
    return runs


def started_at() -> tuple[list[float], Callable[[float], Callable[[], Awaitable[None]]]]:
    """Return a list of start times, and a maker of functions that take so many seconds."""
    starts: list[float] = []

    def lasting(seconds: float) -> Callable[[], Awaitable[None]]:
        async def call() -> None:
            starts.append(asyncio.get_running_loop().time())
            await asyncio.sleep(seconds)

        return call

    return starts, lasting


def test_the_first_run_starts_at_once_and_later_ones_on_the_tick() -> None:
    """A run's own length does not shift the schedule."""
    starts, lasting = started_at()
    watch(lasting(3), for_s=35)

    assert starts == [0, 10, 20, 30]


def test_ticks_that_pass_during_a_run_are_skipped() -> None:
    """Runs of one cron never overlap."""
    starts, lasting = started_at()
    watch(lasting(14), for_s=45, limit_s=100)

    assert starts == [0, 20, 40]


def test_a_run_is_cancelled_at_its_limit_and_the_next_one_comes() -> None:
    """A run may clean up, and its length is reported."""
    cleaned: list[float] = []

    async def call() -> None:
        try:
            await asyncio.sleep(100)
        finally:
            await asyncio.sleep(1)
            cleaned.append(asyncio.get_running_loop().time())

    runs = watch(call, for_s=12)

    assert [(run.run, run.ending, run.took_s) for run in runs] == [
        (1, Ending.LIMIT, 6),
        (2, Ending.STOPPED, 3),
    ]
    assert cleaned == [6, 13]


def test_a_failing_run_is_reported_and_changes_nothing() -> None:
    """The next run is the remedy for this one."""
    numbers = iter(range(1, 10))

    async def call() -> Summary:
        number = next(numbers)
        if number == 1:
            message = "store is away"
            raise ConnectionError(message)
        return Summary(delivered=number)

    runs = watch(call, for_s=15)

    assert runs == [
        Run(run=1, ending=Ending.FAILED, took_s=0, error="ConnectionError: store is away"),
        Run(run=2, ending=Ending.COMPLETED, took_s=0, summary={"delivered": 2}),
    ]


def test_a_function_that_fails_before_it_awaits_is_a_failing_run_too() -> None:
    """A plain function that raises is no reason to end the schedule."""

    def call() -> Awaitable[None]:
        message = "not even a coroutine"
        raise TypeError(message)

    runs = watch(call, for_s=5)

    assert [(run.ending, run.error) for run in runs] == [
        (Ending.FAILED, "TypeError: not even a coroutine")
    ]


def test_a_run_that_cancels_itself_is_a_failure_not_a_stop() -> None:
    """Only a stop signal stops the schedule."""

    async def call() -> None:
        raise asyncio.CancelledError

    runs = watch(call, for_s=15)

    assert [run.error for run in runs] == ["cancelled itself", "cancelled itself"]


def test_a_run_that_is_done_when_the_stop_comes_is_reported_as_done() -> None:
    """Its summary says what it finished."""
    runs: list[Run] = []

    async def main() -> None:
        async def call() -> Summary:
            cron_task.cancel()
            return Summary(delivered=1)

        cron = Cron(call, Schedule(every_s=10, limit_s=5), runs.append)
        cron_task = asyncio.ensure_future(cron.keep_running())
        await asyncio.wait({cron_task})

    run_virtual(main)

    assert runs == [Run(run=1, ending=Ending.COMPLETED, took_s=0, summary={"delivered": 1})]


@pytest.mark.parametrize(("for_s", "ended_at_s"), [(3, 3 + 2), (50, 5 + 2)])
def test_a_run_that_will_not_end_is_given_up_after_the_grace(for_s: float, ended_at_s: int) -> None:
    """At its limit or at a stop: the process must end then, so the schedule does."""
    over = asyncio.Event()

    async def call() -> None:
        while not over.is_set():
            try:
                await over.wait()
            except asyncio.CancelledError:
                continue

    async def main() -> tuple[float, list[Run]]:
        runs: list[Run] = []
        loop = asyncio.get_running_loop()
        schedule = Schedule(every_s=10, limit_s=5, grace_s=2)
        task = asyncio.ensure_future(Cron(call, schedule, runs.append).keep_running())
        await asyncio.wait({task}, timeout=for_s)
        task.cancel()
        await asyncio.wait({task})
        ended_at = loop.time()
        over.set()
        return ended_at, runs

    ended_at, runs = run_virtual(main)

    assert ended_at == ended_at_s
    assert [run.ending for run in runs] == [Ending.STUCK]
