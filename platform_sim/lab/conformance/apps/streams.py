"""Answers in pieces: made by the app (s13, s14), or another server's, handed over (s15, s30)."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from platform_sim.lab.conformance.apps.desk import Desk, asgi, end, piece, start
from platform_sim.lifetime.handover import HANDOVER

__all__ = ["handed_over", "handed_over_long", "made", "pumped", "pumped_signal"]


class _Pipe:
    """A pipe with room for one piece, from a pump to whoever sends: a TransformStream."""

    def __init__(self) -> None:
        self._pieces: asyncio.Queue[bytes | None] = asyncio.Queue(maxsize=1)
        self._closed = False

    async def write(self, body: bytes | None) -> None:
        """Write a piece; None ends the stream."""
        if self._closed:
            raise BrokenPipeError
        await self._pieces.put(body)

    async def read(self) -> bytes | None:
        """Take a piece; None is the end."""
        return await self._pieces.get()

    def close(self) -> None:
        """Break it: the next write fails."""
        self._closed = True


async def _pump(desk: Desk, pipe: _Pipe) -> None:
    step_s = desk.pace.step("response:chunk", 0.5)
    try:
        for number in range(10):
            await pipe.write(b"chunk")
            desk.log("pump:wrote", i=number)
            await asyncio.sleep(step_s)
        await pipe.write(None)
        desk.log("pump:closed")
    except BrokenPipeError as error:
        desk.log("pump:threw", msg=repr(error))


async def _leaving(receive: Any, gone: asyncio.Event) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    gone.set()


async def _pumped(desk: Desk, receive: Any, send: Any, *, signal: bool) -> None:
    """s13: a pump of 5 s into a pipe, a wait_until of 4 s; leaving shows at the next piece."""
    gone, pipe = asyncio.Event(), _Pipe()
    desk.log("handler:start")
    desk.wait_until(desk.work("bg", 4.0, 1.0))
    desk.floating += [
        asyncio.create_task(_leaving(receive, gone)),
        asyncio.create_task(_pump(desk, pipe)),
    ]
    desk.log("handler:return")
    await start(send)
    while (body := await pipe.read()) is not None:
        if gone.is_set():
            pipe.close()
            if signal:
                desk.log("signal:abort")
            return
        await piece(send, body)
    await end(send)


@asgi
async def pumped(desk: Desk, receive: Any, send: Any) -> None:
    """s13 without the signal."""
    await _pumped(desk, receive, send, signal=False)


@asgi
async def pumped_signal(desk: Desk, receive: Any, send: Any) -> None:
    """s13 with the signal."""
    await _pumped(desk, receive, send, signal=True)


@asgi
async def made(desk: Desk, receive: Any, send: Any) -> None:
    """s14: a made stream of 4 s, a wait_until of 1 s, floating work of 3 s and 6 s."""
    del receive
    step_s = desk.pace.step("response:chunk", 0.5)
    desk.log("handler:start")
    desk.wait_until(desk.work("bg", 1.0))
    desk.float("floating3s", 3.0)
    desk.float("floating6s", 6.0)
    desk.log("handler:return")
    await start(send)
    for _ in range(desk.pace.number("response:end", "chunks", 8)):
        await asyncio.sleep(step_s)
        await piece(send, b"chunk")
    desk.log("stream:close")
    await end(send)


async def _origin(desk: Desk) -> AsyncIterator[bytes]:
    """Be another server's body of 4 s."""
    step_s = desk.pace.step("response:chunk", 0.5)
    for _ in range(desk.pace.number("response:end", "chunks", 8)):
        await asyncio.sleep(step_s)
        yield b"chunk"


@asgi
async def handed_over(desk: Desk, receive: Any, send: Any) -> None:
    """s15: another server's body, a wait_until of 1 s, floating work of 0.5 s and 3 s."""
    del receive
    desk.log("handler:start")
    body = _origin(desk)
    desk.log("origin:headers")
    desk.wait_until(desk.work("bg", 1.0))
    desk.float("floating500ms", 0.5)
    desk.float("floating3s", 3.0)
    desk.log("handler:return")
    await start(send)
    await send({"type": HANDOVER, "chunks": body})


@asgi
async def handed_over_long(desk: Desk, receive: Any, send: Any) -> None:
    """s30: another server's body, a wait_until of 6 s."""
    del receive
    desk.log("handler:start")
    body = _origin(desk)
    desk.wait_until(desk.work("bg", 6.0, 2.0))
    desk.log("handler:return")
    await start(send)
    await send({"type": HANDOVER, "chunks": body})
