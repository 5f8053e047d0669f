"""One true time, and each replica's own idea of it."""

import asyncio

from platform_sim.world.clocks import EPOCH_MS, ReplicaClock, WorldClock
from tests.support.virtual import run_virtual


def test_a_frozen_replicas_monotonic_clock_stands_still_and_its_wall_clock_does_not() -> None:
    """As in a suspended machine."""

    async def main() -> list[tuple[float, int]]:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(100.0)
        clock = ReplicaClock(WorldClock(loop, loop.time()), skew_s=2.0)
        seen: list[tuple[float, int]] = []

        def look() -> None:
            seen.append((round(clock.monotonic_s(), 3), clock.wall_ms() - EPOCH_MS))

        clock.thaw()  # it is not frozen: nothing changes
        await asyncio.sleep(1.0)
        look()
        clock.freeze()
        await asyncio.sleep(5.0)
        clock.freeze()  # it is frozen already
        look()
        clock.thaw()
        await asyncio.sleep(1.0)
        look()
        return seen

    assert run_virtual(main) == [(1.0, 3000), (1.0, 8000), (2.0, 9000)]
