"""Driving a model world: its loop, what runs on it outside every replica, and how time passes.

Between two acts time stands still. What the world itself does runs in a context of its own, so
that no kill of a replica reaches it.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import Context
from typing import Any

from platform_sim.lifetime.births import mind_births
from tests.support.leaping_loop import LeapingLoop, Stuck

__all__ = ["Driver"]

_TURNS_AFTER = 3  # what became ready at the same instant


class Driver:
    """One loop and its world's tasks.

    Args:
        unhandled: Told of what the loop was left with.

    Attributes:
        loop: On virtual time.
        context: The world's own.
    """

    def __init__(self, unhandled: Callable[[object, dict[str, Any]], object]) -> None:
        self.loop = LeapingLoop()
        self.loop.set_exception_handler(unhandled)
        self.context = Context()
        self._tasks: set[asyncio.Task[None]] = set()

    def advance(self, seconds: float) -> None:
        """Let time pass; what happens at its end happens too."""
        self.drive(asyncio.sleep(seconds))

    def drive(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        """Let a coroutine run to its end, and everything else as long."""

        async def run() -> None:
            mind_births(self.loop)
            await coroutine
            for _ in range(_TURNS_AFTER):
                await asyncio.sleep(0)

        self.loop.run_until_complete(run())

    def later(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine outside every replica."""
        task = self.loop.create_task(coroutine, context=self.context.copy())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard, context=self.context)

    def inside(self, act: Callable[[], None]) -> None:
        """Act inside the running loop: the one that runs now, or one more turn of it."""
        if self.loop.is_running():
            act()
            return

        async def once() -> None:
            act()

        self.drive(once())

    def close(self) -> None:
        """Cancel every task that is left, and close the loop."""
        with suppress(Stuck):  # the history that got stuck has said so
            self.drive(self._cancel_all())
        self.loop.set_exception_handler(lambda _loop, _context: None)
        self.loop.close()

    async def _cancel_all(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.loop.shutdown_asyncgens()
