"""The due index: what is found, where, and in which order."""

import pytest

from storage.marker import Claim, Draft, Settlement
from storage.replies import DuePage
from storage.store import Lane, Store
from storage.transport.memory import MemoryTransport
from tests.support.rows import claimed_row
from tests.support.stores import Backend, WallClock

pytestmark = pytest.mark.anyio

WITHIN_S = 10.0


async def test_a_page_lists_what_is_due_oldest_first(store: Store, backend: Backend) -> None:
    """Later ones and other shards are left out."""
    for operation_id, due_at, shard in [
        ("third", 300, "n01"),
        ("first", 100, "n01"),
        ("later", 301, "n01"),
        ("elsewhere", 100, "n02"),
        ("second", 200, "n01"),
    ]:
        backend.put_row(claimed_row(operation_id, due_at=due_at, due_shard=shard))

    page = await store.due("n01", until_ms=300, limit=10, within_s=WITHIN_S)

    assert DuePage(("first", "second", "third"), None) == page


async def test_pages_go_on_where_the_last_one_ended(store: Store, backend: Backend) -> None:
    """Every operation comes exactly once, also among those due at the same instant."""
    for number in range(5):
        backend.put_row(claimed_row(f"op-{number}", due_at=100 + number // 2, due_shard="n00"))

    seen: list[str] = []
    page = await store.due("n00", until_ms=999, limit=2, within_s=WITHIN_S)
    seen += page.operation_ids
    while page.after is not None:
        page = await store.due("n00", until_ms=999, limit=2, after=page.after, within_s=WITHIN_S)
        seen += page.operation_ids

    assert sorted(seen) == [f"op-{number}" for number in range(5)]
    assert {"op-0", "op-1"} == set(seen[:2])


async def test_an_empty_shard_is_an_empty_page(store: Store) -> None:
    """Nothing due is an answer."""
    assert DuePage((), None) == await store.due("r03", until_ms=1, limit=9, within_s=WITHIN_S)


async def test_a_marker_is_found_from_accept_until_it_is_settled(
    store: Store, wall: WallClock
) -> None:
    """Nothing acknowledged is lost: at every moment one shard lists it, at its due time."""
    draft = Draft(operation_id="op", accept_id="a", destination="d", payload=b"", fingerprint="f")

    async def found() -> list[str]:
        pages = [
            await store.due(shard, until_ms=wall.ms + 60_000, limit=9, within_s=WITHIN_S)
            for shard in store.shards()
        ]
        return [operation_id for page in pages for operation_id in page.operation_ids]

    accepted = await store.accept(
        draft, claim=Claim(claim_id="own", lease_s=45.0), within_s=WITHIN_S
    )
    claimed = await found()
    await store.release(
        accepted.marker,
        uncertain=True,
        due_at_ms=wall.ms,
        settlement=Settlement(attempts=1),
        within_s=WITHIN_S,
    )
    waiting = await found()
    await store.confirm("op", Settlement(), within_s=WITHIN_S)
    settled = await found()

    assert (claimed, waiting, settled) == (["op"], ["op"], [])


async def test_the_shards_of_both_lanes_are_listed_never_tried_first(wall: WallClock) -> None:
    """A redrive run can give each lane its share."""
    store = Store(MemoryTransport(), shard_count=2, now_ms=wall)

    assert store.shards() == ("n00", "n01", "r00", "r01")
    assert store.shards(Lane.NEW) == ("n00", "n01")
    assert store.shards(Lane.RETRIED) == ("r00", "r01")
