"""The sender over real sockets: when a byte has left, and that nothing is sent twice."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
import anyio.lowlevel
import pytest

from handler.outcome import NoAnswer, NotSent, Reply, Result
from handler.sender import HttpSender, Request, Trace

pytestmark = pytest.mark.live

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
GUARD_S = 10.0  # a test that waits this long has failed

Serve = Callable[["Connection"], Awaitable[None]]


@dataclass(slots=True)
class Connection:
    """One connection as the receiver sees it."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    arrived: asyncio.Event
    received: bytes = b""
    closed_by_client: asyncio.Event = field(default_factory=asyncio.Event)

    async def request(self) -> bytes:
        """Read one whole request."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = next(
            (
                int(line[15:])
                for line in head.split(b"\r\n")
                if line.lower().startswith(b"content-length:")
            ),
            0,
        )
        body = await self.reader.readexactly(length)
        self.received += head + body
        self.arrived.set()
        return head + body

    async def answer(self, raw: bytes) -> None:
        """Write bytes."""
        self.writer.write(raw)
        await self.writer.drain()

    async def until_client_leaves(self) -> None:
        """Wait for the client's end of the connection."""
        try:
            while await self.reader.read(65_536):
                pass
        except ConnectionError:
            pass
        self.closed_by_client.set()

    def reset(self) -> None:
        """Close with a reset in place of an end."""
        sock: socket.socket = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
        self.writer.transport.abort()


@dataclass(slots=True)
class Peer:
    """A receiver on loopback whose every byte a test decides."""

    url: str
    connections: list[Connection]
    arrived: asyncio.Event

    @property
    def requests(self) -> int:
        """Return how many requests reached the wire, over all connections."""
        return sum(c.received.count(b" HTTP/1.1\r\n") for c in self.connections)


@asynccontextmanager
async def peer(serve: Serve, *, buffer_bytes: int | None = None) -> AsyncIterator[Peer]:
    """Serve connections, with a receive buffer of this size if told."""
    connections, arrived = list[Connection](), asyncio.Event()
    tasks = set[asyncio.Task[None]]()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = Connection(reader, writer, arrived)
        connections.append(connection)
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await serve(connection)
        except (asyncio.CancelledError, asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    listening = socket.socket()
    if buffer_bytes is not None:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
    listening.bind(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    server = await asyncio.start_server(connected, sock=listening)
    try:
        yield Peer(f"http://127.0.0.1:{port}/hook", connections, arrived)
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def sender(max_connections: int = 10) -> AsyncIterator[HttpSender]:
    """Open a sender."""
    opened = HttpSender.open(max_connections=max_connections)
    try:
        yield opened
    finally:
        await opened.aclose()


def post(url: str, body: bytes = b"{}", method: str = "POST") -> Request:
    """Return a request."""
    return Request(method=method, url=url, headers={"idempotency-key": "op"}, body=body)


async def send_once(
    serve: Serve, *, method: str = "POST", body: bytes = b"{}", cut_s: float | None = None
) -> tuple[Result | None, Trace, Peer]:
    """Send one request to a peer; None when it was cut."""
    trace, result = Trace(), None
    with anyio.fail_after(GUARD_S):
        async with peer(serve) as served, sender() as opened:
            with anyio.move_on_after(GUARD_S if cut_s is None else cut_s):
                result = await opened.send(post(served.url, body, method), trace)
            return result, trace, served


async def replies(connection: Connection) -> None:
    """Answer every request."""
    while True:
        await connection.request()
        await connection.answer(OK)


async def resets_at_once(connection: Connection) -> None:
    """Reset without having read anything."""
    connection.reset()


async def resets_after_the_request(connection: Connection) -> None:
    """Read the request, then reset without a byte."""
    await connection.request()
    connection.reset()


async def closes_after_the_request(connection: Connection) -> None:
    """Read the request, then close without a byte."""
    await connection.request()


async def answers_garbage(connection: Connection) -> None:
    """Answer something that is not HTTP."""
    await connection.request()
    await connection.answer(b"hello\r\n\r\n")


async def hangs(connection: Connection) -> None:
    """Read the request and answer nothing, until the client leaves."""
    await connection.request()
    await connection.until_client_leaves()


async def until_idle() -> None:
    """Let every task that can go on do so: enough turns of the loop for one to get stuck."""
    for _ in range(50):
        await asyncio.sleep(0)


def free_port() -> int:
    """Return a port nobody listens on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


def test_a_confirmed_send_is_one_wire_request_with_its_bytes() -> None:
    """Status, headers in lower case, and exactly what was given on the wire."""
    body = b'{"n": 1}'
    result, trace, served = asyncio.run(send_once(replies, body=body))

    assert result == Reply(status=200, headers={"content-length": "2"})
    assert (trace.byte_left, served.requests, len(served.connections)) == (True, 1, 1)
    assert served.connections[0].received.startswith(b"POST /hook HTTP/1.1\r\n")
    assert served.connections[0].received.endswith(b"\r\n\r\n" + body)
    assert b"idempotency-key: op\r\n" in served.connections[0].received


def test_a_refused_connection_sent_nothing() -> None:
    """Nobody listens: not sent."""

    async def main() -> tuple[Result, Trace]:
        trace = Trace()
        async with sender() as opened:
            return await opened.send(post(f"http://127.0.0.1:{free_port()}/"), trace), trace

    result, trace = asyncio.run(main())

    assert isinstance(result, NotSent)
    assert "ClientConnectorError" in result.reason
    assert trace.byte_left is False


@pytest.mark.parametrize(
    "url", ["http://[::1", "http://127.0.0.1:1:2/", "https://127.0.0.1:99999/", "nonsense"]
)
def test_an_address_that_leads_nowhere_sent_nothing(url: str) -> None:
    """Whatever the client library thinks of it: not sent, not raised."""

    async def main() -> tuple[Result, Trace]:
        trace = Trace()
        async with sender() as opened:
            return await opened.send(post(url), trace), trace

    result, trace = asyncio.run(main())

    assert isinstance(result, NotSent)
    assert trace.byte_left is False


def test_a_tls_handshake_that_fails_sent_nothing() -> None:
    """The request's first byte leaves after the handshake."""

    async def garbage(connection: Connection) -> None:
        await connection.reader.read(1)
        await connection.answer(b"this is no handshake\r\n")

    async def main() -> tuple[Result, Trace]:
        trace = Trace()
        async with peer(garbage) as served, sender() as opened:
            url = served.url.replace("http:", "https:")
            return await opened.send(post(url), trace), trace

    result, trace = asyncio.run(main())

    assert isinstance(result, NotSent)
    assert trace.byte_left is False


@pytest.mark.parametrize("method", ["POST", "GET", "PUT"])
@pytest.mark.parametrize(
    "serve",
    [resets_after_the_request, closes_after_the_request, answers_garbage],
    ids=["reset", "closed", "garbage"],
)
def test_o30_no_answer_is_told_and_nothing_is_sent_again(serve: Serve, method: str) -> None:
    """Aiohttp repeats idempotent methods by itself; here nothing is ever repeated below us."""
    body = b"" if method == "GET" else b"{}"
    result, trace, served = asyncio.run(send_once(serve, method=method, body=body))

    assert isinstance(result, NoAnswer)
    assert (trace.byte_left, served.requests, len(served.connections)) == (True, 1, 1)


def test_a_reset_before_the_request_was_read_is_unknown() -> None:
    """The bytes left this side; what became of them is not known here."""
    result, trace, served = asyncio.run(send_once(resets_at_once))

    assert isinstance(result, NoAnswer)
    assert trace.byte_left is True
    assert len(served.connections) == 1


@pytest.mark.parametrize("method", ["POST", "GET"])
def test_o30_a_dead_kept_alive_connection_is_not_sent_on_twice(method: str) -> None:
    """The receiver closed while the connection idled in the pool, or with our next bytes."""

    async def one_then_reset(connection: Connection) -> None:
        await connection.request()
        await connection.answer(OK)
        await connection.request()
        connection.reset()

    async def main() -> tuple[list[Result], int, int]:
        results = list[Result]()
        async with peer(one_then_reset) as served, sender() as opened:
            for _ in range(2):
                request = post(served.url, b"" if method == "GET" else b"{}", method)
                results.append(await opened.send(request, Trace()))
            return results, served.requests, len(served.connections)

    (first, second), requests, connections = asyncio.run(main())

    assert isinstance(first, Reply)
    assert isinstance(second, NoAnswer)
    assert (requests, connections) == (2, 1)


def test_connections_are_kept_alive_and_reused() -> None:
    """One session for the life of the process."""

    async def main() -> tuple[int, int]:
        async with peer(replies) as served, sender() as opened:
            for _ in range(5):
                await opened.send(post(served.url), Trace())
            return served.requests, len(served.connections)

    assert asyncio.run(main()) == (5, 1)


def test_a_pool_without_a_free_slot_sends_nothing() -> None:
    """Waiting for a slot, cut by the caller: not sent, and the receiver never saw it."""

    async def main() -> tuple[bool, bool, int]:
        first, second = Trace(), Trace()
        async with peer(hangs) as served, sender(max_connections=1) as opened:
            holder = asyncio.ensure_future(opened.send(post(served.url), first))
            await served.arrived.wait()
            waiter = asyncio.ensure_future(opened.send(post(served.url), second))
            await until_idle()
            waiter.cancel()
            await asyncio.wait([waiter])
            requests = served.requests
            holder.cancel()
            await asyncio.wait([holder])
        return first.byte_left, second.byte_left, requests

    assert asyncio.run(main()) == (True, False, 1)


def test_a_redirect_is_not_followed() -> None:
    """It confirms nothing, and the payload goes to no address that nobody configured."""

    async def redirects(connection: Connection) -> None:
        await connection.request()
        head = "HTTP/1.1 307 Temporary Redirect\r\nLocation: /other\r\nContent-Length: 0\r\n\r\n"
        await connection.answer(head.encode())
        await connection.until_client_leaves()

    result, _, served = asyncio.run(send_once(redirects))

    assert isinstance(result, Reply)
    assert (result.status, result.headers["location"], served.requests) == (307, "/other", 1)


def test_headers_confirm_although_the_body_never_comes() -> None:
    """The status line is the answer; a dripping body is not waited for."""

    async def drips(connection: Connection) -> None:
        await connection.request()
        await connection.answer(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nx")
        await connection.until_client_leaves()

    async def main() -> Result:
        async with peer(drips) as served, sender() as opened:
            result = await opened.send(post(served.url), Trace())
            with anyio.fail_after(GUARD_S):
                await served.connections[0].closed_by_client.wait()
            return result

    result = asyncio.run(main())

    assert isinstance(result, Reply)
    assert result.status == 200


def test_an_answer_before_the_body_was_read_counts() -> None:
    """A receiver may answer early and never read the rest; its answer is what counts."""

    async def answers_early(connection: Connection) -> None:
        await connection.reader.readuntil(b"\r\n\r\n")
        connection.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await connection.answer(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        await asyncio.sleep(GUARD_S)

    async def main() -> Result:
        async with peer(answers_early, buffer_bytes=4096) as served, sender() as opened:
            with anyio.fail_after(GUARD_S / 2):
                return await opened.send(post(served.url, b"x" * 1_000_000), Trace())

    result = asyncio.run(main())

    assert result == Reply(status=200, headers={"content-length": "0"})


@pytest.mark.parametrize("after_request", [True, False])
def test_o13_a_cut_closes_the_connection_as_the_receiver_sees_it(*, after_request: bool) -> None:
    """Silent, or dripping header bytes: after the cut nothing is left open."""
    seen = list[Connection]()

    async def silent(connection: Connection) -> None:
        seen.append(connection)
        await connection.request()
        if not after_request:
            await connection.answer(b"HTTP/1.1 200 O")
        await connection.until_client_leaves()

    async def main() -> tuple[bool, bool]:
        trace = Trace()
        async with peer(silent) as served, sender() as opened:
            task = asyncio.ensure_future(opened.send(post(served.url), trace))
            await served.arrived.wait()
            task.cancel()
            await asyncio.wait([task])
            with anyio.fail_after(GUARD_S):
                await seen[0].closed_by_client.wait()
            return task.cancelled(), trace.byte_left

    assert asyncio.run(main()) == (True, True)


def test_a_closed_sender_sends_nothing_and_raises_nothing() -> None:
    """A pass that goes on while the process shuts down is told "not sent"."""

    async def main() -> tuple[Result, Trace]:
        trace = Trace()
        async with peer(replies) as served:
            opened = HttpSender.open(max_connections=1)
            await opened.aclose()
            return await opened.send(post(served.url), trace), trace

    result, trace = asyncio.run(main())

    assert isinstance(result, NotSent)
    assert trace.byte_left is False


def test_cookies_of_one_answer_are_not_sent_with_the_next_request() -> None:
    """Operations have nothing to do with each other."""

    async def sets_cookie(connection: Connection) -> None:
        while True:
            await connection.request()
            await connection.answer(
                b"HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nContent-Length: 0\r\n\r\n"
            )

    async def main() -> bytes:
        async with peer(sets_cookie) as served, sender() as opened:
            # By name: aiohttp's own jar keeps no cookies for bare addresses anyhow.
            url = served.url.replace("127.0.0.1", "localhost")
            for _ in range(2):
                await opened.send(post(url), Trace())
            assert served.requests == 2
            return served.connections[0].received

    assert b"cookie" not in asyncio.run(main()).lower()
