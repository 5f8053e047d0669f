"""A raw ASGI client in tests: drives scope, receive and send as a server does, without a socket.

It behaves like uvicorn where servers differ: `receive` also says `http.disconnect` after the
answer, and what is sent to a client that has left is dropped in silence.
"""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any

__all__ = ["App", "AsgiClient", "answer", "call", "lifetime_of", "respond"]

Message = MutableMapping[str, Any]
App = Callable[[Any, Any, Any], Awaitable[None]]


class AsgiClient:
    """One request to an app.

    Attributes:
        sent: What the app sent while the client was there, with the loop's time of each.
        reads: How often the app's server side asked for a message.
        left: Whether the client has gone.
    """

    def __init__(
        self,
        app: App,
        *,
        path: str = "/",
        method: str = "GET",
        headers: Sequence[tuple[bytes, bytes]] = (),
        body: Sequence[bytes] = (b"",),
    ) -> None:
        self._app = app
        self._scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": list(headers),
            "client": ("test", 1),
            "server": ("test", 80),
            "state": {},
        }
        self._body = list(body)
        self._changed = asyncio.Event()
        self.sent: list[tuple[float, Message]] = []
        self.reads = 0
        self.left = False

    async def run(self) -> None:
        """Call the app, as a server's request task does."""
        await self._app(self._scope, self._receive, self._send)

    def start(self) -> "asyncio.Task[None]":
        """Call the app in a task of its own."""
        return asyncio.create_task(self.run())

    def leave(self) -> None:
        """Go away: close the connection."""
        self.left = True
        self._changed.set()

    @property
    def answered(self) -> bool:
        """Whether the whole answer has come."""
        return bool(self.sent) and self._ends(self.sent[-1][1])

    @property
    def status(self) -> int | None:
        """The answer's status, if it has begun."""
        return self.sent[0][1]["status"] if self.sent else None

    @property
    def body(self) -> bytes:
        """The answer's body so far."""
        return b"".join(message.get("body", b"") for _, message in self.sent)

    @staticmethod
    def _ends(message: Message) -> bool:
        return message["type"] == "http.response.body" and not message.get("more_body", False)

    async def _receive(self) -> Message:
        self.reads += 1
        if self.left or self.answered:
            return {"type": "http.disconnect"}
        if self._body:
            chunk = self._body.pop(0)
            return {"type": "http.request", "body": chunk, "more_body": bool(self._body)}
        await self._changed.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        if self.left:
            return
        self.sent.append((asyncio.get_running_loop().time(), message))
        if self.answered:
            self._changed.set()


async def call(app: App, **request: Any) -> AsgiClient:
    """Make one request and return when the app's call has returned to the server."""
    client = AsgiClient(app, **request)
    await client.run()
    return client


def lifetime_of(scope: Any) -> Any:
    """Return the platform contract of a scope."""
    return scope["extensions"]["outlast.lifetime"]


async def respond(send: Any, *, status: int = 200, chunks: Sequence[bytes] = (b"ok",)) -> None:
    """Answer from inside an app."""
    await send({"type": "http.response.start", "status": status, "headers": []})
    for chunk in chunks[:-1]:
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": chunks[-1], "more_body": False})


def answer(handler: Callable[[Any], Awaitable[None]], *, status: int = 200) -> App:
    """Return an app that runs `handler(scope)` and then answers."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        del receive
        await handler(scope)
        await respond(send, status=status)

    return app
