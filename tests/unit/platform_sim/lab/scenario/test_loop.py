"""A world's loop: time jumps and never waits; one that turns for ever is stopped."""

import asyncio
import time
from collections.abc import Coroutine
from typing import Any

import pytest

from platform_sim.lab.scenario import loop as loops
from platform_sim.lab.scenario.errors import Stuck
from platform_sim.lab.scenario.loop import VirtualLoop


def run(main: Coroutine[Any, Any, Any], loop: VirtualLoop | None = None) -> Any:
    """Run on a virtual loop."""
    with asyncio.Runner(loop_factory=lambda: loop or VirtualLoop()) as runner:
        return runner.run(main)


def test_a_day_passes_at_once_and_timers_fire_in_order() -> None:
    """Real time plays no part."""

    async def main() -> list[tuple[float, str]]:
        log: list[tuple[float, str]] = []
        loop = asyncio.get_running_loop()

        async def wait(seconds: float, name: str) -> None:
            await asyncio.sleep(seconds)
            log.append((loop.time(), name))

        await asyncio.gather(wait(86_400.0, "day"), wait(0.1 + 0.2, "sum"), wait(0.3, "decimal"))
        return log

    started = time.perf_counter()

    assert run(main()) == [(0.3, "decimal"), (0.3, "sum"), (86_400.0, "day")]
    assert time.perf_counter() - started < 5


def test_a_timer_between_two_microseconds_still_fires() -> None:
    """The clock counts whole ones and goes on at least by one."""

    async def main() -> float:
        await asyncio.sleep(0.000_000_4)
        return asyncio.get_running_loop().time()

    assert run(main()) == 0.000_001


def test_a_call_from_another_thread_is_heard() -> None:
    """A signal's handler wakes the loop like that."""

    async def main() -> str:
        loop = asyncio.get_running_loop()
        heard = loop.create_future()
        loop.call_soon_threadsafe(heard.set_result, "heard")
        return str(await heard)

    assert run(main()) == "heard"


def test_a_world_in_which_nothing_can_happen_any_more_is_stuck() -> None:
    """It would wait for ever."""

    async def main() -> None:
        await asyncio.get_running_loop().create_future()

    loop = VirtualLoop()
    task = loop.create_task(main())
    with pytest.raises(Stuck, match="nothing is left"):
        loop.run_until_complete(task)

    task.cancel()
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()


async def _spin(until: asyncio.Event) -> None:
    while not until.is_set():  # noqa: ASYNC110  it is meant to turn
        await asyncio.sleep(0)


@pytest.mark.parametrize(("at_once", "in_all"), [(50, 10_000), (10_000, 50)])
def test_a_world_that_turns_too_often_is_told_once(
    monkeypatch: pytest.MonkeyPatch, at_once: int, in_all: int
) -> None:
    """Whoever listens can end it."""
    monkeypatch.setattr(loops, "_MOST_TURNS_AT_ONCE", at_once)
    monkeypatch.setattr(loops, "_MOST_TURNS", in_all)
    told: list[str] = []

    async def main() -> None:
        over = asyncio.Event()
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)

        def stop(reason: str) -> None:
            told.append(reason)
            over.set()

        loop.on_stuck = stop
        await _spin(over)
        await asyncio.sleep(1.0)

    run(main())

    assert len(told) == 1
    assert "of the event loop" in told[0]


def test_a_world_that_goes_on_turning_is_ended_by_force(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when nobody listens."""
    monkeypatch.setattr(loops, "_MOST_TURNS_AT_ONCE", 50)
    monkeypatch.setattr(loops, "_LAST_TURNS", 50)
    loop = VirtualLoop()

    with pytest.raises(Stuck, match="went on turning"):
        loop.run_until_complete(_spin(asyncio.Event()))

    loop.close()
