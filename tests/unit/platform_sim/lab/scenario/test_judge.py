"""Expectations are judged exactly, and a difference says what was expected and what was seen."""

from typing import Any

import msgspec
import pytest

from platform_sim.lab.scenario.expectations import Expect, Totals
from platform_sim.lab.scenario.judge import failures_of
from platform_sim.lab.scenario.reading import parse_scenario
from platform_sim.lab.scenario.run import play
from platform_sim.wiring.lab import OutlastProduct
from tests.support.scenarios import play_text, world
from tests.support.told import a_good_story

WORLD = """
[handler]
backoff_base_s = 1.0
backoff_jitter = 0.0
row_backoff_jitter = 0.0
[receivers.r]
replies = [{ status = 503 }, { delay_s = 0.5, status = 204 }]
[receivers.busy]
replies = [{ status = 503, headers = { Retry-After = "100" } }]
[[requests]]
key = "a"
destination = "r"
[[requests]]
key = "b"
destination = "busy"
"""
PLAYED = play_text(WORLD, run_for_s=50.0)


def unmet(expect: Expect | None = None, totals: Totals | None = None) -> list[str]:
    """Return what fails of one expectation."""
    scenario = msgspec.structs.replace(
        PLAYED.scenario,
        expect=() if expect is None else (expect,),
        totals=() if totals is None else (totals,),
    )
    played = PLAYED.__class__(
        scenario=scenario,
        story=PLAYED.story,
        end=PLAYED.end,
        photographs={},
        names=PLAYED.names,
        startup_errors=PLAYED.startup_errors,
    )
    return failures_of(played)


TRUE: dict[str, Any] = {
    "state": "delivered",
    "attempts": 2,
    "passes": 1,
    "unknown": False,
    "last_status": 204,
    "last_outcome": "delivered",
    "wire": {"min": 2, "max": 2},
    "sent": 2,
    "effects": 1,
    "claims": 1,
    "refused_writes": 0,
    "answers": [202],
    "answer_states": ["claimed"],
    "attempt_starts_s": [0.0, 1.04],
    "attempt_ends_s": [0.0, 1.5],
    "outcomes": ["undelivered", "delivered"],
    "history": ["claimed", "delivered"],
    "settled_at_s": {"min": 1.4},
}
FALSE: dict[str, tuple[Any, str]] = {
    "state": ("parked", "expected parked, seen delivered"),
    "attempts": (3, "expected 3, seen 2"),
    "passes": ({"max": 0}, "expected ..0, seen 1"),
    "unknown": (True, "expected True, seen False"),
    "last_status": (200, "expected 200, seen 204"),
    "last_outcome": ("uncertain", "expected uncertain, seen delivered"),
    "reason": ("because", "expected because, seen "),
    "wire": ({"min": 3}, "expected 3.., seen 2"),
    "sent": (1, "expected 1, seen 2"),
    "effects": (0, "expected 0, seen 1"),
    "claims": (2, "expected 2, seen 1"),
    "refused_writes": (1, "expected 1, seen 0"),
    "answers": (["dropped"], "expected ['dropped'], seen [202]"),
    "answer_states": ([], "expected [], seen ['claimed']"),
    "attempt_starts_s": ([0.0, 1.06], "expected [0.0, 1.06], seen [0.0, 1.0]"),
    "attempt_ends_s": ([0.0], "expected [0.0], seen [0.0, 1.5]"),
    "outcomes": (["cut"], "expected ['cut'], seen ['undelivered', 'delivered']"),
    "history": (["claimed"], "expected ['claimed'], seen ['claimed', 'delivered']"),
    "settled_at_s": (1.4, "expected 1.4, seen 1.5"),
    "due_at_s": (1.0, "expected 1.0, seen None"),
}


@pytest.mark.parametrize("name", TRUE)
def test_what_is_so_is_no_failure(name: str) -> None:
    """Numbers exactly or in their range, instants within 0.05 s."""
    assert unmet(msgspec.convert({"operation": "a", name: TRUE[name]}, Expect)) == []


@pytest.mark.parametrize("name", FALSE)
def test_what_is_not_so_is_told_with_what_was_seen(name: str) -> None:
    """One line for each."""
    wanted, said = FALSE[name]

    expect = msgspec.convert({"operation": "a", name: wanted}, Expect)
    assert unmet(expect) == [f"a: {name}: {said}"]


def test_every_expectation_is_tested_here() -> None:
    """A key that nobody judges would always hold."""
    keys = set(Expect.__struct_fields__) - {"operation", "at_s"}

    assert keys == set(FALSE)


def test_a_pattern_is_expected_of_each_operation_that_it_names() -> None:
    """And says which one fails."""
    assert unmet(Expect(operation="*", state="delivered")) == [
        "b: state: expected delivered, seen undelivered"
    ]
    assert unmet(Expect(operation="b", due_at_s=100.0)) == []


@pytest.mark.parametrize(
    ("totals", "said"),
    [
        (Totals(operations=2, rows=2, wire=3, sent=3, effects=1), None),
        (Totals(states={"delivered": 1, "undelivered": 1}, counts={"accepted": 2}), None),
        (Totals(wire_peak=2, wire_peak_window_s=0.5, due_peak=1, startup="complete"), None),
        (Totals(wire_peak=3, wire_peak_window_s=1.1), None),
        (Totals(operations=1), "operations: expected 1, seen 2"),
        (Totals(rows=1), "rows: expected 1, seen 2"),
        (Totals(wire=1), "wire: expected 1, seen 3"),
        (Totals(sent=1), "sent: expected 1, seen 3"),
        (Totals(effects=3), "effects: expected 3, seen 1"),
        (Totals(states={"parked": 1}), "states.parked: expected 1, seen 0"),
        (Totals(counts={"accepted": 9}), "counts.accepted: expected 9, seen 2"),
        (Totals(wire_peak=1), "wire_peak: expected 1, seen 3"),
        (Totals(due_peak=9), "due_peak: expected 9, seen 1"),
        (Totals(startup="refused"), "startup: expected refused, seen complete"),
        (Totals(startup_says="no"), "startup_says: expected no, seen "),
    ],
)
def test_totals_are_judged_alike(totals: Totals, said: str | None) -> None:
    """Over everything together."""
    assert unmet(totals=totals) == ([] if said is None else [f"totals: {said}"])


def test_an_instant_is_judged_by_what_was_so_then() -> None:
    """Just after it, so that what happens at it counts."""
    text = world(
        WORLD,
        "[[expect]]\noperation = 'a'\nat_s = 1.0\nattempts = 7",
        "[[totals]]\nat_s = 1.0\neffects = 7",
    )

    assert failures_of(play(parse_scenario(text), OutlastProduct())) == [
        "a at 1 s: attempts: expected 7, seen 0",
        "totals at 1 s: effects: expected 7, seen 0",
    ]


def test_an_operation_that_was_never_asked_for_is_told() -> None:
    """A world that ended early may not have come to it."""
    told = a_good_story().without(["request"])
    told.scenario = msgspec.structs.replace(told.scenario, expect=(Expect(operation="a"),))

    assert failures_of(told.played()) == ["a: no such request was sent"]


def test_errors_that_nobody_handled_are_failures() -> None:
    """Whatever was expected."""
    told = a_good_story()
    told.tell(3.0, "redrive-1", "run_ended", None, error="ValueError('x')")
    told.tell(4.0, "web-1", "pass_failed", reason="KeyError: 'y'")
    told.tell(5.0, "redrive-1", "run_ended", None, error=None)

    assert failures_of(told.played()) == [
        "redrive-1 at 3.000 s: run_ended: ValueError('x')",
        "web-1 at 4.000 s: pass_failed: KeyError: 'y'",
    ]
