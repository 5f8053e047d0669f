"""Virtual time: coroutines run on a loop whose clock jumps from timer to timer."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio
import looptime

__all__ = ["run_virtual"]

T = TypeVar("T")


def run_virtual(main: Callable[[], Awaitable[T]]) -> T:
    """Run `main` to its end on virtual time, which starts at 0 seconds, and return its result.

    Worker threads and sockets do not take part: with them, use real time.
    """
    return anyio.run(main, backend_options={"loop_factory": looptime.new_event_loop})
