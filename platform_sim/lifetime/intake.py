"""The request's messages, read ahead of the app: how a client that leaves is seen at once.

Rules: the server's `receive` is called whether or not the app asks, up to a bounded amount of body
that the app has not taken yet; beyond that the client waits, as it would without us, and its
leaving is seen when the app takes some. Reading starts with the app's own first `receive` where the
client waits for 100-continue, since reading is what sends it.

Not here: what leaving means (`invocation`); whether a disconnect message means leaving at all
(`exchange`: servers also send it after the answer).
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

__all__ = ["READ_AHEAD_BYTES", "Intake"]

READ_AHEAD_BYTES = 64 * 1024
"""Body bytes held for the app before reading stops: uvicorn's own high-water mark."""

_DISCONNECT = {"type": "http.disconnect"}


class Intake:
    """Messages between the server's `receive` and the app's."""

    def __init__(self, *, wait_for_app: bool) -> None:
        self._messages: deque[Any] = deque()
        self._held_bytes = 0
        self._body_over = False
        self._disconnected = False
        self._arrived = asyncio.Event()
        self._room = asyncio.Event()
        if not wait_for_app:
            self._room.set()

    async def pump(self, receive: Callable[[], Awaitable[Any]]) -> None:
        """Read until the server says `http.disconnect`, and return then."""
        while True:
            await self._room.wait()
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            self._take(message)

    def _take(self, message: Any) -> None:
        # A server may repeat an empty last message; the app has asked for no more.
        if self._body_over:
            return
        self._body_over = not message.get("more_body", False)
        self._messages.append(message)
        self._held_bytes += len(message.get("body", b""))
        if self._held_bytes >= READ_AHEAD_BYTES and not self._body_over:
            self._room.clear()
        self._arrived.set()

    def disconnect(self) -> None:
        """Let the app see `http.disconnect` once it has taken what arrived before."""
        self._disconnected = True
        self._arrived.set()

    async def receive(self) -> Any:
        """Return the next message: the app's own `receive`."""
        self._room.set()
        while not self._messages:
            if self._disconnected:
                return dict(_DISCONNECT)
            self._arrived.clear()
            await self._arrived.wait()
        message = self._messages.popleft()
        self._held_bytes -= len(message.get("body", b""))
        return message
