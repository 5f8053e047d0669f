"""The trial's loop: virtual time that waits for threads, and an end in any case."""

import asyncio
import threading
import time
from typing import Any

import anyio.lowlevel
import anyio.to_thread
import pytest

from platform_sim.lab.sweep import loop as loop_module
from platform_sim.lab.sweep.errors import Stuck
from platform_sim.lab.sweep.loop import TrialLoop, run_virtual
from platform_sim.lifetime.births import CURRENT_GATE, mind_births
from platform_sim.lifetime.gate import Gate


def test_time_jumps_from_timer_to_timer() -> None:
    """A thousand seconds pass at once, and exactly."""

    async def main() -> float:
        await asyncio.sleep(1000.0)
        return asyncio.get_running_loop().time()

    assert run_virtual(main) == 1000.0


def test_time_stands_still_while_a_thread_is_busy() -> None:
    """A timeout beside a busy thread does not fire, whoever started the thread."""
    let_go = threading.Event()

    def work() -> str:
        assert let_go.wait(10.0)
        return "done"

    async def main() -> list[Any]:
        loop = asyncio.get_running_loop()
        threading.Timer(0.1, let_go.set).start()
        async with asyncio.timeout(5.0):
            by_asyncio = await loop.run_in_executor(None, work)
            by_anyio = await anyio.to_thread.run_sync(work)
        await asyncio.sleep(1.0)
        return [by_asyncio, by_anyio, loop.time()]

    assert run_virtual(main) == ["done", "done", 1.0]


def test_a_killed_request_in_a_thread_does_not_stop_time() -> None:
    """It never gives its token back; only a thread that really works counts."""

    async def main() -> float:
        loop = asyncio.get_running_loop()
        mind_births(loop)
        gate = Gate()
        token = CURRENT_GATE.set(gate)
        task = loop.create_task(anyio.to_thread.run_sync(time.monotonic), name="in a thread")
        CURRENT_GATE.reset(token)
        await asyncio.sleep(0)
        gate.kill()
        await asyncio.sleep(1.0)

        assert task.cancelled()
        return loop.time()

    assert run_virtual(main) == 1.0


def test_a_thread_that_never_ends_ends_the_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    """Real time is waited for only so long."""
    monkeypatch.setattr(loop_module, "_MOST_LOOKS", 2)
    let_go = threading.Event()

    async def main() -> None:
        await asyncio.get_running_loop().run_in_executor(None, let_go.wait)

    threading.Timer(1.0, let_go.set).start()
    with pytest.raises(Stuck, match="a worker thread was busy for"):
        run_virtual(main)


def test_a_trial_in_which_nothing_can_happen_ends() -> None:
    """It would wait for ever."""

    async def main() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(Stuck, match="nothing is left that could happen"):
        run_virtual(main)


def test_a_trial_that_spins_ends() -> None:
    """Time never passes while something is ready."""

    async def main() -> None:
        while True:
            await anyio.lowlevel.checkpoint()

    with pytest.raises(Stuck, match="no time passed"):
        run_virtual(main)


def test_what_ignores_its_cancellation_is_left_alone() -> None:
    """The trial's own end is what counts."""

    async def stubborn() -> None:
        while True:
            try:
                await asyncio.get_running_loop().create_future()
            except asyncio.CancelledError:
                continue

    async def main() -> str:
        asyncio.create_task(stubborn())  # noqa: RUF006  left running on purpose
        await asyncio.sleep(1.0)
        return "over"

    assert run_virtual(main) == "over"


def test_a_closed_loop_leaves_no_task_on_asyncios_list() -> None:
    """Killed tasks live for ever; the next trial must not have to read them all."""
    loop = TrialLoop()
    kept: list[asyncio.Task[None]] = []

    async def main() -> None:
        kept.append(asyncio.create_task(asyncio.sleep(100.0)))
        await asyncio.sleep(1.0)

    loop.run_until_complete(main())

    assert kept[0] in asyncio.all_tasks(loop)
    loop.close()

    assert kept[0] not in asyncio.all_tasks(loop)


def test_what_comes_in_from_a_socket_is_heard_before_time_passes() -> None:
    """A loop wakes up for its own pipe, and so for a call from another thread."""

    async def main() -> str:
        loop = asyncio.get_running_loop()
        heard = loop.create_future()
        thread = threading.Thread(
            target=loop.call_soon_threadsafe, args=(heard.set_result, "heard")
        )
        thread.start()
        thread.join()
        loop.call_later(1.0, heard.set_result, "late")
        return str(await heard)

    assert run_virtual(main) == "heard"
