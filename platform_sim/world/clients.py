"""Clients of a world: they send one request to an ASGI app, and wait, or leave.

Rules: a body may come in two halves. A client that leaves is told to the app as `http.disconnect`
and hears nothing more, as under a real server; whatever the app still sends goes nowhere. FIN and
RST look the same to an ASGI app; which one it was is only told.
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
        left_after_s: Seconds after its request at which the client left, if it did.
    """

    status: int | None
    body: bytes = b""
    left_after_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave:
    """When a client leaves: so long after its request, or the moment it has its answer."""

    after_s: float | None = None
    at_answer: bool = False


class Client:
    """One client with one request.

    Args:
        path: Where to.
        headers: The request's.
        body: The whole body.
        body_after_s: Seconds until its second half comes; 0 sends it in one piece.
        leave: When it leaves.
    """

    def __init__(
        self,
        *,
        path: str,
        headers: Mapping[str, str],
        body: bytes,
        leave: Leave,
        body_after_s: float = 0.0,
    ) -> None:
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
        half = len(body) // 2
        self._parts = [body[:half], body[half:]] if body_after_s else [body]
        self._body_after_s = body_after_s
        self._body_is_here = asyncio.Event()
        self._leave = leave
        self._left_after_s: float | None = None
        self._gone = asyncio.Event()
        self._answered = asyncio.Event()
        self._status: int | None = None
        self._received = b""

    async def ask(self, app: _App) -> Answer:
        """Send the request and return what came of it."""
        loop = asyncio.get_running_loop()
        asked_at_s = loop.time()

        def leave() -> None:
            self._gone.set()
            self._left_after_s = loop.time() - asked_at_s

        timers = [loop.call_later(self._body_after_s, self._body_is_here.set)]
        if self._leave.after_s is not None:
            timers.append(loop.call_later(self._leave.after_s, leave))
        serving = asyncio.ensure_future(app(self._scope, self._receive, self._send))
        waits = [asyncio.ensure_future(event.wait()) for event in (self._answered, self._gone)]
        try:
            await asyncio.wait([serving, *waits], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
            for timer in timers:
                timer.cancel()
        answered = self._answered.is_set()
        if self._leave.at_answer and answered:
            leave()
        # The server's own task: it goes on until the app call is over, whoever listens.
        await asyncio.wait([serving])
        failed = not serving.cancelled() and serving.exception() is not None
        if failed and not self._gone.is_set() and not answered:
            return Answer(status=self._status or 500, body=self._received)
        return Answer(
            status=self._status if answered else None,
            body=self._received,
            left_after_s=self._left_after_s,
        )

    async def _receive(self) -> Mapping[str, Any]:
        if self._parts:
            if len(self._parts) == 1 and self._body_after_s:
                await self._first(self._body_is_here, self._gone)
                if self._gone.is_set():
                    return _DISCONNECT
            part = self._parts.pop(0)
            return {"type": "http.request", "body": part, "more_body": bool(self._parts)}
        await self._first(self._answered, self._gone)
        return _DISCONNECT

    async def _first(self, *events: asyncio.Event) -> None:
        """Wait for the first of some events."""
        waits = [asyncio.ensure_future(event.wait()) for event in events]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

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
