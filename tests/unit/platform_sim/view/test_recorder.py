"""Observers: what they keep, and what they want to be told."""

from typing import Any

from platform_sim.view.event import Event, EventKind
from platform_sim.view.recorder import Recorder, Silent, Tee, kinds_of


def event(at_s: float, kind: EventKind = EventKind.REQUEST, **fields: Any) -> Event:
    """Return an event of request 1."""
    return Event(at_s=at_s, kind=kind, invocation_id="1", fields=fields)


def test_a_recorder_keeps_all_in_order_and_picks_by_kind() -> None:
    """The record is what tests and timelines read."""
    recorder = Recorder()
    events = [event(0.0), event(1.0, EventKind.CUT), event(2.0, EventKind.CONTEXT_END)]
    for each in events:
        recorder.observe(each)

    assert recorder.events == events
    assert recorder.of(EventKind.CUT, EventKind.CONTEXT_END) == events[1:]


def test_a_tee_tells_everybody_and_silence_tells_nobody() -> None:
    """In the order given."""
    first, second = Recorder(), Recorder()

    Tee(first, Silent(), second).observe(event(0.0))

    assert first.events == second.events == [event(0.0)]


def test_what_nobody_wants_to_be_told_is_known() -> None:
    """A tee wants what any of its observers wants; one that does not say wants everything."""

    class Choosy(Recorder):
        kinds = frozenset({EventKind.CUT})

    class Other(Recorder):
        kinds = frozenset({EventKind.STALL})

    assert kinds_of(Silent()) == frozenset()
    assert kinds_of(Tee(Choosy(), Other(), Silent())) == frozenset({EventKind.CUT, EventKind.STALL})
    assert kinds_of(Tee(Choosy(), Recorder())) is None
    assert kinds_of(Tee()) == frozenset()
