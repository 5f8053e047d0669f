"""An app and a scheduled handler that log as a trace's script does, by import string."""

import asyncio
from typing import Any

from platform_sim.lifetime.wait_until import EXTENSION
from tests.support.asgi import respond

__all__ = ["NOTHING", "app", "scheduled"]

NOTHING = 0


async def _work(log: Any) -> None:
    await asyncio.sleep(1.0)
    log("work:done")


async def scheduled(scope: Any) -> None:
    """Register work of 1 s."""
    log = scope["extensions"]["outlast.conformance"]["log"]
    log("handler:start")
    scope["extensions"][EXTENSION]["wait_until"](_work(log))


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Register work of 1 s and answer."""
    del receive
    await scheduled(scope)
    await respond(send)
