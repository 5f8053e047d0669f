"""Clients of a world: they send one request to an ASGI app, and wait, or leave.

Rules: a client that leaves is told to the app as `http.disconnect` and hears nothing more, as
under a real server; whatever the app still sends goes nowhere. FIN and RST look the same to an
ASGI app; which one it was is only told.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Answer", "Client", "Leave"]

_App = Callable[..., Awaitable[None]]
_DISCONNECT = {"type": "http.disconnect"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a client got.

    Attributes:
        status: The status, or None when it left, or was dropped, before one.
        body: The whole body.
    """

    status: int | None
    body: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave:
    """When a client leaves: so long after its request, or the moment it has its answer."""

    after_s: float | None = None
    at_answer: bool = False


class Client:
    """One client with one request."""

    def __init__(self, *, path: str, headers: Mapping[str, str], body: bytes, leave: Leave) -> None:
        self._scope: MutableMapping[str, Any] = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
            "client": ("127.0.0.1", 50000),
            "server": ("127.0.0.1", 8000),
            "state": {},
        }
        self._body = body
        self._leave = leave
        self._gone = asyncio.Event()
        self._answered = asyncio.Event()
        self._asked = False
        self._status: int | None = None
        self._received = b""

    async def ask(self, app: _App) -> Answer:
        """Send the request and return what came of it."""
        serving = asyncio.ensure_future(app(self._scope, self._receive, self._send))
        leaving = None
        if self._leave.after_s is not None:
            loop = asyncio.get_running_loop()
            leaving = loop.call_later(self._leave.after_s, self._gone.set)
        waits = [asyncio.ensure_future(event.wait()) for event in (self._answered, self._gone)]
        try:
            await asyncio.wait([serving, *waits], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
            if leaving is not None:
                leaving.cancel()
        answered = self._answered.is_set()
        if self._leave.at_answer:
            self._gone.set()
        # The server's own task: it goes on until the app call is over, whoever listens.
        await asyncio.wait([serving])
        if not serving.cancelled() and serving.exception() is not None and not answered:
            return Answer(status=self._status or 500, body=self._received)
        return Answer(status=self._status if answered else None, body=self._received)

    async def _receive(self) -> Mapping[str, Any]:
        if not self._asked:
            self._asked = True
            return {"type": "http.request", "body": self._body, "more_body": False}
        over = [asyncio.ensure_future(event.wait()) for event in (self._answered, self._gone)]
        try:
            await asyncio.wait(over, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in over:
                wait.cancel()
        return _DISCONNECT

    async def _send(self, message: Mapping[str, Any]) -> None:
        await asyncio.sleep(0)
        if self._gone.is_set():
            return
        if message["type"] == "http.response.start":
            self._status = message["status"]
        elif message["type"] == "http.response.body":
            self._received += message.get("body", b"")
            if not message.get("more_body", False):
                self._answered.set()
