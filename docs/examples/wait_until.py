"""An app that gives the receipt to the platform's `wait_until`, and still writes nothing down.

The platform lets the work go on for a while after the answer. What it cuts is lost all the same.
"""

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from docs.examples.post import send_receipt

__all__ = ["create_app"]


async def place_order(request: Request) -> JSONResponse:
    """Accept an order; its receipt follows, as long as the platform allows."""
    order = await request.json()
    request.scope["extensions"]["outlast.lifetime"]["wait_until"](send_receipt(order))
    return JSONResponse({"accepted": order["id"]}, status_code=202)


def create_app() -> Starlette:
    """Make the app."""
    return Starlette(routes=[Route("/orders", place_order, methods=["POST"])])
