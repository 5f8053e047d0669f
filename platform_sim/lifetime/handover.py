"""A body handed over: the app names where it comes from, and the platform sends it.

Rules: the message `{"type": "outlast.response.handover", "chunks": async iterator of bytes}`
after `http.response.start` hands the body over. From then on the answer is the platform's: it holds
nothing of the request, the window opens at once, and no cut of the request ends the body. A client
that leaves ends it. So a Worker behaves that returns another server's stream as it came (workerd
src/workerd/api/deferred-proxy.h:14-24). The chunks are drawn in the server's context.

Not here: a body the app makes itself; that is `http.response.body`, and holds the context.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextvars import Context
from typing import Any

__all__ = ["HANDOVER", "Handover"]

HANDOVER = "outlast.response.handover"
"""The message's type, and the name of the scope extension that says it is understood."""

_Send = Callable[[Any], Awaitable[None]]


class Handover:
    """One body on its way from where it comes to the server.

    Args:
        chunks: The body.
        send: The server's.
        outside: The server's context.
        on_over: Told how it ended: complete, left or failed.
    """

    def __init__(
        self,
        chunks: AsyncIterator[bytes],
        send: _Send,
        *,
        outside: Context,
        on_over: Callable[[str], None],
    ) -> None:
        self._chunks = chunks
        self._send = send
        self._on_over = on_over
        self._task = asyncio.get_running_loop().create_task(self._forward(), context=outside)

    async def _forward(self) -> None:
        how = "failed"
        try:
            async for chunk in self._chunks:
                await self._send({"type": "http.response.body", "body": chunk, "more_body": True})
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})
            how = "complete"
        except asyncio.CancelledError:
            how = "left"
            raise
        finally:
            aclose = getattr(self._chunks, "aclose", None)
            if aclose is not None:
                await aclose()
            self._on_over(how)

    def stop(self) -> None:
        """Forward no more: nobody takes it."""
        self._task.cancel()

    async def over(self) -> None:
        """Wait until the body is over, raising what broke it."""
        await asyncio.wait({self._task})
        if not self._task.cancelled():
            self._task.result()
