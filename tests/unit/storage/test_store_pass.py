"""A pass's hold on a marker: claim, takeover, heartbeat, and rows whose claim is broken."""

from typing import Any

import anyio
import pytest

from storage.errors import NotHeld
from storage.marker import Claim
from storage.replies import Refused, Written, read_marker
from storage.states import State
from storage.store import Lane, Store
from tests.support.rows import NOW_MS, claimed_row
from tests.support.stores import Backend, WallClock

pytestmark = pytest.mark.anyio

WITHIN_S = 10.0
NEXT = Claim(claim_id="next", lease_s=45.0)


@pytest.mark.parametrize(
    ("state", "unknown"), [(State.UNDELIVERED, False), (State.UNCERTAIN, True)]
)
async def test_a_claim_begins_a_pass_and_keeps_unknown(
    store: Store, backend: Backend, wall: WallClock, state: State, *, unknown: bool
) -> None:
    """Claiming says nothing about what happened before."""
    backend.put_row(
        claimed_row(
            state=state, unknown=unknown, claim_id=None, lease_until_ms=None, due_at=wall.ms
        )
    )

    reply = await store.claim("op", NEXT, within_s=WITHIN_S)

    assert isinstance(reply, Written)
    assert reply.marker.state is State.CLAIMED
    assert unknown == reply.marker.unknown
    assert reply.marker.claim_id == "next"
    assert wall.ms + 45_000 == reply.marker.lease_until_ms == reply.marker.due_at_ms
    assert (reply.marker.attempts, reply.marker.passes) == (0, 2)
    assert await store.read("op", within_s=WITHIN_S) == reply.marker


async def test_a_claim_repeated_after_a_lost_reply_is_won(store: Store, backend: Backend) -> None:
    """The row carries our own claim id: nobody else won."""
    backend.put_row(claimed_row(state="undelivered"))
    first = await store.claim("op", NEXT, within_s=WITHIN_S)

    again = await store.claim("op", NEXT, within_s=WITHIN_S)

    assert isinstance(first, Written)
    assert first == again


async def test_a_refused_claim_shows_who_holds_it(store: Store, backend: Backend) -> None:
    """Redrive learns from the refusal whom to take over, without a read."""
    row = claimed_row()
    backend.put_row(row)

    assert Refused(read_marker(row)) == await store.claim("op", NEXT, within_s=WITHIN_S)
    assert Refused(None) == await store.claim("nobody", NEXT, within_s=WITHIN_S)


async def test_a_waiting_marker_without_due_time_or_shard_is_due_and_repaired(
    store: Store, backend: Backend, wall: WallClock
) -> None:
    """What nobody could ever prove to be early must not be lost."""
    backend.put_row(claimed_row(state="undelivered", due_at=None, due_shard=None))

    reply = await store.claim("op", NEXT, within_s=WITHIN_S)

    assert isinstance(reply, Written)
    assert wall.ms + 45_000 == reply.marker.due_at_ms
    assert reply.marker.due_shard in store.shards()


async def test_a_takeover_rewrites_the_claim_and_marks_unknown(
    store: Store, backend: Backend, wall: WallClock
) -> None:
    """The lost pass may have sent once; no reader ever sees an unclaimed marker in between."""
    row = claimed_row(lease_until_ms=wall.ms - 5_000)
    backend.put_row(row)

    reply = await store.takeover(read_marker(row), NEXT, within_s=WITHIN_S)

    assert isinstance(reply, Written)
    marker = reply.marker
    assert (marker.state, marker.claim_id, marker.unknown) == (State.CLAIMED, "next", True)
    assert (marker.attempts, marker.passes) == (1, 2)
    assert wall.ms + 45_000 == marker.lease_until_ms == marker.due_at_ms
    assert marker.due_shard in store.shards(Lane.RETRIED)


async def test_a_takeover_repeated_after_a_lost_reply_is_won(
    store: Store, backend: Backend
) -> None:
    """It is counted once, not twice."""
    row = claimed_row()
    backend.put_row(row)
    first = await store.takeover(read_marker(row), NEXT, within_s=WITHIN_S)

    again = await store.takeover(read_marker(row), NEXT, within_s=WITHIN_S)

    assert isinstance(first, Written)
    assert first == again


async def test_of_two_takeovers_of_one_claim_one_wins(store: Store, backend: Backend) -> None:
    """Both saw the same lost claim; the second finds the first's."""
    row = claimed_row()
    backend.put_row(row)
    replies = []

    async def take(claim_id: str) -> None:
        claim = Claim(claim_id=claim_id, lease_s=45.0)
        replies.append(await store.takeover(read_marker(row), claim, within_s=WITHIN_S))

    async with anyio.create_task_group() as tasks:
        for claim_id in ("one", "two"):
            tasks.start_soon(take, claim_id)

    assert sorted(type(reply).__name__ for reply in replies) == ["Refused", "Written"]
    assert backend.rows()["op"]["passes"] == 2


BROKEN_CLAIMS: list[dict[str, Any]] = [
    {"claim_id": None},
    {"claim_id": 7},
    {"lease_until_ms": None},
    {"lease_until_ms": "tomorrow"},
    {"lease_until_ms": str(NOW_MS + 3_600_000)},
    {"lease_until_ms": True},
    {"claim_id": None, "lease_until_ms": None},
    {"claim_id": 7, "lease_until_ms": "tomorrow", "unknown": "perhaps"},
]


@pytest.mark.parametrize("broken", BROKEN_CLAIMS, ids=str)
async def test_a_row_with_a_broken_claim_is_readable_and_taken_over_once(
    store: Store, backend: Backend, broken: dict[str, Any]
) -> None:
    """A lease that cannot be read is over, and a claim id that is none is compared as none."""
    backend.put_row(claimed_row(**broken))
    seen = await store.read("op", within_s=WITHIN_S)
    assert seen is not None

    first = await store.takeover(seen, NEXT, within_s=WITHIN_S)
    late = await store.takeover(seen, Claim(claim_id="late", lease_s=45.0), within_s=WITHIN_S)

    assert isinstance(first, Written)
    assert first.marker.claim_id == "next"
    assert Refused(first.marker) == late


async def test_a_heartbeat_moves_the_lease_and_nothing_else(
    store: Store, backend: Backend, wall: WallClock
) -> None:
    """The lease is no key: the write costs one unit and the index stays."""
    row = claimed_row(lease_until_ms=wall.ms + 1_000)
    backend.put_row(row)

    reply = await store.heartbeat(read_marker(row), lease_s=45.0, within_s=WITHIN_S)

    assert isinstance(reply, Written)
    assert row | {"lease_until_ms": wall.ms + 45_000} == backend.rows()["op"]


async def test_a_heartbeat_never_shortens_a_lease(
    store: Store, backend: Backend, wall: WallClock
) -> None:
    """An older heartbeat that arrives late finds the longer lease, and the claim still ours."""
    row = claimed_row(lease_until_ms=wall.ms + 60_000)
    backend.put_row(row)

    reply = await store.heartbeat(read_marker(row), lease_s=45.0, within_s=WITHIN_S)

    assert Written(read_marker(row)) == reply
    assert row == backend.rows()["op"]


async def test_a_heartbeat_does_not_revive_a_lost_claim(store: Store, backend: Backend) -> None:
    """Whoever was taken over learns it from the refusal."""
    row = claimed_row()
    backend.put_row(row)
    taken = await store.takeover(read_marker(row), NEXT, within_s=WITHIN_S)

    reply = await store.heartbeat(read_marker(row), lease_s=45.0, within_s=WITHIN_S)

    assert isinstance(taken, Written)
    assert Refused(taken.marker) == reply


async def test_a_marker_without_a_claim_cannot_be_held(store: Store) -> None:
    """A holder's write on somebody's shown marker is the caller's mistake, not a lost race."""
    shown = read_marker(claimed_row(claim_id=None))

    with pytest.raises(NotHeld, match="op: this marker carries no claim id"):
        await store.heartbeat(shown, lease_s=45.0, within_s=WITHIN_S)
