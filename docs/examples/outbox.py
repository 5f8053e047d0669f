"""An app that writes the order down before it answers, and a scheduled run that sends what is due.

The smallest thing that survives every cut: an outbox. The run sends an order again when it cannot
know whether the last run did, so the receipt service must know an order by its id.
"""

import asyncio
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from docs.examples.post import send_receipt

__all__ = ["Outbox", "create_app", "send_due"]


class Outbox:
    """Stands for a table in a database: a write takes a moment, and is there or is not."""

    def __init__(self) -> None:
        self.due: dict[str, dict[str, Any]] = {}

    async def put(self, order: dict[str, Any]) -> None:
        """Write an order down."""
        await asyncio.sleep(0.01)
        self.due[order["id"]] = order
        await asyncio.sleep(0.01)

    async def settle(self, order_id: str) -> None:
        """Take an order off."""
        await asyncio.sleep(0.01)
        self.due.pop(order_id, None)


async def place_order(request: Request) -> JSONResponse:
    """Accept an order once it is written down."""
    order = await request.json()
    await request.app.state.outbox.put(order)
    return JSONResponse({"accepted": order["id"]}, status_code=202)


async def send_due(app: Starlette) -> None:
    """Send the receipts that are due; a scheduler calls this again and again."""
    outbox: Outbox = app.state.outbox
    for order in list(outbox.due.values()):
        await send_receipt(order)
        await outbox.settle(order["id"])


def create_app() -> Starlette:
    """Make the app with an outbox of its own."""
    app = Starlette(routes=[Route("/orders", place_order, methods=["POST"])])
    app.state.outbox = Outbox()
    return app
