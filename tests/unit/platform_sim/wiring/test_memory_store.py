"""The memory store of people's tests."""

import asyncio

from platform_sim.lab.sweep.loop import run_virtual
from platform_sim.wiring.memory_store import loop_wall_ms, open_memory_store
from storage.marker import Draft


def test_the_store_lives_on_the_running_loops_time() -> None:
    """What is stored carries the virtual instant."""
    kept = open_memory_store()

    async def main() -> int:
        await asyncio.sleep(12.5)
        draft = Draft(
            operation_id="op", accept_id="a", destination="d", payload=b"", fingerprint="f"
        )
        await kept.store.accept(draft, claim=None, within_s=1.0)
        return loop_wall_ms()

    now_ms = run_virtual(main)

    assert now_ms % 60_000 == 12_500
    assert kept.rows["op"]["created_at_ms"] == now_ms
    assert kept.transport.rows == kept.rows
