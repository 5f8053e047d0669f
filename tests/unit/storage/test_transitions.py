"""Every state meets every event, and every guard is broken once, on every transport."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

from storage.marker import Claim, Draft, Marker, Settlement
from storage.replies import Accepted, Confirmed, Written, read_marker
from storage.states import TRANSITIONS, Event, Guard, State
from storage.store import Store
from tests.support.rows import NOW_MS, claimed_row
from tests.support.stores import Backend

pytestmark = pytest.mark.anyio

WITHIN_S = 10.0
NEXT = Claim(claim_id="next", lease_s=45.0)
REPEAT = Draft(
    operation_id="op",
    accept_id="another accept",
    destination="shop",
    payload=b"first",
    fingerprint="print",
)

ASKING: Mapping[Event, Callable[[Store, Marker], Awaitable[object]]] = {
    Event.ACCEPT: lambda store, _: store.accept(REPEAT, claim=None, within_s=WITHIN_S),
    Event.CLAIM: lambda store, _: store.claim("op", NEXT, within_s=WITHIN_S),
    Event.TAKEOVER: lambda store, seen: store.takeover(seen, NEXT, within_s=WITHIN_S),
    Event.HEARTBEAT: lambda store, held: store.heartbeat(held, lease_s=45.0, within_s=WITHIN_S),
    Event.CONFIRM: lambda store, _: store.confirm("op", Settlement(), within_s=WITHIN_S),
    Event.RELEASE: lambda store, held: store.release(
        held, uncertain=True, due_at_ms=NOW_MS, settlement=Settlement(), within_s=WITHIN_S
    ),
    Event.REJECT: lambda store, held: store.reject(
        held, settlement=Settlement(), reason="422", within_s=WITHIN_S
    ),
    Event.PARK: lambda store, held: store.park(
        held, unknown=True, settlement=Settlement(), reason="too old", within_s=WITHIN_S
    ),
    Event.REQUEUE: lambda store, seen: store.requeue(seen, within_s=WITHIN_S),
    Event.RESOLVE: lambda store, seen: store.resolve(seen, within_s=WITHIN_S),
}


def happened(result: object) -> bool:
    """Tell whether the event took place."""
    match result:
        case Accepted() | Written():
            return True
        case Confirmed(first=first):
            return first
    return False


@pytest.mark.parametrize("event", Event)
@pytest.mark.parametrize("state", [None, *State], ids=lambda state: state or "absent")
async def test_the_table_alone_decides_which_event_happens(
    store: Store, backend: Backend, state: State | None, event: Event
) -> None:
    """With every guard satisfied, an event happens exactly from the states it lists.

    The row carries the caller's claim id, a lease that is over and a due time that has come even
    where no row of ours would, so that nothing but the state can stand in the way.
    """
    row = claimed_row(state=state or State.CLAIMED)
    if state is not None:
        backend.put_row(row)
    before = backend.rows()
    transition = TRANSITIONS[event]

    result = await ASKING[event](store, read_marker(row))

    after = backend.rows()
    assert (state in transition.sources) == happened(result)
    if happened(result):
        assert after["op"]["state"] in transition.targets
    else:
        assert before == after


IN_A_MINUTE_MS = NOW_MS + 60_000
IN_THE_MARGIN_MS = NOW_MS - 4_999
EARLIER_MS = NOW_MS - 100_001

BROKEN_GUARDS: list[tuple[str, Guard, Event, dict[str, Any], dict[str, Any]]] = [
    # what is broken, the guard, the event, the row, how the caller's marker differs from it
    ("not due", Guard.DUE, Event.CLAIM, {"state": "uncertain", "due_at": NOW_MS + 1}, {}),
    ("not due", Guard.DUE, Event.CLAIM, {"state": "undelivered", "due_at": NOW_MS + 1}, {}),
    ("another claim seen", Guard.SEEN_CLAIM, Event.TAKEOVER, {}, {"claim_id": "older"}),
    ("no claim seen", Guard.SEEN_CLAIM, Event.TAKEOVER, {}, {"claim_id": None}),
    ("not over", Guard.LEASE_OVER, Event.TAKEOVER, {"lease_until_ms": IN_A_MINUTE_MS}, {}),
    ("in the margin", Guard.LEASE_OVER, Event.TAKEOVER, {"lease_until_ms": IN_THE_MARGIN_MS}, {}),
    ("another's claim", Guard.OWN_CLAIM, Event.HEARTBEAT, {}, {"claim_id": "other"}),
    ("shorter lease", Guard.LATER_LEASE, Event.HEARTBEAT, {"lease_until_ms": IN_A_MINUTE_MS}, {}),
    ("another's claim", Guard.OWN_CLAIM, Event.RELEASE, {}, {"claim_id": "other"}),
    ("another's claim", Guard.OWN_CLAIM, Event.REJECT, {}, {"claim_id": "other"}),
    ("another's claim", Guard.OWN_CLAIM, Event.PARK, {}, {"claim_id": "other"}),
    ("no claim at all", Guard.OWN_CLAIM, Event.RELEASE, {"claim_id": None}, {"claim_id": "own"}),
    ("changed", Guard.AS_SHOWN, Event.REQUEUE, {"state": "parked"}, {"updated_at_ms": EARLIER_MS}),
    ("moved", Guard.AS_SHOWN, Event.REQUEUE, {"state": "parked"}, {"state": "uncertain"}),
    ("changed", Guard.AS_SHOWN, Event.RESOLVE, {"state": "parked"}, {"updated_at_ms": EARLIER_MS}),
    ("moved", Guard.AS_SHOWN, Event.RESOLVE, {"state": "rejected"}, {"state": "parked"}),
]  # fmt: skip


def test_every_guard_of_the_table_is_broken_once() -> None:
    """A guard that is added to the table is added to the list above."""
    listed = {(event, guard) for _, guard, event, _, _ in BROKEN_GUARDS}
    table = {(event, guard) for event, row in TRANSITIONS.items() for guard in row.guards}

    assert table == listed


@pytest.mark.parametrize(
    ("guard", "event", "stored", "held"),
    [broken[1:] for broken in BROKEN_GUARDS],
    ids=[f"{event}-{what}-{number}" for number, (what, _, event, _, _) in enumerate(BROKEN_GUARDS)],
)
async def test_an_event_whose_guard_does_not_hold_changes_nothing(
    store: Store,
    backend: Backend,
    guard: Guard,
    event: Event,
    stored: dict[str, Any],
    held: dict[str, Any],
) -> None:
    """The state permits each of these; one guard does not.

    A heartbeat that would shorten the lease is refused too, and told that its claim still holds.
    """
    row = claimed_row(**stored)
    backend.put_row(row)
    before = backend.rows()

    result = await ASKING[event](store, read_marker(claimed_row(**(stored | held))))

    assert (guard is Guard.LATER_LEASE) == happened(result)
    assert before == backend.rows()
