"""Paths of the scenarios' apps that no trace at hand takes; unseen variants may."""

from typing import Any

from platform_sim.lab.conformance.apps import departures, scheduled, streams
from platform_sim.lab.conformance.plan import plan_of
from platform_sim.lab.conformance.play import play
from platform_sim.lifetime.profile import WORKERS
from tests.support.traces import trace

SENT = (0.0, "client", "request:sent", {"path": "/x"})


def worker_log(app: Any, *events: tuple[Any, ...], end_s: float = 10.0) -> list[Any]:
    """Play something against an app; return its log and the platform's reports."""
    asked = trace(*events, (end_s, "driver", "observation:end"))
    return [
        (event.at_s, event.name)
        for event in play(plan_of(asked), app, profile=WORKERS)
        if event.source in {"worker", "tail", "driver"}
    ]


def test_s13_a_client_that_stays_gets_the_whole_stream() -> None:
    """The pump closes its pipe, and nobody ever left."""
    log = worker_log(streams.pumped_signal, SENT)

    assert log[-3:] == [
        (4.5, "pump:wrote"),
        (5.0, "pump:closed"),
        (5.0, "invocation:reported"),
    ]
    assert "signal:abort" not in [name for _, name in log]


def test_s22_a_client_that_stays_gets_its_answer_at_50() -> None:
    """While it is there, nothing bounds the handler."""
    log = worker_log(departures.long_held, SENT, end_s=60.0)

    assert log[-2:] == [(50.0, "handler:return"), (50.0, "invocation:reported")]


def test_s25_work_that_fails_makes_the_outcome_and_its_sibling_finishes() -> None:
    """The report comes with the last of it."""
    log = worker_log(scheduled.work_fails, (0.0, "driver", "sched:dispatched"))

    assert log == [
        (0.0, "sched:dispatched"),
        (0.0, "handler:start"),
        (0.0, "handler:return"),
        (0.0, "b:start"),
        (0.5, "a:reject"),
        (1.5, "b:done"),
        (1.5, "invocation:reported"),
        (1.5, "sched:result"),
    ]
