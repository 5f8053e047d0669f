"""The recorded client and the server between it and the app, without a socket.

Rules: as under uvicorn. A client that leaves, by FIN, RST or half-close, is `http.disconnect`: an
ASGI server reads a FIN as the end of the connection, whether or not the client still reads. What
the app sends then goes nowhere. An app that fails before its answer gets `500 Internal Server
Error`; inside its answer, the connection closes. An answer in one piece is seen with its body, one
in several as chunks.

Not here: when it sends and leaves (`plan`, `play`).
"""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from platform_sim.lab.conformance.plan import Request
from platform_sim.lab.conformance.tail import Note
from platform_sim.lab.conformance.trace import Leaving, Source, Word

__all__ = ["Client"]

_App = Callable[[Any, Any, Any], Awaitable[None]]
_FAILED = "Internal Server Error"


class Client:
    """One client with one request."""

    def __init__(self, request: Request, note: Note) -> None:
        self._request = request
        self._note = note
        self._over = asyncio.Event()
        self._asked = False
        self._left = False
        self._started = False
        self._chunks: int | None = None

    def send(self) -> None:
        """Send the request."""
        request = self._request
        self._note(Source.CLIENT, Word.REQUEST_SENT, path=request.path, method=request.method)

    def leave(self, how: Leaving) -> None:
        """Leave; the app is told, however it was."""
        if how is Leaving.HALF_CLOSE:
            self._note(Source.CLIENT, Word.HALF_CLOSE)
        else:
            self._note(Source.CLIENT, Word.DISCONNECT, how=str(how))
        self._left = True
        self._over.set()

    async def be_served(self, app: _App, state: MutableMapping[str, Any]) -> None:
        """Call the app, as the server's task of this request."""
        try:
            await app(self._scope(state), self._receive, self._send)
        except Exception:  # noqa: BLE001  a server survives whatever an app raises; it is recorded
            self._fail()
            return
        self._fail()

    def _fail(self) -> None:
        """The app call is over: answer in its place if it has not answered."""
        if self._over.is_set():
            return
        self._over.set()
        if self._started:
            self._note(Source.CLIENT, Word.ABORTED)
            return
        self._note(Source.CLIENT, Word.HEADERS, status=500)
        self._note(Source.CLIENT, Word.RESPONSE_END, body=_FAILED)

    def _scope(self, state: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        path, _, query = self._request.path.partition("?")
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": self._request.method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(b"host", b"conformance")],
            "client": ("127.0.0.1", 50000),
            "server": ("127.0.0.1", 80),
            "state": dict(state),
        }

    async def _receive(self) -> MutableMapping[str, Any]:
        if not self._asked:
            self._asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self._over.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: MutableMapping[str, Any]) -> None:
        if self._left:
            return
        if message["type"] == "http.response.start":
            self._started = True
            self._note(Source.CLIENT, Word.HEADERS, status=message["status"])
        elif message["type"] == "http.response.body":
            self._take(message.get("body", b""), more=message.get("more_body", False))

    def _take(self, body: bytes, *, more: bool) -> None:
        if self._chunks is None and not more:
            self._note(Source.CLIENT, Word.RESPONSE_END, body=body.decode(errors="replace"))
        else:
            self._chunks = self._chunks or 0
            if body:
                self._chunks += 1
                self._note(Source.CLIENT, Word.CHUNK, n=self._chunks)
            if not more:
                self._note(Source.CLIENT, Word.RESPONSE_END, chunks=self._chunks)
        if not more:
            self._over.set()
