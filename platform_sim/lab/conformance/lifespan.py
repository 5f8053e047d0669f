"""An app's lifespan, run as a server runs it.

Rules: an app that knows no lifespan, that raises, returns, answers as if it were a request, or
takes more than a minute over it, is served without one. Only an app that says so refuses to start.

Not here: what the app does with it.
"""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from platform_sim.host.errors import LaunchError

__all__ = ["AppFailed", "Lifespan"]

_App = Callable[[Any, Any, Any], Awaitable[None]]
_LONGEST_START_S = 60.0


class AppFailed(LaunchError):
    """The app refused to start, or never lets time pass."""


class Lifespan:
    """One app's lifespan."""

    def __init__(self, app: _App, state: MutableMapping[str, Any]) -> None:
        self._app = app
        self._state = state
        self._to_app: asyncio.Queue[Any] = asyncio.Queue()
        self._started: asyncio.Future[MutableMapping[str, Any]]
        self._task: asyncio.Task[None]

    async def start(self) -> None:
        """Run the app's start-up.

        Raises:
            AppFailed: The app says that it cannot start.
        """
        self._started = asyncio.get_running_loop().create_future()
        self._to_app.put_nowait({"type": "lifespan.startup"})
        self._task = asyncio.create_task(self._run())
        either: set[asyncio.Future[Any]] = {self._task, self._started}
        await asyncio.wait(
            either,
            timeout=_LONGEST_START_S,
            return_when=asyncio.FIRST_COMPLETED,
        )
        if not self._started.done():
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=_LONGEST_START_S)
            return
        message = self._started.result()
        if message["type"] == "lifespan.startup.failed":
            why = message.get("message") or "it gives no reason"
            raise AppFailed(f"the app refused to start: {why}")

    async def _run(self) -> None:
        scope = {
            "type": "lifespan",
            "asgi": {"version": "3.0", "spec_version": "2.0"},
            "state": self._state,
        }
        try:
            await self._app(scope, self._to_app.get, self._send)
        except Exception:  # noqa: BLE001  as a server has it: this app knows no lifespan
            return

    async def _send(self, message: MutableMapping[str, Any]) -> None:
        if not message["type"].startswith("lifespan."):
            raise RuntimeError(f"{message['type']} is no message of a lifespan")
        if not self._started.done():
            self._started.set_result(message)

    async def stop(self) -> None:
        """Run the app's shutdown, and give it a minute for that."""
        self._to_app.put_nowait({"type": "lifespan.shutdown"})
        await asyncio.wait({self._task}, timeout=_LONGEST_START_S)
