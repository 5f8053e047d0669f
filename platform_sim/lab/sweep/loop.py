"""The event loop of a trial: virtual time that waits for worker threads, and for nothing else.

Rules: time goes on only when nothing is left to do at the present instant, and then straight to the
next timer; but while a worker thread is busy (a sync endpoint runs in one) it stands still, and the
loop waits for the thread in real time. A trial in which nothing can happen any more, or that turns
round and round without time passing, ends in `Stuck`.

Not here: sockets; they do not take part in a trial.
"""

import asyncio
import selectors
import sys
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from typing import Any, TypeVar, TypeVarTuple, Unpack

from platform_sim.lab.sweep.errors import Stuck

__all__ = ["ForgetfulLoop", "TrialLoop", "run_virtual"]

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_MOST_TURNS_AT_ONCE = 50_000
_THREAD_LOOK_S = 0.05
_MOST_LOOKS = 600
_PER_S = 1_000_000


class _Jumps(selectors.DefaultSelector):
    """A selector that lets time pass in place of waiting."""

    def __init__(self) -> None:
        super().__init__()
        self.now_us = 0
        self.in_executor = 0
        self._turns = 0
        self._looks = 0

    def select(self, timeout: float | None = None) -> Any:
        self._turns += 1
        if self._turns > _MOST_TURNS_AT_ONCE:
            self._turns = 0
            raise Stuck(f"{_MOST_TURNS_AT_ONCE} turns of the event loop and no time passed")
        if timeout is not None and timeout <= 0:
            return super().select(0) if threading.active_count() > 1 else []
        if self._is_thread_busy():
            return self._look()
        self._looks = 0
        ready = super().select(0)
        if ready:
            return ready
        if timeout is None:
            raise Stuck("nothing is left that could happen: everything waits for something else")
        self._turns = 0
        self.now_us += max(1, round(timeout * _PER_S))
        return ready

    def _look(self) -> Any:
        """Wait a moment of real time for a thread."""
        self._turns = 0
        self._looks += 1
        if self._looks > _MOST_LOOKS:
            self._looks = 0
            raise Stuck(f"a worker thread was busy for {_MOST_LOOKS * _THREAD_LOOK_S:g} s")
        return super().select(_THREAD_LOOK_S)

    def _is_thread_busy(self) -> bool:
        if self.in_executor:
            return True
        backend = sys.modules.get("anyio._backends._asyncio")
        if threading.active_count() == 1 or backend is None:
            return False
        # Its limiter cannot be asked: a killed request never gives its token back.
        workers, idle = backend._threadpool_workers, backend._threadpool_idle_workers
        return len(workers.get(())) > len(idle.get(()))


class ForgetfulLoop(asyncio.BaseEventLoop):
    """A loop that takes its tasks off asyncio's list when it closes.

    What a trial killed is never collected, and every later trial would have to read it there.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._born: list[asyncio.Task[Any]] = []
        # Not `create_task`: who calls that is the line a task is born at.
        self.set_task_factory(self._bear)

    def _bear(self, loop: asyncio.AbstractEventLoop, coro: Any, **more: Any) -> asyncio.Task[Any]:
        task = asyncio.Task(coro, loop=loop, **more)
        self._born.append(task)
        return task

    def close(self) -> None:
        """Close the loop, and forget its tasks."""
        super().close()
        for task in self._born:
            asyncio._unregister_task(task)
        self._born.clear()


class TrialLoop(ForgetfulLoop, asyncio.SelectorEventLoop):
    """A loop on virtual time, which starts at 0 seconds."""

    def __init__(self) -> None:
        self._jumps = _Jumps()
        super().__init__(self._jumps)

    def time(self) -> float:
        """Return virtual seconds."""
        return self._jumps.now_us / _PER_S

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[Ts]], T], *args: *Ts
    ) -> asyncio.Future[T]:
        """Run in a thread; time stands still until it is done."""
        future = super().run_in_executor(executor, func, *args)
        self._jumps.in_executor += 1
        future.add_done_callback(self._executed)
        return future

    def _executed(self, _future: "asyncio.Future[Any]") -> None:
        self._jumps.in_executor -= 1


def run_virtual(main: Callable[[], Awaitable[T]]) -> T:
    """Run an async function to its end on virtual time and return what it returns.

    What it leaves running is cancelled at the end, as `asyncio.run` does.

    Raises:
        Stuck: Nothing can happen any more, or something spins.
    """

    async def begin() -> T:
        return await main()

    loop = TrialLoop()
    try:
        return loop.run_until_complete(begin())
    finally:
        _close(loop)


def _close(loop: TrialLoop) -> None:
    """Cancel what is left; what is stuck even then is left alone."""
    try:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(_settled(left))
        loop.run_until_complete(loop.shutdown_asyncgens())
    except Stuck:
        pass  # it ignores its cancellation; the trial has been told already
    finally:
        loop.close()


async def _settled(tasks: "set[asyncio.Task[Any]]") -> None:
    await asyncio.gather(*tasks, return_exceptions=True)
