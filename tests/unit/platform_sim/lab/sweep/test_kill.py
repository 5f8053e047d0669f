"""Killing a request, also one that the platform is cutting already."""

import asyncio
from dataclasses import replace
from typing import Any

from platform_sim.lab.sweep.kill import kill_request
from platform_sim.lifetime.emulator import Emulator
from platform_sim.lifetime.gate import GateState
from platform_sim.lifetime.invocation import Invocation
from platform_sim.lifetime.profile import WORKERS
from tests.support.asgi import call, lifetime_of, respond
from tests.support.virtual import run_virtual

BRIEF = replace(WORKERS, allowance_s=1.0, cancel_grace_s=0.5)


def test_a_request_in_its_grace_is_killed_too() -> None:
    """Its cleanup after the platform's cancellation stops in the middle."""
    said: list[str] = []
    seen: list[Invocation] = []

    async def lingers() -> None:
        try:
            await asyncio.sleep(100.0)
        except asyncio.CancelledError:
            said.append("cancelled")
            await asyncio.sleep(0.2)
            said.append("cleaned up")

    async def app(scope: Any, _receive: Any, send: Any) -> None:
        lifetime_of(scope)["wait_until"](lingers())
        await respond(send)

    async def main() -> None:
        emulator = Emulator(app, profile=BRIEF, on_start=seen.append)
        await call(emulator)
        await asyncio.sleep(1.1)
        kill_request(seen[0])
        await asyncio.sleep(10.0)

        assert emulator.alive == ()

    run_virtual(main)

    assert said == ["cancelled"]
    assert seen[0].gate.state is GateState.KILLED
