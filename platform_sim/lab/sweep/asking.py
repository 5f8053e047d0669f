"""The client of a trial: one request to an ASGI app, and what came back.

Rules: the answer is what had reached the client; a request that was killed before its last byte has
none. Between a message and the app's next line the event loop turns once, as it may at a real
server, so that a cut can fall between the answer and what follows it.

Not here: who serves the app (`stage`).
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any, Self

from platform_sim.lab.sweep.errors import BadSweep

__all__ = ["Answer", "Asking", "SweptRequest"]

_METHODS = ("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT")
_OK, _ABOVE_OK = 200, 300


@dataclass(frozen=True, slots=True, kw_only=True)
class SweptRequest:
    """The request that is swept.

    Attributes:
        method: Upper case.
        path: Begins with a slash; a query may follow.
        headers: By name.
        body: The whole body.
    """

    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    @classmethod
    def of(
        cls,
        line: str,
        *,
        body: bytes = b"",
        data: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> Self:
        """Read a request.

        Args:
            line: `POST /path?query`.
            body: The body as it is.
            data: Sent as JSON in place of a body, when given.
            headers: By name.

        Raises:
            BadSweep: The line is none.
        """
        method, _, path = line.strip().partition(" ")
        path = path.strip()
        if method not in _METHODS or not path.startswith("/") or " " in path:
            raise BadSweep(f"{line!r} is no request: write it like 'POST /orders'")
        given = dict(headers or {})
        if data is not None:
            body = json.dumps(data).encode()
            given.setdefault("content-type", "application/json")
        return cls(method=method, path=path, headers=given, body=body)

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    def scope(self, state: Mapping[str, Any]) -> MutableMapping[str, Any]:
        """Return its ASGI scope."""
        path, _, query = self.path.partition("?")
        headers = {"host": "sweep.test", "content-length": str(len(self.body)), **self.headers}
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "method": self.method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(name.lower().encode(), text.encode()) for name, text in headers.items()],
            "client": ("127.0.0.1", 50000),
            "server": ("127.0.0.1", 8000),
            "state": dict(state),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the client got.

    Attributes:
        status: None when the connection was dropped before the answer's end.
        headers: By lower-case name.
        body: What arrived of it.
        raised: What the app raised, before or after it, if that was looked at; no client knows.
    """

    status: int | None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    raised: str | None = None

    @property
    def acknowledged(self) -> bool:
        """Whether it is a whole 2xx."""
        return self.status is not None and _OK <= self.status < _ABOVE_OK

    def json(self) -> Any:
        """Return the decoded body."""
        return json.loads(self.body)

    def __str__(self) -> str:
        told = "no answer" if self.status is None else str(self.status)
        return told if self.raised is None else f"{told} (the app raised {self.raised})"


class Asking:
    """One request under way."""

    def __init__(self, request: SweptRequest) -> None:
        self._request = request
        self._is_sent = False
        self._status: int | None = None
        self._headers: dict[str, str] = {}
        self._body = b""
        self._is_whole = False
        self._server_done = asyncio.Event()

    async def ask(self, app: Callable[..., Awaitable[None]], state: Mapping[str, Any]) -> Answer:
        """Send the request; return when the server is done with it."""
        try:
            await app(self._request.scope(state), self._receive, self._send)
        except Exception:  # noqa: BLE001  what an app raises is a 500 at its client, if any answer
            if self._status is None:
                return Answer(status=500)
        status = self._status if self._is_whole else None
        return Answer(status=status, headers=self._headers, body=self._body)

    async def _receive(self) -> Mapping[str, Any]:
        if not self._is_sent:
            self._is_sent = True
            return {"type": "http.request", "body": self._request.body, "more_body": False}
        await self._server_done.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Mapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            self._headers = {
                name.decode("latin-1").lower(): text.decode("latin-1")
                for name, text in message.get("headers", ())
            }
        elif message["type"] == "http.response.body":
            self._body += message.get("body", b"")
            if not message.get("more_body", False):
                self._is_whole = True
        await asyncio.sleep(0)
        if self._is_whole:
            self._server_done.set()
