"""The trivial app that is measured bare and emulated."""

import asyncio
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

__all__ = ["app", "cut_app"]


async def _home(request: Request) -> PlainTextResponse:
    del request
    return PlainTextResponse("ok")


app = Starlette(routes=[Route("/", _home)])
"""One route, one short answer."""


async def cut_app(scope: Any, receive: Any, send: Any) -> None:
    """Answer, and leave registered work that outlives any ceiling."""
    del receive
    scope["extensions"]["outlast.lifetime"]["wait_until"](asyncio.sleep(3600.0))
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"ok"})
