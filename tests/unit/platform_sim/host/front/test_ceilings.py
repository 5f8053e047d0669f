"""What a front has to know of ceilings that a blocked worker cannot keep."""

from typing import Any

from platform_sim.host.front.ceilings import Ceilings
from platform_sim.host.front.messages import Held, Released
from platform_sim.view.event import Event, EventKind

NOW_S = 100.0


def told(*events: tuple[EventKind, dict[str, Any]]) -> list[Held | Released]:
    """Return what the front is told of request 1."""
    said: list[Held | Released] = []
    ceilings = Ceilings(said.append, lambda: NOW_S)
    for kind, fields in events:
        assert kind in ceilings.kinds
        ceilings.observe(Event(at_s=0.0, kind=kind, invocation_id="1", fields=fields))
    return said


REGISTERED = (EventKind.REGISTERED, {"task": 1, "name": "send", "remaining_s": 30.0})
ANSWERED = (EventKind.RESPONSE_END, {"how": "complete", "remaining_s": 30.0})
OVER = (EventKind.CONTEXT_END, {"reason": "done"})


def test_work_that_holds_a_request_after_its_answer_is_told_with_its_ceiling() -> None:
    """On the clock that both processes share; and its end."""
    assert told(REGISTERED, ANSWERED, OVER) == [Held("1", NOW_S + 30.0, "send"), Released("1")]


def test_late_work_is_told_with_what_is_left() -> None:
    """All names are given each time."""
    late = (EventKind.REGISTERED, {"task": 2, "name": "late", "remaining_s": 5.0})

    assert told(REGISTERED, ANSWERED, late) == [
        Held("1", NOW_S + 30.0, "send"),
        Held("1", NOW_S + 5.0, "send, late"),
    ]


def test_nothing_is_told_without_work_or_without_a_ceiling() -> None:
    """Work that ends before the answer holds nothing, and unbounded work has no ceiling."""
    done = (EventKind.TASK_DONE, {"task": 1, "name": "send", "after_cut": False})
    unbounded = (EventKind.RESPONSE_END, {"how": "complete", "remaining_s": None})

    assert told(ANSWERED, OVER) == []
    assert told(REGISTERED, OVER) == []
    assert told(REGISTERED, done, ANSWERED) == []
    assert told(REGISTERED, unbounded) == []
    assert told(done) == []
