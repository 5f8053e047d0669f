"""An app's timing, out of its own trace."""

import pytest

from platform_sim.lab.conformance.pace import AS_WRITTEN, Pace
from tests.support.traces import trace


def pace(*events: tuple[float, str]) -> Pace:
    """Read a pace from events of the app's log."""
    return Pace(trace(*[(at_s, "worker", name) for at_s, name in events]))


def test_without_a_trace_the_scenarios_own_numbers_stand() -> None:
    """Nothing was taken from anywhere."""
    assert AS_WRITTEN.span("a", "b", 1.5) == 1.5
    assert AS_WRITTEN.step("a", 0.5) == 0.5
    assert AS_WRITTEN.number("a", "n", 3) == 3
    assert AS_WRITTEN.taken == {}


@pytest.mark.parametrize(
    ("ended_at_s", "span_s"), [(2.51, 2.5), (2.48, 2.5), (2.525, 2.525), (0.01, 0.0)]
)
def test_a_span_is_what_the_trace_shows_without_the_jitter(
    ended_at_s: float, span_s: float
) -> None:
    """Rounded to 0.05 s where that is within 0.02 s."""
    assert pace((0.0, "a"), (ended_at_s, "b")).span("a", "b", 9.0) == span_s


def test_a_span_needs_both_ends_in_order() -> None:
    """Work that was cut has no end: the scenario's number stands."""
    assert pace((0.0, "b"), (1.0, "a")).span("a", "b", 9.0) == 9.0
    assert pace((0.0, "b")).span("a", "b", 9.0) == 9.0


def test_a_step_is_the_first_gap() -> None:
    """From the start where that is given, else between the events; never nothing."""
    ticking = pace((0.0, "start"), (0.4, "tick"), (0.9, "tick"))

    assert ticking.step("tick", 9.0) == 0.5
    assert ticking.step("tick", 9.0, after="start") == 0.4
    assert ticking.step("tick", 9.0, after="never") == 0.5
    assert pace((1.0, "tick"), (1.01, "tick"), (2.0, "tick")).step("tick", 9.0) == 1.0
    assert pace((1.0, "tick")).step("tick", 9.0) == 9.0


def test_a_number_is_what_the_first_such_event_carries() -> None:
    """And only a number."""
    read = Pace(trace((0, "worker", "a", {"n": 7, "text": "x"}), (1, "worker", "a", {"n": 8})))

    assert (read.number("a", "n", 1), read.number("a", "text", 1), read.number("b", "n", 1)) == (
        7,
        1,
        1,
    )


def test_what_is_clearly_not_the_scenarios_own_is_remembered() -> None:
    """So that a verdict can say what it rests on."""
    read = pace((0.0, "a"), (2.05, "b"), (3.0, "tick"), (3.5, "tick"))
    read.span("a", "b", 2.0)
    assert read.taken == {}

    read.span("a", "b", 1.0)
    read.step("tick", 1.0)

    assert sorted(read.taken.values()) == ["a to b 2.05 s", "each tick 0.5 s"]
