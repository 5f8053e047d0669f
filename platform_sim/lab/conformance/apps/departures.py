"""Clients that leave before the answer: s11, s12, s22; and s28, where the platform stops."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from platform_sim.lab.conformance.apps.desk import Desk, answering, asgi, end, start

__all__ = ["held", "held_signal", "long_held", "unheld", "unheld_signal"]


def _listening(handler: Callable[[Desk], Awaitable[None]]) -> Any:
    """Make an app that listens for its client's leaving beside its handler."""

    async def listen(desk: Desk, receive: Any) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        desk.log("signal:abort")

    async def answer(desk: Desk, receive: Any, send: Any) -> None:
        desk.floating.append(asyncio.create_task(listen(desk, receive)))
        await handler(desk)
        await start(send)
        await end(send, b"ok")

    return asgi(answer)


async def _held(desk: Desk) -> None:
    """s11: the handler answers after 3 s, a wait_until of 5 s, a second one at 2 s."""
    desk.log("handler:start")
    desk.wait_until(desk.work("bg", 5.0, 1.0))
    await desk.pause("handler:start", "handler:2s", 2.0)
    desk.log("handler:2s")
    desk.wait_until(desk.work("late", 1.5))
    await desk.pause("handler:2s", "handler:return", 1.0)
    desk.log("handler:return")


async def _unheld(desk: Desk) -> None:
    """s12, s28: the handler answers after 3 s; nothing is registered."""
    total_s = desk.pace.span("handler:start", "handler:return", 3.0)
    desk.log("handler:start")
    await desk.tick("handler", total_s, 0.5)
    desk.log("handler:return")


held = answering(_held)
held_signal = _listening(_held)
unheld = answering(_unheld)
unheld_signal = _listening(_unheld)


@answering
async def long_held(desk: Desk) -> None:
    """s22: the handler answers after 50 s, a wait_until of 40 s."""
    desk.log("handler:start")
    desk.wait_until(desk.work("bg", 40.0, 5.0))
    await desk.pause("handler:start", "handler:return", 50.0)
    desk.log("handler:return")
