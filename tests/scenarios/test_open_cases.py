"""Open cases that a scenario of our own handler cannot show: they are about another app."""

import asyncio
from typing import Any

from platform_sim.world.clients import Client, Leave
from tests.support.asgi import lifetime_of
from tests.support.stage import Stage
from tests.support.virtual import run_virtual


def test_o04_a_client_that_leaves_half_way_through_its_body_ends_the_response_phase() -> None:
    """Work registered at 0.1 begins at the disconnect, at 0.6, and may go on until 30.6.

    Our own handler registers nothing before it has the whole body; this app does.
    """

    def app_of(stage: Stage) -> Any:
        async def app(scope: Any, receive: Any, send: Any) -> None:
            del send
            left = asyncio.Event()

            async def deliver() -> None:
                await left.wait()
                stage.write(f"delivery starts, {lifetime_of(scope)['remaining']()} s left")
                await stage.work("delivered", 0.3)

            await asyncio.sleep(0.1)
            lifetime_of(scope)["wait_until"](deliver())
            message = await receive()
            while message["type"] == "http.request":
                message = await receive()
            left.set()

        return app

    async def main() -> Stage:
        stage = Stage(app_of)
        client = Client(
            path="/", headers={}, body=b"0123456789", body_after_s=9.0, leave=Leave(after_s=0.6)
        )
        answer = await client.ask(stage.emulator)
        assert answer.status is None
        await stage.rest()
        return stage

    assert run_virtual(main).log == [(0.6, "delivery starts, 30.0 s left"), (0.9, "delivered")]
