"""An ASGI app, served by import string, whose clients leave: what it does goes to a file.

`/unheld` answers after 60 s. `/held` does too, and registers work of 0.5 s. `/listening` is as
`/unheld` and listens for its client's leaving. `/stream` sends a piece each 50 ms for 60 s, with
registered work of 0.5 s.
"""

import asyncio
from pathlib import Path
from typing import Any

from platform_sim.lifetime.wait_until import EXTENSION

__all__ = ["app"]


class _Log:
    """The file that a request's query names."""

    def __init__(self, scope: Any) -> None:
        self._path = Path(scope["query_string"].decode().partition("log=")[2])

    def write(self, line: str) -> None:
        """Add a line."""
        with self._path.open("a") as file:
            file.write(line + "\n")

    async def work(self, what: str, sleep_s: float) -> None:
        """Write when it is done, and when it is cut."""
        try:
            await asyncio.sleep(sleep_s)
        except asyncio.CancelledError:
            self.write(f"{what} cancelled")
            raise
        self.write(f"{what} done")

    async def listen(self, receive: Any) -> None:
        """Write when the client has left."""
        while (await receive())["type"] != "http.disconnect":
            pass
        self.write("client left")


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Do as the path says."""
    if scope["type"] != "http":
        return
    log, path = _Log(scope), scope["path"]
    if path in {"/held", "/stream"}:
        scope["extensions"][EXTENSION]["wait_until"](log.work("work", 0.5))
    listening = asyncio.create_task(log.listen(receive)) if path == "/listening" else None
    start = {"type": "http.response.start", "status": 200, "headers": []}
    if path == "/stream":
        await send(start)
        for _ in range(1200):
            await send({"type": "http.response.body", "body": b"piece", "more_body": True})
            await asyncio.sleep(0.05)
    else:
        await log.work("handler", 60.0)
        await send(start)
    await send({"type": "http.response.body", "body": b"late"})
    del listening
