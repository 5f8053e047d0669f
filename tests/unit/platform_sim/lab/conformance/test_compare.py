"""Comparing: order, times, fields and absences."""

from typing import Any

import pytest

from platform_sim.lab.conformance.compare import differences
from tests.support.traces import emulated, trace

SENT = (0.0, "client", "request:sent", {"path": "/x"})
END = (9.0, "driver", "observation:end")


def texts(recorded: list[tuple[Any, ...]], happened: list[tuple[Any, ...]]) -> list[str]:
    """Compare two lists of events, each with the request before and the end after."""
    found = differences(trace(SENT, *recorded, END), emulated(SENT, *happened))
    return [difference.text for difference in found]


def test_the_same_events_within_the_tolerance_agree() -> None:
    """0.15 s either way, the bound included."""
    recorded = [(1.0, "worker", "a", {"n": 1}), (2.0, "worker", "b"), (3.0, "worker", "a")]
    happened = [(1.15, "worker", "a", {"n": 1}), (1.85, "worker", "b"), (3.0, "worker", "a")]

    assert texts(recorded, happened) == []


def test_a_time_beyond_the_tolerance_is_a_difference() -> None:
    """Both times are told."""
    assert texts([(1.0, "worker", "a")], [(1.16, "worker", "a")]) == [
        "worker a: recorded at 1.00 s, emulated at 1.16 s"
    ]


def test_absence_on_either_side_is_a_difference() -> None:
    """Until the observation ends; what happens later was not observed."""
    recorded = [(1.0, "worker", "a")]
    happened = [(5.0, "worker", "b"), (9.1, "worker", "c")]

    assert texts(recorded, happened) == [
        "worker a: recorded at 1.00 s, did not happen",
        "worker b: happened at 5.00 s, not recorded",
    ]


def test_one_of_several_like_events_that_is_missing_is_told_by_its_time() -> None:
    """The others find their own."""
    recorded = [(float(at), "worker", "tick") for at in (1, 2, 3)]

    assert texts(recorded, [recorded[0], recorded[2]]) == [
        "worker tick: recorded at 2.00 s, did not happen"
    ]


def test_another_source_is_another_event() -> None:
    """A word means something else in another mouth."""
    assert len(texts([(1.0, "worker", "a")], [(1.0, "driver", "a")])) == 2


def test_fields_are_compared_but_for_texts_in_a_runtimes_own_words() -> None:
    """A status, a number, a body; not a message."""
    recorded = (1.0, "worker", "a", {"n": 1, "msg": "x", "reason": "x", "result": "x"})
    other_words = (1.0, "worker", "a", {"n": 1, "msg": "y", "reason": "z", "result": "y"})
    other_number = (1.0, "worker", "a", {"n": 2, "msg": "y", "more": None})

    assert texts([recorded], [other_words]) == []
    assert texts([recorded], [other_number]) == [
        "worker a: recorded at 1.00 s, n was 1, emulated 2"
    ]


def test_a_result_that_is_data_is_compared() -> None:
    """The driver's result of a scheduled run."""
    recorded = (1.0, "driver", "sched:result", {"result": {"outcome": "ok"}})
    happened = (1.0, "driver", "sched:result", {"result": {"outcome": "exception"}})

    assert texts([recorded], [happened]) == [
        (
            "driver sched:result: recorded at 1.00 s, result was {'outcome': 'ok'}, emulated "
            "{'outcome': 'exception'}"
        )
    ]


def test_like_events_with_other_fields_may_stand_in_either_order() -> None:
    """Each is matched by what it says."""
    recorded = [(1.0, "worker", "x", {"n": 1}), (1.01, "worker", "x", {"n": 2})]

    assert texts(recorded, [recorded[1], recorded[0]]) == []


def test_of_a_report_messages_of_exceptions_and_the_number_of_warnings_are_compared() -> None:
    """The kind of an error is the language's."""
    recorded = (2.0, "tail", "invocation:reported", {"exceptions": ["Error: x"], "warnings": ["a"]})
    same = (2.0, "tail", "invocation:reported", {"exceptions": ["ValueError: x"], "warnings": "b"})
    bare = (2.0, "tail", "invocation:reported", {"exceptions": ["x"], "warnings": ["b"]})
    nothing: dict[str, Any] = {"exceptions": [], "warnings": []}
    other = (2.0, "tail", "invocation:reported", nothing)

    assert texts([recorded], [same]) == []
    assert texts([recorded], [bare]) == []
    assert texts([recorded], [other]) == [
        "tail invocation:reported: recorded at 2.00 s, exceptions was ['x'], emulated []",
        "tail invocation:reported: recorded at 2.00 s, warnings was 1, emulated 0",
    ]


@pytest.mark.parametrize(
    "leave",
    [
        (1.0, "client", "disconnect", {"how": "reset"}),
        (1.0, "client", "half-close (FIN, still reading)"),
    ],
)
def test_a_status_counts_only_while_the_client_is_there(leave: tuple[Any, ...]) -> None:
    """Whether it was sent to one that left is the socket's business."""
    recorded = (2.0, "tail", "invocation:reported", {"status": None})
    happened = (2.0, "tail", "invocation:reported", {"status": 200})

    assert texts([leave, recorded], [leave, happened]) == []
    assert texts([recorded], [happened]) == [
        "tail invocation:reported: recorded at 2.00 s, status was None, emulated 200"
    ]


def test_two_events_that_are_apart_stand_in_order() -> None:
    """The first that comes too late is told, with the one it should have come before."""
    recorded = [(1.0, "worker", "a"), (1.05, "worker", "b"), (1.1, "worker", "c")]
    happened = [(1.0, "worker", "b"), (1.05, "worker", "a"), (1.1, "worker", "c")]

    assert texts(recorded, happened) == [
        (
            "worker a: recorded at 1.00 s, before worker b at 1.05 s, emulated after it "
            "(1.05 s and 1.00 s)"
        )
    ]


@pytest.mark.parametrize(
    ("recorded_gap_s", "emulated_gap_s"), [(0.02, 0.1), (0.1, 0.02), (0.02, 0.02)]
)
def test_two_events_that_are_close_in_either_may_stand_in_either_order(
    recorded_gap_s: float, emulated_gap_s: float
) -> None:
    """0.02 s, the bound included."""
    recorded = [(1.0, "worker", "a"), (1.0 + recorded_gap_s, "worker", "b")]
    happened = [(1.0, "worker", "b"), (1.0 + emulated_gap_s, "worker", "a")]

    assert texts(recorded, happened) == []


def test_differences_come_earliest_first() -> None:
    """The first is the one to look at."""
    recorded = [(1.0, "worker", "a"), (3.0, "worker", "c")]
    happened = [(2.0, "worker", "b"), (4.0, "worker", "c")]

    assert [text.split(":")[0] for text in texts(recorded, happened)] == [
        "worker a",
        "worker b",
        "worker c",
    ]
