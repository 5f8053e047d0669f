"""The lifespan of one web replica's app: it starts, it is shut down in order, or it is killed.

Rules: it has a gate of its own, as a request has: what its start-up began (tasks, timers) belongs
to it, and none of its lines runs after a kill or during a freeze. Whoever waits for it then is
told that it is gone.

Not here: requests (`replicas`), what a server makes of a refused start.
"""

import asyncio
from collections.abc import MutableMapping
from contextvars import Context
from typing import Any

from platform_sim.lifetime.births import CURRENT_GATE, mind_births
from platform_sim.lifetime.emulator import App
from platform_sim.lifetime.frozen import freeze, thaw
from platform_sim.lifetime.gate import Gate, GateState
from platform_sim.lifetime.residue import drop_residue

__all__ = ["Lifespan", "shut"]

_GONE = "gone"


def shut(gate: Gate) -> None:
    """Kill what passes a gate, whether or not it is frozen."""
    loop = asyncio.get_running_loop()
    thaw(loop, gate)  # what was parked goes back onto the loop: without it no task could end
    drop_residue(loop, gate, gate.kill())


class Lifespan:
    """One app's lifespan.

    Attributes:
        refusal: Why the app did not start, or None.
    """

    def __init__(self, app: App) -> None:
        self.refusal: str | None = None
        self._app = app
        self._gate = Gate(owner="lifespan")
        self._task: asyncio.Task[None] | None = None
        self._to_app: asyncio.Queue[MutableMapping[str, Any]] = asyncio.Queue()
        self._told: asyncio.Queue[MutableMapping[str, Any]] = asyncio.Queue()

    @property
    def frozen(self) -> bool:
        """Whether it stands still."""
        return self._gate.state is GateState.FROZEN

    async def start(self) -> bool:
        """Run the app's start-up; tell whether it came up."""
        loop = asyncio.get_running_loop()
        mind_births(loop)
        context = Context()
        context.run(CURRENT_GATE.set, self._gate)
        scope = {"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}
        self._to_app.put_nowait({"type": "lifespan.startup"})
        self._task = loop.create_task(
            _call(self._app, scope, self._to_app.get, self._told.put), context=context
        )
        self._task.add_done_callback(self._ended)
        message = await self._told.get()
        if message["type"] == "lifespan.startup.failed":
            self.refusal = message.get("message", "")
        elif message["type"] == _GONE:
            self.refusal = message["error"]
        return bool(message["type"] == "lifespan.startup.complete")

    async def close(self) -> None:
        """Run the app's shutdown, and wait until it is over or killed."""
        if self._task is None or self._task.done() or self._gate.state is GateState.KILLED:
            return
        self._to_app.put_nowait({"type": "lifespan.shutdown"})
        while (await self._told.get())["type"] != _GONE:
            pass

    def kill(self) -> None:
        """Let no further line of it run."""
        if self._task is None or self._task.done():
            return
        shut(self._gate)
        self._told.put_nowait({"type": _GONE, "error": None})

    def freeze(self) -> None:
        """Step nothing of it."""
        freeze(asyncio.get_running_loop(), self._gate)

    def thaw(self) -> None:
        """Let it go on."""
        thaw(asyncio.get_running_loop(), self._gate)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        failed = None if task.cancelled() else task.exception()
        self._told.put_nowait({"type": _GONE, "error": repr(failed) if failed else None})


async def _call(app: App, scope: Any, receive: Any, send: Any) -> None:
    await app(scope, receive, send)
