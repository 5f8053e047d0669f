"""The report of an invocation, made from the emulator's record."""

from typing import Any

import pytest

from platform_sim.lab.conformance.tail import Tail
from platform_sim.view.event import Event, EventKind


def reports(*events: tuple[EventKind, dict[str, Any]], scheduled: bool = False) -> list[Any]:
    """Give a tail one invocation's events; return (source, name, fields) of what it notes."""
    noted: list[Any] = []

    def note(source: str, name: str, **fields: Any) -> None:
        noted.append((source, name, fields))

    tail = Tail(note, scheduled=scheduled)
    for kind, fields in events:
        tail.observe(Event(at_s=0.0, kind=kind, invocation_id="1", fields=fields))
    return noted


def report(**fields: Any) -> list[Any]:
    """Return the one report that is expected."""
    plain: dict[str, Any] = {"outcome": "ok", "status": None, "exceptions": [], "warnings": []}
    return [("tail", "invocation:reported", {**plain, **fields})]


START = (EventKind.RESPONSE_START, {"status": 200})
DONE = (EventKind.CONTEXT_END, {"reason": "done"})


def test_an_invocation_is_reported_when_its_context_ends() -> None:
    """Not before."""
    assert reports(START, (EventKind.RESPONSE_END, {"how": "complete"})) == []
    assert reports(START, DONE) == report(status=200)


def test_a_body_that_was_handed_over_is_waited_for() -> None:
    """Whichever ends last."""
    handed = (EventKind.RESPONSE_END, {"how": "handed_over"})
    over = (EventKind.BODY_OVER, {"how": "complete"})

    assert reports(START, handed, DONE) == []
    assert reports(START, handed, DONE, over) == report(status=200)
    assert reports(START, handed, over, DONE) == report(status=200)


def test_a_failing_app_is_an_exception_without_a_status() -> None:
    """Failing work and a failure after the answer are only listed."""
    failed = (EventKind.APP_FAILED, {"error": "ValueError('x: y')", "after_response": False})
    trailing = (EventKind.APP_FAILED, {"error": "ValueError('late')", "after_response": True})
    work = (EventKind.TASK_FAILED, {"error": "CustomError(<object>)"})

    assert reports(failed, DONE) == report(outcome="exception", exceptions=["ValueError: x: y"])
    assert reports(START, trailing, work, DONE) == report(
        status=200, exceptions=["ValueError: late", "CustomError: <object>"]
    )


def test_an_error_in_a_form_of_its_own_is_listed_as_it_is() -> None:
    """An error may define its own repr."""
    work = (EventKind.TASK_FAILED, {"error": "<broken>"})

    assert reports(START, work, DONE) == report(status=200, exceptions=["<broken>"])


def test_a_cut_at_the_ceiling_is_a_warning_and_no_other_cut_is() -> None:
    """Floating work that dies with the answer is no news to the platform."""
    ceiling = (EventKind.CUT, {"reason": "ceiling", "text": "cut"})
    other = (EventKind.CUT, {"reason": "done", "text": "cut"})
    end = (EventKind.CONTEXT_END, {"reason": "ceiling"})

    assert reports(START, ceiling, end) == report(status=200, warnings=["cut"])
    assert reports(START, other, DONE) == report(status=200)


def test_what_an_orderly_stop_cut_is_not_reported() -> None:
    """The process is gone."""
    assert reports(START, (EventKind.CONTEXT_END, {"reason": "shutdown"})) == []


@pytest.mark.parametrize(
    ("events", "outcome"),
    [
        ([DONE], "ok"),
        ([(EventKind.TASK_FAILED, {"error": "ValueError('x')"}), DONE], "exception"),
        ([(EventKind.CONTEXT_END, {"reason": "ceiling"})], "exceeded"),
    ],
)
def test_a_scheduled_run_fails_with_any_of_its_work_and_has_no_status(
    events: list[Any], outcome: str
) -> None:
    """And over its limit it is exceeded."""
    ((_, _, fields),) = reports(START, *events, scheduled=True)

    assert (fields["outcome"], fields["status"]) == (outcome, None)
