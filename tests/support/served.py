"""Small ASGI apps that tests serve in processes of their own, by import string."""

import asyncio
from pathlib import Path
from typing import Any

from platform_sim.lifetime.wait_until import EXTENSION

__all__ = ["app", "refusing"]


async def _log(scope: Any, sleep_s: float, what: str) -> None:
    """Wait, then add a line to the file the request names; a cancellation is a line too."""
    path = Path(scope["query_string"].decode().partition("log=")[2])
    try:
        await asyncio.sleep(sleep_s)
    except asyncio.CancelledError:
        _write(path, f"{what} cancelled")
        raise
    _write(path, what)


def _write(path: Path, line: str) -> None:
    with path.open("a") as file:
        file.write(line + "\n")


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Answer by path: `/quick` works on for 0.3 s, `/long` for 60 s, `/slow` answers after 60 s.

    `/stream` sends a chunk every 50 ms for 60 s, with registered work of 0.5 s.
    """
    if scope["type"] != "http":
        return
    wait_until = scope["extensions"][EXTENSION]["wait_until"]
    path = scope["path"]
    while (await receive()).get("more_body", False):
        pass
    if path in ("/quick", "/stream"):
        wait_until(_log(scope, 0.5 if path == "/stream" else 0.3, "work"))
    elif path == "/long":
        wait_until(_log(scope, 60.0, "work"))
    elif path == "/slow":
        await _log(scope, 60.0, "handler")
    await send({"type": "http.response.start", "status": 200, "headers": []})
    if path == "/stream":
        for _ in range(1200):
            await send({"type": "http.response.body", "body": b"chunk", "more_body": True})
            await asyncio.sleep(0.05)
    await send({"type": "http.response.body", "body": b"ok"})


async def refusing(scope: Any, receive: Any, send: Any) -> None:
    """Refuse to start, with a reason."""
    del scope
    await receive()
    await send({"type": "lifespan.startup.failed", "message": "no table of that name"})
