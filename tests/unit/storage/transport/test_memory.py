"""The memory transport: exact, atomic, and cut where a real call can be cut."""

import anyio
import pytest

from storage.errors import StoreMisconfigured
from storage.marker import Draft, Settlement
from storage.store import Store
from storage.transport.memory import MemoryTransport
from tests.support.rows import claimed_row
from tests.support.stores import WallClock
from tests.support.virtual import run_virtual

DRAFT = Draft(operation_id="op", accept_id="a", destination="d", payload=b"body", fingerprint="f")


def test_a_call_cut_before_it_acts_writes_nothing(wall: WallClock) -> None:
    """The first place where a kill can fall."""
    memory = MemoryTransport()

    async def main() -> None:
        with anyio.CancelScope() as scope:
            scope.cancel()
            await Store(memory, now_ms=wall).accept(DRAFT, claim=None, within_s=1.0)

    run_virtual(main)

    assert dict(memory.rows) == {}


def test_a_call_cut_after_it_acted_has_written_and_brings_no_reply(wall: WallClock) -> None:
    """The second place: applied, but the reply is lost."""
    memory = MemoryTransport()
    replies: list[object] = []

    async def accept() -> None:
        replies.append(await Store(memory, now_ms=wall).accept(DRAFT, claim=None, within_s=1.0))

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(accept)
            while not memory.rows:
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()

    run_virtual(main)

    assert list(memory.rows) == ["op"]
    assert replies == []


def test_another_table_is_misconfigured(wall: WallClock) -> None:
    """As on the real service, a table that does not exist is no empty table."""
    store = Store(MemoryTransport(), table_name="other", now_ms=wall)

    with pytest.raises(StoreMisconfigured, match="'other'"):
        run_virtual(lambda: store.read("op", within_s=1.0))


def test_rows_are_shown_as_they_are_and_cannot_be_changed(wall: WallClock) -> None:
    """A test that looks at the rows must not write them by accident."""
    memory = MemoryTransport()
    memory.put_row(claimed_row())

    async def main() -> None:
        await Store(memory, now_ms=wall).confirm("op", Settlement(), within_s=1.0)
        await memory.aclose()

    run_virtual(main)

    assert memory.rows["op"]["state"] == "delivered"
    with pytest.raises(TypeError):
        memory.rows["op"] = {}  # type: ignore[index]
    with pytest.raises(TypeError):
        memory.rows["op"]["state"] = "lost"  # type: ignore[index]
