"""The contract tells an app when an orderly stop has begun."""

import asyncio
from typing import Any

from platform_sim.lifetime.wait_until import EXTENSION
from tests.support.asgi import AsgiClient, respond
from tests.support.stage import Stage
from tests.support.virtual import run_virtual


def test_o07_stopping_is_said_from_the_drain_on_to_work_under_way() -> None:
    """Also to a request that was accepted before."""

    def asking(stage: Stage) -> Any:
        async def app(scope: Any, _receive: Any, send: Any) -> None:
            contract = scope["extensions"][EXTENSION]

            async def work() -> None:
                for _ in range(2):
                    stage.write(f"stopping: {contract['stopping']()}")
                    await asyncio.sleep(1.0)

            contract["wait_until"](work())
            await respond(send)

        return app

    async def main() -> Stage:
        stage = Stage(asking)
        serving = AsgiClient(stage.emulator).start()
        await asyncio.sleep(0.5)
        await stage.rest(10.0)
        await serving
        return stage

    assert run_virtual(main).log == [(0.0, "stopping: False"), (1.0, "stopping: True")]
