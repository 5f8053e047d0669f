"""Platform: a topology brought up, kept up until somebody asks it to stop, and taken down again.

Order: our own store, its preparation and the check that it is atomic, then receiver, web, redrive.
Whatever fails on the way takes down what was started. A second request to stop kills.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from platform_sim.host.processes import Say, Supervisor
from platform_sim.host.signals import Stopped, StopRequests, stop_requests
from platform_sim.host.topology import Topology

__all__ = ["run_until_stopped", "running_platform"]

_PREPARATION_S = 60.0


@asynccontextmanager
async def running_platform(
    topology: Topology, say: Say, stop: StopRequests
) -> AsyncIterator[Supervisor]:
    """Have the topology up while the block runs.

    Raises:
        ChildError: A process did not start.
        Stopped: A stop request came before all were up.
    """
    supervisor = Supervisor(say)
    try:
        await stop.unless(_bring_up(topology, supervisor))
        yield supervisor
    finally:
        await _take_down(supervisor, stop)


async def run_until_stopped(topology: Topology, say: Say, up: Callable[[], None]) -> str:
    """Have the topology up until a stop signal comes; return the signal's name.

    Args:
        topology: What to run.
        say: Told everything that happens.
        up: Called once, when everything is up.

    Raises:
        ChildError: A process did not start; nothing is left behind.
    """
    with stop_requests() as stop:
        with suppress(Stopped):
            async with running_platform(topology, say, stop):
                up()
                await stop.wait()
        return await stop.wait()


async def _bring_up(topology: Topology, supervisor: Supervisor) -> None:
    store = topology.store()
    if store is not None:
        await supervisor.start(store)
    for step in topology.preparations():
        await supervisor.run(step, within_s=_PREPARATION_S)
    for spec in topology.others():
        await supervisor.start(spec)


async def _take_down(supervisor: Supervisor, stop: StopRequests) -> None:
    """Stop everybody; whatever cancels us meanwhile does not cancel that."""
    hurrying = asyncio.ensure_future(_hurry(supervisor, stop))
    stopping = asyncio.ensure_future(supervisor.stop())
    try:
        while not stopping.done():
            with suppress(asyncio.CancelledError):
                await asyncio.shield(stopping)
    finally:
        hurrying.cancel()


async def _hurry(supervisor: Supervisor, stop: StopRequests) -> None:
    await stop.wait_again()
    supervisor.kill()
