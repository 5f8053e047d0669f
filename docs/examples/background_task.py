"""A plain Starlette app that answers first and sends the receipt in a BackgroundTask.

It loses receipts: nothing remembers an order between its 202 and its receipt.
"""

from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from docs.examples.post import send_receipt

__all__ = ["create_app"]


async def place_order(request: Request) -> JSONResponse:
    """Accept an order; its receipt follows."""
    order = await request.json()
    follow_up = BackgroundTask(send_receipt, order)
    return JSONResponse({"accepted": order["id"]}, status_code=202, background=follow_up)


def create_app() -> Starlette:
    """Make the app."""
    return Starlette(routes=[Route("/orders", place_order, methods=["POST"])])
