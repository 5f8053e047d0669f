"""The world outside: what has left arrives."""

import asyncio

import pytest

from platform_sim.lab.sweep.errors import SweepError
from platform_sim.lab.sweep.outside import CURRENT_OUTSIDE, Arrival, OutsideWorld, outside_world
from tests.support.virtual import run_virtual


def test_a_call_arrives_half_way_and_takes_its_time() -> None:
    """On virtual time, so exactly."""
    world = OutsideWorld()

    async def main() -> float:
        await world.call("post", {"id": 1}, takes_s=2.0)
        return asyncio.get_running_loop().time()

    assert run_virtual(main) == 2.0
    assert world.arrivals == [Arrival(at_s=1.0, name="post", payload={"id": 1})]
    assert world.payloads("post") == [{"id": 1}]
    assert world.payloads("else") == []


def test_a_caller_that_goes_away_does_not_stop_what_has_left() -> None:
    """It is under way."""
    world = OutsideWorld()

    async def main() -> None:
        caller = asyncio.create_task(world.call("post"))
        await asyncio.sleep(0)
        caller.cancel()
        await asyncio.sleep(1.0)

    run_virtual(main)

    assert world.payloads("post") == [None]


def test_the_outside_is_the_running_trials() -> None:
    """Outside a sweep there is none."""
    with pytest.raises(SweepError, match="only inside a cut sweep"):
        outside_world()
    world = OutsideWorld()
    token = CURRENT_OUTSIDE.set(world)

    assert outside_world() is world
    CURRENT_OUTSIDE.reset(token)
