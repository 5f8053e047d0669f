"""A cheap client: kept-alive raw sockets that each send one request after the other.

Run as a process of its own: `python -m tests.load.client HOST PORT CONNECTIONS REQUESTS` prints the
seconds that all requests took.
"""

import asyncio
import sys
import time

__all__ = ["main"]

_REQUEST = b"GET / HTTP/1.1\r\nHost: bench\r\n\r\n"


class _Connection(asyncio.Protocol):
    """One connection; the answer's last bytes are `ok`."""

    def __init__(self, requests: int, done: "asyncio.Future[None]") -> None:
        self._left = requests
        self._done = done
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(_REQUEST)

    def data_received(self, data: bytes) -> None:
        if not data.endswith(b"ok"):
            return
        assert self._transport is not None
        self._left -= 1
        if self._left:
            self._transport.write(_REQUEST)
        else:
            self._transport.close()
            self._done.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._done.done():
            self._done.set_exception(exc or ConnectionError("closed before all was answered"))


async def _measure(host: str, port: int, connections: int, requests: int) -> float:
    loop = asyncio.get_running_loop()
    all_done = [loop.create_future() for _ in range(connections)]
    started = time.perf_counter()
    for done in all_done:
        await loop.create_connection(
            lambda done=done: _Connection(requests // connections, done),  # type: ignore[misc]
            host,
            port,
        )
    await asyncio.gather(*all_done)
    return time.perf_counter() - started


def main() -> None:
    """Measure once."""
    host, port, connections, requests = sys.argv[1:]
    print(asyncio.run(_measure(host, int(port), int(connections), int(requests))))


if __name__ == "__main__":
    main()
