"""The sender: the one place where a request leaves for a receiver.

A sender makes exactly one wire request for each `send`, never follows a redirect, never repeats
by itself, and reports through a `Trace` the moment from which a byte of the request may have
left. That moment, not the name of an exception, tells "not sent" from "no answer", also when the
caller cuts the send in the middle. A confirmation is the status line and headers; the body is not
waited for.

Not here: what a reply means (`outcome`), how long a send may take (`attempt` cuts it).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Protocol, Self

import aiohttp

from handler.outcome import NoAnswer, NotSent, Reply, Result

__all__ = ["HttpSender", "Request", "Sender", "Trace"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request to a receiver."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None = None


@dataclass(slots=True)
class Trace:
    """What is known of a send so far; it stays true when the send is cut."""

    byte_left: bool = field(default=False)


class Sender(Protocol):
    """What carries requests to receivers."""

    async def send(self, request: Request, trace: Trace) -> Result:
        """Send once and return what came of it; only cancellation is raised."""

    async def aclose(self) -> None:
        """Close every connection."""


class HttpSender:
    """A sender over aiohttp: one session for the life of the process."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    @classmethod
    def open(cls, *, max_connections: int) -> Self:
        """Open a session; call inside the event loop that will use it.

        Args:
            max_connections: The pool's size; waiting for a slot counts as not sent.
        """
        tracing = aiohttp.TraceConfig()
        tracing.on_request_headers_sent.append(_byte_leaves)
        return cls(
            aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=max_connections),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=None, sock_read=None),
                trace_configs=[tracing],
                middlewares=[_once],
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
            )
        )

    async def send(self, request: Request, trace: Trace) -> Result:
        """Send once and return what came of it."""
        try:
            response = await self._session.request(
                request.method,
                request.url,
                data=request.body,
                headers=request.headers,
                allow_redirects=False,
                trace_request_ctx=trace,
            )
        except Exception as error:  # noqa: BLE001  the trace tells what it means, not its name
            cause = error.__cause__ if isinstance(error, _Broken) else error
            reason = f"{type(cause).__name__}: {cause}"
            return NoAnswer(reason=reason) if trace.byte_left else NotSent(reason=reason)
        # No await stands between an answer and its return: a cut here cannot lose it. A body
        # that has not come yet is not waited for; its connection is closed.
        headers = {name.lower(): value for name, value in response.headers.items()}
        reply = Reply(status=response.status, headers=headers)
        response.release()
        return reply

    async def aclose(self) -> None:
        """Close every connection."""
        await self._session.close()


class _Broken(aiohttp.ClientError):
    """A connection error that aiohttp does not take for a reason to send again."""


async def _once(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    # aiohttp repeats a GET by itself after either error; a lookup is one wire request too.
    try:
        return await handler(request)
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise _Broken from error


async def _byte_leaves(
    _session: aiohttp.ClientSession, context: SimpleNamespace, _params: Any
) -> None:
    # aiohttp calls this on an open connection, just before it writes the first byte.
    trace: Trace = context.trace_request_ctx
    trace.byte_left = True
