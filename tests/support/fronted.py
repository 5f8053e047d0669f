"""An app for tests of processes: each answer names the process that gave it."""

import asyncio
import os
import time
from pathlib import Path
from typing import Any

from platform_sim.lifetime.wait_until import EXTENSION

__all__ = ["app"]

_KEPT: list[Any] = []


async def _write(path: str, sleep_s: float, line: str) -> None:
    await asyncio.sleep(sleep_s)
    _append(Path(path), f"{line} {os.getpid()}\n")


def _append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


async def _block(after_s: float, for_s: float) -> None:
    await asyncio.sleep(after_s)
    time.sleep(for_s)  # noqa: ASYNC251  blocking is the point


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Answer by path, in the second's fractions that the query says.

    `/long` registers 60 s of work, `/work` some that writes to the file named in the query,
    `/blocked` some that blocks the event loop, `/slow` answers after 0.5 s, `/floating` leaves a
    task that writes.
    """
    if scope["type"] != "http":
        return
    wait_until = scope["extensions"][EXTENSION]["wait_until"]
    path, query = scope["path"], scope["query_string"].decode()
    while (await receive()).get("more_body", False):
        pass
    if path == "/long":
        wait_until(asyncio.sleep(60.0))
    elif path == "/work":
        wait_until(_write(query, 0.3, "work"))
    elif path == "/floating":
        _KEPT.append(asyncio.create_task(_write(query, 0.3, "floating")))
    elif path == "/blocked":
        wait_until(_block(0.05, 60.0))
    elif path == "/stall":
        time.sleep(float(query))  # noqa: ASYNC251  blocking is the point
    elif path == "/slow":
        await asyncio.sleep(float(query or 0.5))
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(os.getpid()).encode()})
