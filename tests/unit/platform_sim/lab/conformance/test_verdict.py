"""The verdict on one trace."""

from typing import Any

from platform_sim.lab.conformance.pace import Pace
from platform_sim.lab.conformance.scenarios import APPS
from platform_sim.lab.conformance.verdict import Verdict, judge, not_claimed
from tests.support.traces import trace

SENT = (0.0, "client", "request:sent", {"path": "/s01_wait_after_response"})
APP = APPS["s01_wait_after_response"]


def answered(*more: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """Return what the app's client and log show up to the answer, and then `more`."""
    return [
        SENT,
        (0.01, "worker", "handler:start"),
        (0.01, "worker", "bg:start"),
        (0.01, "worker", "handler:return"),
        (0.01, "client", "response:headers", {"status": 200}),
        (0.01, "client", "response:end", {"body": "ok"}),
        *more,
    ]


def report(at_s: float, **fields: Any) -> tuple[Any, ...]:
    """Return the tail's report."""
    return (at_s, "tail", "invocation:reported", {"outcome": "ok", "status": 200, **fields})


def worked(done_s: float) -> list[tuple[Any, ...]]:
    """Return a whole trace whose work ends at a time."""
    return answered(
        (done_s, "worker", "bg:done"), report(done_s), (done_s + 2.0, "driver", "observation:end")
    )


def test_a_trace_that_agrees_says_nothing_more() -> None:
    """No difference, no reason, no note."""
    assert judge(trace(*worked(2.01)), APP) == Verdict(scenario="mine", agrees=True)


def test_a_trace_that_disagrees_tells_its_first_difference() -> None:
    """And all the others, as JSON values."""
    verdict = judge(trace(*worked(3.01)), APP)

    assert verdict.agrees is False
    assert verdict.as_dict() == {
        "scenario": "mine",
        "claimed": True,
        "agrees": False,
        "first_difference": "worker bg:done: recorded at 3.01 s, emulated at 2.01 s",
        "differences": [
            "worker bg:done: recorded at 3.01 s, emulated at 2.01 s",
            "tail invocation:reported: recorded at 3.01 s, emulated at 2.01 s",
        ],
        "reason": None,
        "notes": [],
    }


def test_a_variant_is_played_in_its_own_time_and_that_is_noted() -> None:
    """The work took 3 s there."""
    read = trace(*worked(3.01))

    verdict = judge(read, APP, pace=Pace(read))

    assert (verdict.agrees, verdict.notes) == (
        True,
        ("the app's timing is the trace's: bg:start to bg:done 3 s",),
    )


def test_the_ceiling_is_lifted_only_where_the_trace_shows_that_there_was_none() -> None:
    """Work of 33 s, seen; otherwise the platform's documented 30 s stand."""
    lifted, cut = trace(*worked(33.01)), trace(*answered((40.0, "driver", "observation:end")))

    verdict = judge(lifted, APP, pace=Pace(lifted))
    assert verdict.agrees is True
    assert verdict.notes[0] == "ceiling of 30 s lifted: the recorded runtime set none"

    verdict = judge(cut, APP, pace=Pace(lifted))
    assert verdict.first_difference == (
        "tail invocation:reported: happened at 30.01 s, not recorded"
    )


def test_a_trace_of_a_cut_agrees_with_a_cut() -> None:
    """What no local runtime shows: the report comes at the ceiling, with a warning."""
    read = trace(
        *answered(report(30.01, warnings=["will be canceled"]), (33.0, "driver", "observation:end"))
    )
    slow = Pace(trace(*worked(45.0)))

    verdict = judge(read, APP, pace=slow)

    assert verdict.agrees is True


def test_a_ceiling_may_be_asked_for() -> None:
    """It is noted, and holds."""
    verdict = judge(trace(*worked(2.01)), APP, ceiling_s=1.0)

    assert verdict.notes == ("ceiling 1 s, as asked",)
    assert verdict.first_difference == (
        "tail invocation:reported: recorded at 2.01 s, emulated at 1.01 s"
    )


def test_at_term_the_grace_is_for_answers_only() -> None:
    """As the recorded process had it; noted, since the profile grants work its grace too."""
    read = trace(*answered((0.5, "driver", "SIGTERM sent"), (0.54, "process", "exited", {"rc": 0})))

    verdict = judge(read, APP)

    assert verdict == Verdict(
        scenario="mine",
        agrees=True,
        notes=("grace at TERM for answers only, as the recorded process gave it",),
    )


def test_a_trace_that_is_not_claimed_neither_agrees_nor_disagrees() -> None:
    """Its reason stands in their place."""
    assert not_claimed(trace(SENT), "why").as_dict() == {
        "scenario": "mine",
        "claimed": False,
        "agrees": None,
        "first_difference": None,
        "differences": [],
        "reason": "why",
        "notes": [],
    }
