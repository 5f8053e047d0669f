"""A receipt service that is outside every app here, reached over a network that takes its time."""

from typing import Any

from platform_sim.lab.sweep.outside import outside_world

__all__ = ["send_receipt"]


async def send_receipt(order: dict[str, Any]) -> None:
    """Send the receipt of an order: connect, then post it."""
    world = outside_world()
    await world.call("connect", takes_s=0.05)
    await world.call("receipts", order["id"], takes_s=0.2)
