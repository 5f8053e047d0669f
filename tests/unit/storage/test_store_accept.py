"""Accepting: one conditional create, and what its refusals mean."""

from datetime import timedelta

import anyio
import pytest

from storage.errors import BrokenMarker, StoreUnavailable
from storage.marker import Claim, Draft, Settlement
from storage.replies import Accepted, Mismatched, Replayed
from storage.states import State
from storage.store import DEFAULT_RETENTION_S, Store
from storage.transport.base import NotStored, Reply
from storage.transport.memory import MemoryTransport
from tests.support.rows import claimed_row
from tests.support.stores import Backend, WallClock

pytestmark = pytest.mark.anyio

WITHIN_S = 10.0
PASS = Claim(claim_id="pass-1", lease_s=45.0)


def draft(accept_id: str = "accept-1", *, fingerprint: str = "print") -> Draft:
    """Return an operation about to be accepted."""
    return Draft(
        operation_id="op",
        accept_id=accept_id,
        destination="shop",
        payload=b"\x00body",
        fingerprint=fingerprint,
    )


async def test_an_accept_with_a_claim_is_held_until_its_lease_ends(
    store: Store, wall: WallClock
) -> None:
    """The inline pass needs no second write to begin; a lost one is due when its lease ends."""
    reply = await store.accept(draft(), claim=PASS, within_s=WITHIN_S)

    marker = await store.read("op", within_s=WITHIN_S)
    assert marker is not None
    assert Accepted(marker) == reply
    assert marker.state is State.CLAIMED
    assert marker.claim_id == "pass-1"
    assert wall.ms + 45_000 == marker.lease_until_ms == marker.due_at_ms
    assert (marker.attempts, marker.passes, marker.unknown) == (0, 1, False)
    assert marker.payload == b"\x00body"
    assert wall.ms == marker.created_at_ms == marker.updated_at_ms


async def test_an_accept_without_a_claim_waits_and_is_due_at_once(
    store: Store, wall: WallClock
) -> None:
    """No pass follows, so redrive may take it from now on."""
    reply = await store.accept(draft(), claim=None, within_s=WITHIN_S)

    assert reply.marker.state is State.UNDELIVERED
    assert wall.ms == reply.marker.due_at_ms
    assert reply.marker.claim_id is None
    assert reply.marker.passes == 0


async def test_an_accept_without_a_claim_may_name_its_due_time(
    store: Store, wall: WallClock
) -> None:
    """An operation can be owed for later."""
    reply = await store.accept(draft(), claim=None, due_at_ms=wall.ms + 5_000, within_s=WITHIN_S)

    assert wall.ms + 5_000 == reply.marker.due_at_ms


async def test_the_same_request_again_is_a_replay(store: Store) -> None:
    """Same operation and fingerprint: the marker that is there, and no write."""
    first = await store.accept(draft(), claim=PASS, within_s=WITHIN_S)

    again = await store.accept(draft("accept-2"), claim=PASS, within_s=WITHIN_S)

    assert Replayed(first.marker) == again


async def test_another_request_under_the_same_id_is_mismatched(store: Store) -> None:
    """Same operation, another fingerprint: never taken for a replay."""
    first = await store.accept(draft(), claim=PASS, within_s=WITHIN_S)

    again = await store.accept(
        draft("accept-2", fingerprint="other"), claim=PASS, within_s=WITHIN_S
    )

    assert Mismatched(first.marker) == again


async def test_a_refusal_by_ones_own_lost_reply_is_an_accept(store: Store) -> None:
    """The first try landed and its reply was lost: the repeat is refused by its own row."""
    first = await store.accept(draft(), claim=PASS, within_s=WITHIN_S)

    again = await store.accept(draft(), claim=PASS, within_s=WITHIN_S)

    assert first == again
    assert isinstance(again, Accepted)


@pytest.mark.parametrize("fingerprint", ["print", "other"])
async def test_o17_two_identical_accepts_race_and_one_creates(
    store: Store, backend: Backend, fingerprint: str
) -> None:
    """One conditional create wins; the other is a replay, or a mismatch with another body."""
    replies = []

    async def accept(one: Draft) -> None:
        replies.append(await store.accept(one, claim=PASS, within_s=WITHIN_S))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(accept, draft("accept-1"))
        tasks.start_soon(accept, draft("accept-2", fingerprint=fingerprint))

    kinds = sorted(type(reply).__name__ for reply in replies)
    loser = "Replayed" if fingerprint == "print" else "Mismatched"
    assert sorted(["Accepted", loser]) == kinds
    assert len({reply.marker.accept_id for reply in replies}) == 1
    assert list(backend.rows()) == ["op"]


async def test_an_expired_marker_counts_as_absent(store: Store, wall: WallClock) -> None:
    """The store deletes expired rows days late; until then they must not answer for anybody."""
    await store.accept(draft(), claim=PASS, within_s=WITHIN_S)
    await store.confirm("op", Settlement(attempts=1), within_s=WITHIN_S)
    wall.advance(DEFAULT_RETENTION_S - 1)
    kept = await store.read("op", within_s=WITHIN_S)

    replay = await store.accept(draft("accept-2"), claim=PASS, within_s=WITHIN_S)
    wall.advance(timedelta(seconds=1).total_seconds())
    expired = await store.read("op", within_s=WITHIN_S)
    fresh = await store.accept(
        draft("accept-3", fingerprint="other"), claim=None, within_s=WITHIN_S
    )

    assert kept is not None
    assert kept.state is State.DELIVERED
    assert isinstance(replay, Replayed)
    assert expired is None
    assert isinstance(fresh, Accepted)
    assert await store.read("op", within_s=WITHIN_S) == fresh.marker
    assert fresh.marker.expires_at_s is None


async def test_a_marker_that_is_not_there_reads_as_none(store: Store) -> None:
    """Absence is an answer."""
    assert await store.read("nobody", within_s=WITHIN_S) is None


async def test_a_row_without_its_state_is_broken(store: Store, backend: Backend) -> None:
    """Nothing can be done with it, and saying so is better than guessing."""
    backend.put_row(claimed_row(state=None))

    with pytest.raises(BrokenMarker, match="op: state is missing"):
        await store.read("op", within_s=WITHIN_S)


@pytest.mark.parametrize("within_s", [0.0, -1.0])
async def test_no_time_left_means_no_call(wall: WallClock, within_s: float) -> None:
    """A call that cannot end in time is not begun, so it has certainly not written."""
    memory = MemoryTransport()
    store = Store(memory, now_ms=wall)

    with pytest.raises(StoreUnavailable, match="no time left") as refused:
        await store.accept(draft(), claim=PASS, within_s=within_s)

    assert not refused.value.may_have_written
    assert dict(memory.rows) == {}


async def test_a_refusal_without_its_row_is_no_answer(wall: WallClock) -> None:
    """A store that hides the row in its way cannot be told from one's own lost reply."""

    class Silent(MemoryTransport):
        async def execute(self, request: object, *, within_s: float) -> Reply:
            return NotStored(row=None)

    with pytest.raises(BrokenMarker, match="no row was returned"):
        await Store(Silent(), now_ms=wall).accept(draft(), claim=PASS, within_s=WITHIN_S)
