"""What a scenario's app works with: its log, its platform and its pace, out of the scope.

An app finds `log(event, **fields)` and `pace` in `scope["extensions"]["outlast.conformance"]`, and
the platform contract beside it. What requests share is in the lifespan's state.
"""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from platform_sim.lab.conformance.pace import Pace
from platform_sim.lifetime.wait_until import EXTENSION

__all__ = ["CONFORMANCE", "Desk", "answering", "asgi", "end", "lifespan", "piece", "start"]

CONFORMANCE = "outlast.conformance"
"""The scope extension that carries `log` and `pace`."""

App = Callable[[Any, Any, Any], Awaitable[None]]


class Desk:
    """One request's or run's things.

    Attributes:
        log: Writes one event of the app's log.
        pace: The app's timing.
        wait_until: The platform's.
        scope: The scope.
        floating: Tasks that are started and given to nobody, kept from the garbage collector.
    """

    def __init__(self, scope: MutableMapping[str, Any]) -> None:
        conformance = scope["extensions"][CONFORMANCE]
        self.log: Callable[..., None] = conformance["log"]
        self.pace: Pace = conformance["pace"]
        self.wait_until: Callable[[Awaitable[Any]], None] = scope["extensions"][EXTENSION][
            "wait_until"
        ]
        self.scope = scope
        self.floating: list[asyncio.Task[None]] = []

    @property
    def state(self) -> dict[str, Any]:
        """What the requests of one app share."""
        state: dict[str, Any] = self.scope["state"]["shared"]
        return state

    async def pause(self, start: str, end: str, default_s: float) -> None:
        """Sleep for as long as the app took from one event to the other."""
        await asyncio.sleep(self.pace.span(start, end, default_s))

    async def work(self, tag: str, total_s: float, step_s: float | None = None) -> None:
        """Be some work: log its start, each step if it has steps, and its end."""
        total_s = self.pace.span(f"{tag}:start", f"{tag}:done", total_s)
        self.log(f"{tag}:start")
        if step_s is None:
            await asyncio.sleep(total_s)
        else:
            await self.tick(tag, total_s, step_s)
        self.log(f"{tag}:done")

    async def tick(self, tag: str, total_s: float, step_s: float) -> None:
        """Log a tick every step."""
        step_s = self.pace.step(f"{tag}:tick", step_s, after=f"{tag}:start")
        for step in range(1, round(total_s / step_s) + 1):
            await asyncio.sleep(step_s)
            self.log(f"{tag}:tick", at=round(step * step_s * 1000))

    def float(self, tag: str, total_s: float, step_s: float | None = None) -> None:
        """Start work and give it to nobody."""
        self.floating.append(asyncio.create_task(self.work(tag, total_s, step_s), name=tag))


async def lifespan(scope: Any, receive: Any, send: Any) -> None:
    """Start and stop with the server; make room for what requests share."""
    scope["state"]["shared"] = {}
    for _ in range(2):
        kind = (await receive())["type"]
        await send({"type": f"{kind}.complete"})


def asgi(handler: Callable[[Desk, Any, Any], Awaitable[None]]) -> App:
    """Make an ASGI app of a handler that answers itself."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await lifespan(scope, receive, send)
        else:
            await handler(Desk(scope), receive, send)

    app.__doc__ = handler.__doc__
    return app


def answering(handler: Callable[[Desk], Awaitable[str | None]]) -> App:
    """Make an ASGI app of a handler: what it returns, or `ok`, is the answer's body."""

    async def answer(desk: Desk, receive: Any, send: Any) -> None:
        del receive
        body = await handler(desk)
        await start(send)
        await end(send, (body or "ok").encode())

    answer.__doc__ = handler.__doc__
    return asgi(answer)


async def start(send: Any) -> None:
    """Begin an answer."""
    await send({"type": "http.response.start", "status": 200, "headers": []})


async def piece(send: Any, body: bytes) -> None:
    """Send a part of the answer."""
    await send({"type": "http.response.body", "body": body, "more_body": True})


async def end(send: Any, body: bytes = b"") -> None:
    """Send the answer's end."""
    await send({"type": "http.response.body", "body": body, "more_body": False})
