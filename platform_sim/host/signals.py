"""Stop signals: how a process is asked to end.

SIGINT and SIGTERM always ask, also when the process was started in the background of a shell, where
SIGINT is inherited as ignored. SIGHUP asks too, unless it was inherited as ignored: that is what
`nohup` means.
"""

import asyncio
import signal
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from typing import TypeVar

__all__ = ["StopRequests", "Stopped", "stop_requests"]

T = TypeVar("T")


class Stopped(Exception):
    """Somebody asked to stop before what was going on had come to its end."""


class StopRequests:
    """The signals that have come so far."""

    def __init__(self) -> None:
        self.count = 0
        self.name: str | None = None
        self._first = asyncio.Event()
        self._second = asyncio.Event()

    def request(self, name: str) -> None:
        """Note one more request to stop, by a signal's name or another reason."""
        self.count += 1
        if self.name is None:
            self.name = name
            self._first.set()
        else:
            self._second.set()

    async def wait(self) -> str:
        """Wait for the first request and return its name."""
        await self._first.wait()
        return str(self.name)

    async def unless(self, work: Awaitable[T]) -> T:
        """Return what `work` returns, unless a stop request comes first; `work` is ended then.

        Raises:
            Stopped: It came first.
        """
        working = asyncio.ensure_future(work)
        stopping = asyncio.ensure_future(self.wait())
        try:
            both: set[asyncio.Future[T] | asyncio.Future[str]] = {working, stopping}
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                return working.result()
            raise Stopped(stopping.result())
        finally:
            working.cancel()
            stopping.cancel()
            await asyncio.gather(working, stopping, return_exceptions=True)

    async def wait_again(self) -> None:
        """Wait for the second request: whoever asks twice will not wait."""
        await self._second.wait()


@contextmanager
def stop_requests() -> Iterator[StopRequests]:
    """Collect stop signals on the running event loop while the block runs."""
    loop = asyncio.get_running_loop()
    requests = StopRequests()
    wanted = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        wanted.append(signal.SIGHUP)
    for number in wanted:
        loop.add_signal_handler(number, requests.request, number.name)
    try:
        yield requests
    finally:
        for number in wanted:
            loop.remove_signal_handler(number)
