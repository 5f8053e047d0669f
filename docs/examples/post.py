"""A receipt service that is outside every app here, reached over a network that takes its time.

`outside_world().call(name, payload)` stands for one exchange over that network; what arrived is
read back with `outside.payloads(name)`. A real send waits twice: for the connection, when nothing
has left yet, and for the reply, when the receipt may be there already. A cut costs something else
at each, so the stand-in waits twice as well; "connect" is only a name, and no check looks at it.
"""

from typing import Any

from platform_sim.lab.sweep.outside import outside_world

__all__ = ["send_receipt"]


async def send_receipt(order: dict[str, Any]) -> None:
    """Send the receipt of an order: connect, then post it."""
    world = outside_world()
    await world.call("connect", takes_s=0.05)
    await world.call("receipts", order["id"], takes_s=0.2)
