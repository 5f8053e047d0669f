"""What is taken off a loop that shows less of itself than CPython's own."""

import asyncio
import gc
from types import SimpleNamespace
from typing import Any

from platform_sim.lifetime.gate import Gate
from platform_sim.lifetime.residue import drop_residue


async def never() -> None:
    """Be never stepped."""
    raise AssertionError


def test_on_another_loop_the_kill_stops_coroutines_only() -> None:
    """No list of timers, no list of generators: nothing to take off, and no error."""
    gate = Gate()
    stepper = gate.admit(never(), None)
    other_loop: Any = SimpleNamespace()

    drop_residue(other_loop, gate, gate.kill())
    del stepper
    gc.collect()

    assert list(gate.live) == []


def test_what_was_not_born_in_the_request_stays() -> None:
    """Timers of others on the same loop still fire."""
    gate = Gate()
    fired: list[str] = []

    async def main() -> None:
        asyncio.get_running_loop().call_later(0.01, fired.append, "timer")
        asyncio.get_running_loop().call_soon(fired.append, "call")
        drop_residue(asyncio.get_running_loop(), gate, gate.kill())
        await asyncio.sleep(0.02)

    asyncio.run(main())

    assert fired == ["call", "timer"]
