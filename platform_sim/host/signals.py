"""Stop signals: how a process is asked to end.

SIGINT and SIGTERM always ask, also when the process was started in the background of a shell, where
SIGINT is inherited as ignored. SIGHUP asks too, unless it was inherited as ignored: that is what
`nohup` means.
"""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["StopRequests", "stop_requests"]


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
