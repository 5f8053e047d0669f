"""How a pass ends: confirm by identity, everything else under one's own claim."""

from collections.abc import Awaitable, Callable

import pytest

from storage.marker import Claim, Marker, Settlement
from storage.replies import Confirmed, Gone, Refused, WriteReply, Written, read_marker
from storage.states import State
from storage.store import DEFAULT_RETENTION_S, Lane, Store
from tests.support.rows import claimed_row
from tests.support.stores import Backend, WallClock

pytestmark = pytest.mark.anyio

WITHIN_S = 10.0
LAST = Settlement(attempts=2, last_outcome="uncertain", last_status=502, last_attempt_at_ms=77)

End = Callable[[Store, Marker], Awaitable[WriteReply]]


async def release(store: Store, held: Marker) -> WriteReply:
    """Hand back as uncertain."""
    return await store.release(
        held, uncertain=True, due_at_ms=99, settlement=LAST, within_s=WITHIN_S
    )


async def release_clean(store: Store, held: Marker) -> WriteReply:
    """Hand back as known not delivered."""
    return await store.release(
        held, uncertain=False, due_at_ms=99, settlement=LAST, within_s=WITHIN_S
    )


async def reject(store: Store, held: Marker) -> WriteReply:
    """Settle as refused for good."""
    return await store.reject(held, settlement=LAST, reason="422", within_s=WITHIN_S)


async def park(store: Store, held: Marker) -> WriteReply:
    """Settle for a person."""
    return await store.park(
        held, unknown=True, settlement=LAST, reason="too old", within_s=WITHIN_S
    )


ENDS = pytest.mark.parametrize("end", [release, release_clean, reject, park])


async def test_a_confirmation_settles_and_leaves_the_index(
    store: Store, backend: Backend, wall: WallClock
) -> None:
    """Delivered: no claim, nothing due, and an end to how long it answers."""
    backend.put_row(claimed_row(attempts=1, unknown=True))

    reply = await store.confirm("op", LAST, within_s=WITHIN_S)

    row = backend.rows()["op"]
    assert Confirmed(first=True) == reply
    assert row["state"] == State.DELIVERED
    assert {"claim_id", "lease_until_ms", "due_at", "due_shard"}.isdisjoint(row)
    assert (row["attempts"], row["unknown"]) == (3, False)
    assert (
        row["last_outcome"],
        row["last_status"],
        row["last_attempt_at_ms"],
    ) == ("uncertain", 502, 77)
    assert wall.ms == row["settled_at_ms"]
    assert wall.ms // 1000 + DEFAULT_RETENTION_S == row["expires_at"]


async def test_a_second_confirmation_is_a_success_that_writes_nothing(
    store: Store, backend: Backend
) -> None:
    """First one home counts; the other learns that it was not the first."""
    backend.put_row(claimed_row())
    await store.confirm("op", LAST, within_s=WITHIN_S)
    before = backend.rows()

    reply = await store.confirm("op", LAST, within_s=WITHIN_S)

    assert Confirmed(first=False) == reply
    assert before == backend.rows()


async def test_a_confirmation_never_creates_a_marker(store: Store, backend: Backend) -> None:
    """There is nothing owed under that id."""
    assert Gone() == await store.confirm("op", LAST, within_s=WITHIN_S)
    assert backend.rows() == {}


async def test_a_confirmation_from_a_lost_claim_counts(store: Store, backend: Backend) -> None:
    """The pass that was taken over got home first; its successor is refused and sees why."""
    row = claimed_row()
    backend.put_row(row)
    taken = await store.takeover(
        read_marker(row), Claim(claim_id="next", lease_s=45.0), within_s=WITHIN_S
    )
    assert isinstance(taken, Written)

    confirmed = await store.confirm("op", Settlement(attempts=1), within_s=WITHIN_S)
    refused = await release(store, taken.marker)

    assert Confirmed(first=True) == confirmed
    assert isinstance(refused, Refused)
    assert refused.marker is not None
    assert refused.marker.state is State.DELIVERED


async def test_a_confirmation_overrules_a_person_s_queue(store: Store, backend: Backend) -> None:
    """Parked with a reason, then confirmed after all: the reason is gone with the question."""
    backend.put_row(claimed_row())
    held = await store.read("op", within_s=WITHIN_S)
    assert held is not None
    await park(store, held)

    await store.confirm("op", Settlement(), within_s=WITHIN_S)

    marker = await store.read("op", within_s=WITHIN_S)
    assert marker is not None
    assert (marker.state, marker.reason) == (State.DELIVERED, None)


@pytest.mark.parametrize(
    ("end", "state", "unknown"),
    [(release, State.UNCERTAIN, True), (release_clean, State.UNDELIVERED, False)],
)
async def test_a_release_waits_for_the_next_pass(
    store: Store, backend: Backend, end: End, state: State, *, unknown: bool
) -> None:
    """The pass that knows says whether it may have been delivered."""
    backend.put_row(claimed_row(unknown=not unknown))
    held = await store.read("op", within_s=WITHIN_S)
    assert held is not None

    reply = await end(store, held)

    assert isinstance(reply, Written)
    marker = reply.marker
    assert (state, unknown, 99) == (marker.state, marker.unknown, marker.due_at_ms)
    assert (marker.claim_id, marker.lease_until_ms, marker.last_claim_id) == (None, None, "own")
    assert (
        marker.attempts,
        marker.last_outcome,
        marker.last_status,
        marker.last_attempt_at_ms,
    ) == (2, "uncertain", 502, 77)
    assert marker.due_shard in store.shards(Lane.RETRIED)


async def test_a_release_without_an_attempt_stays_in_the_new_lane(
    store: Store, backend: Backend
) -> None:
    """Handed back unstarted, it is no repeated failure; what is stored of attempts stays."""
    backend.put_row(claimed_row())
    held = await store.read("op", within_s=WITHIN_S)
    assert held is not None

    reply = await store.release(
        held, uncertain=False, due_at_ms=99, settlement=Settlement(), within_s=WITHIN_S
    )

    assert isinstance(reply, Written)
    assert reply.marker.due_shard in store.shards(Lane.NEW)
    assert (reply.marker.attempts, reply.marker.last_outcome) == (0, None)


async def test_a_pass_that_never_began_is_taken_back(store: Store, backend: Backend) -> None:
    """Claimed in a batch and not started, it must not use up the limit on passes."""
    row = claimed_row(passes=3)
    backend.put_row(row)

    reply = await store.release(
        read_marker(row),
        uncertain=False,
        due_at_ms=99,
        settlement=Settlement(passes=-1),
        within_s=WITHIN_S,
    )

    assert isinstance(reply, Written)
    assert reply.marker.passes == 2


async def test_an_attempt_without_a_status_takes_the_earlier_one_away(
    store: Store, backend: Backend
) -> None:
    """A status beside an outcome it does not belong to would mislead whoever reads it."""
    row = claimed_row(last_outcome="not delivered", last_status=503)
    backend.put_row(row)

    reply = await store.release(
        read_marker(row),
        uncertain=True,
        due_at_ms=99,
        settlement=Settlement(attempts=1, last_outcome="uncertain"),
        within_s=WITHIN_S,
    )

    assert isinstance(reply, Written)
    assert (reply.marker.last_outcome, reply.marker.last_status) == ("uncertain", None)


@pytest.mark.parametrize(
    ("end", "state", "expires"),
    [(reject, State.REJECTED, True), (park, State.PARKED, False)],
)
async def test_a_settled_marker_is_due_nowhere_and_only_a_parked_one_stays(
    store: Store, backend: Backend, end: End, state: State, *, expires: bool
) -> None:
    """A person must see what is parked, however late."""
    backend.put_row(claimed_row(unknown=True))
    held = await store.read("op", within_s=WITHIN_S)
    assert held is not None

    reply = await end(store, held)

    assert isinstance(reply, Written)
    marker = reply.marker
    assert state is marker.state
    assert (marker.claim_id, marker.due_at_ms, marker.due_shard) == (None, None, None)
    assert expires == (marker.expires_at_s is not None)
    assert marker.reason in {"422", "too old"}
    assert (state is State.PARKED) == marker.unknown


@pytest.mark.parametrize("unknown", [True, False])
async def test_a_parked_marker_tells_the_person_whether_it_is_unknown(
    store: Store, backend: Backend, *, unknown: bool
) -> None:
    """The pass that parks knows more than the claim it began with."""
    row = claimed_row(unknown=not unknown)
    backend.put_row(row)

    reply = await store.park(
        read_marker(row), unknown=unknown, settlement=LAST, reason="too old", within_s=WITHIN_S
    )

    assert isinstance(reply, Written)
    assert unknown is reply.marker.unknown


@ENDS
async def test_an_end_repeated_after_a_lost_reply_counts_once(
    store: Store, backend: Backend, end: End
) -> None:
    """The row shows our own last claim in the state we wrote: that was us."""
    row = claimed_row()
    backend.put_row(row)
    first = await end(store, read_marker(row))

    again = await end(store, read_marker(row))

    assert isinstance(first, Written)
    assert first == again


@ENDS
async def test_another_claim_is_left_alone(store: Store, backend: Backend, end: End) -> None:
    """Teardown ends only its own claim: a row that carries another's is not touched."""
    backend.put_row(claimed_row(claim_id="other replica"))
    before = backend.rows()

    reply = await end(store, read_marker(claimed_row()))

    assert isinstance(reply, Refused)
    assert before == backend.rows()


@ENDS
async def test_a_late_end_is_refused_after_the_next_pass_claimed(
    store: Store, backend: Backend, wall: WallClock, end: End
) -> None:
    """Our own release landed long ago; what somebody claimed since then is not ours again."""
    row = claimed_row()
    backend.put_row(row)
    await release(store, read_marker(row))
    wall.advance(1)
    await store.claim("op", Claim(claim_id="next", lease_s=45.0), within_s=WITHIN_S)
    before = backend.rows()

    reply = await end(store, read_marker(row))

    assert isinstance(reply, Refused)
    assert before == backend.rows()


async def test_another_end_than_the_one_that_landed_is_refused(
    store: Store, backend: Backend
) -> None:
    """A park after one's own release is a second opinion, not an echo."""
    row = claimed_row()
    backend.put_row(row)
    await release(store, read_marker(row))

    assert isinstance(await park(store, read_marker(row)), Refused)


async def test_a_requeued_marker_starts_over(
    store: Store, backend: Backend, wall: WallClock
) -> None:
    """A person said: not delivered, try again. The limit on passes counts anew."""
    backend.put_row(claimed_row(passes=9, attempts=4, unknown=True))
    held = await store.read("op", within_s=WITHIN_S)
    assert held is not None
    parked = await park(store, held)
    assert isinstance(parked, Written)
    wall.advance(60)

    reply = await store.requeue(parked.marker, within_s=WITHIN_S)

    assert isinstance(reply, Written)
    marker = reply.marker
    assert (State.UNDELIVERED, wall.ms) == (marker.state, marker.due_at_ms)
    assert (marker.unknown, marker.passes, marker.attempts) == (False, 0, 6)
    assert (marker.reason, marker.settled_at_ms, marker.expires_at_s) == (None, None, None)
    assert marker.due_shard in store.shards(Lane.RETRIED)


async def test_a_resolved_marker_is_delivered_on_a_person_s_word(
    store: Store, backend: Backend, wall: WallClock
) -> None:
    """It leaves the index, keeps what is known of attempts, and expires like any delivered."""
    row = claimed_row(state="uncertain", unknown=True, claim_id=None, lease_until_ms=None)
    backend.put_row(row)

    reply = await store.resolve(read_marker(row), within_s=WITHIN_S)

    assert isinstance(reply, Written)
    marker = reply.marker
    assert (marker.state, marker.unknown) == (State.DELIVERED, False)
    assert (marker.due_at_ms, marker.due_shard) == (None, None)
    assert wall.ms // 1000 + DEFAULT_RETENTION_S == marker.expires_at_s
