"""The transition table: what it says, before any store is asked."""

from storage.states import ABSENT, SETTLED, TRANSITIONS, WAITING, Event, Guard, State


def test_every_event_is_in_the_table() -> None:
    """An event without a row would have no condition."""
    assert set(Event) == set(TRANSITIONS)


def test_every_state_is_claimed_waiting_or_settled() -> None:
    """A marker in any other state would be found by nobody."""
    assert set(State) == {State.CLAIMED} | WAITING | SETTLED


def test_nothing_but_delivered_stops_a_confirmation() -> None:
    """First one home counts: a confirmation is by identity, from any other state."""
    confirm = TRANSITIONS[Event.CONFIRM]

    assert set(State) - {State.DELIVERED} == confirm.sources
    assert confirm.guards == ()


def test_no_event_leaves_delivered() -> None:
    """A failure never erases a result."""
    leaving = {event for event, move in TRANSITIONS.items() if State.DELIVERED in move.sources}

    assert set() == leaving


def test_only_an_accept_starts_from_nothing() -> None:
    """No other event ever creates a marker."""
    creating = {event for event, move in TRANSITIONS.items() if ABSENT in move.sources}

    assert {Event.ACCEPT} == creating


def test_every_end_of_a_pass_but_confirm_needs_its_own_claim() -> None:
    """A pass that lost its claim has no say over the marker any more."""
    needing = {event for event, move in TRANSITIONS.items() if Guard.OWN_CLAIM in move.guards}

    assert {Event.HEARTBEAT, Event.RELEASE, Event.REJECT, Event.PARK} == needing
