"""Joining people's tests to the store: a memory store whose time is the running event loop's.

Rules: time is the world's, so that on virtual time leases and due times pass with it; everything
else is the store as it is in production, over the memory transport.

Not here: fixtures (`platform_sim.pytest_plugin`).
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from platform_sim.world.clocks import EPOCH_MS
from storage.attributes import Row
from storage.store import Store
from storage.transport.memory import MemoryTransport

__all__ = ["MemoryStore", "open_memory_store"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryStore:
    """A store in memory.

    Attributes:
        store: What the handler uses.
        transport: What it stands on; several handlers may share it.
    """

    store: Store
    transport: MemoryTransport

    @property
    def rows(self) -> Mapping[str, Row]:
        """Every row by operation id, as it is now."""
        return self.transport.rows


def loop_wall_ms() -> int:
    """Return epoch milliseconds on the running loop's time, whose second 0 is fixed."""
    return EPOCH_MS + round(asyncio.get_running_loop().time() * 1000)


def open_memory_store() -> MemoryStore:
    """Open an empty store."""
    transport = MemoryTransport()
    return MemoryStore(store=Store(transport, now_ms=loop_wall_ms), transport=transport)
