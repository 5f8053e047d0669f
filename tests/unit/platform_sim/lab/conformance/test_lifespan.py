"""What of a lifespan is not seen in a played plan."""

import asyncio
from typing import Any

from platform_sim.lab.conformance.lifespan import Lifespan
from tests.support.virtual import run_virtual


def test_an_app_that_will_not_end_is_left_behind() -> None:
    """Neither at its start nor at its stop does it hold the run for more than a minute."""
    cancelled: list[float] = []

    async def stubborn(scope: Any, receive: Any, send: Any) -> None:
        del scope
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        try:
            await asyncio.sleep(1e6)
        except asyncio.CancelledError:
            cancelled.append(asyncio.get_running_loop().time())
            raise

    async def main() -> float:
        lifespan = Lifespan(stubborn, {})
        await lifespan.start()
        await lifespan.stop()
        return asyncio.get_running_loop().time()

    assert run_virtual(main) == 60.0
    assert cancelled == [60.0]  # by the loop's end
