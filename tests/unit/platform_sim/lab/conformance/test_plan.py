"""What a trace asks: causes only."""

from typing import Any

import pytest

from platform_sim.lab.conformance.plan import (
    Dispatch,
    Leave,
    Request,
    plan_of,
    shows_no_ceiling,
)
from platform_sim.lab.conformance.trace import BadTrace, Leaving
from tests.support.traces import trace

SENT = (0.0, "client", "request:sent", {"path": "/x"})


def test_requests_and_their_clients_leaving_are_asked_again() -> None:
    """A leave belongs to the request before it; the app's start-up is a delay."""
    plan = plan_of(
        trace(
            SENT,
            (0.2, "worker", "A:handler:start"),
            (1.0, "client", "disconnect", {"how": "reset"}),
            (2.0, "client", "request:sent", {"path": "/y?z=1", "method": "POST"}),
            (2.03, "worker", "handler:start"),
            (2.5, "client", "half-close (FIN, still reading)"),
            (9.0, "driver", "observation:end"),
        )
    )

    assert plan.requests == (
        Request(
            sent_at_s=0.0,
            arrives_at_s=0.2,
            path="/x",
            method="GET",
            leave=Leave(at_s=1.0, how=Leaving.RESET),
        ),
        Request(
            sent_at_s=2.0,
            arrives_at_s=2.03,
            path="/y?z=1",
            method="POST",
            leave=Leave(at_s=2.5, how=Leaving.HALF_CLOSE),
        ),
    )
    assert (plan.dispatches, plan.term_at_s, plan.end_s) == ((), None, 9.0)


@pytest.mark.parametrize("started_at_s", [0.51, None])
def test_a_late_start_is_no_start_up_of_the_runtime(started_at_s: float | None) -> None:
    """Longer than half a second, or never: the request is not delayed, and it shows."""
    more = [] if started_at_s is None else [(started_at_s, "worker", "handler:start")]

    (request,) = plan_of(trace(SENT, (0.4, "worker", "other"), *more)).requests

    assert request.arrives_at_s == 0.0


def test_scheduled_runs_and_term_are_asked_again() -> None:
    """The driver's part."""
    plan = plan_of(
        trace(
            (0.0, "driver", "sched:dispatched", {"cron": "* * * * *"}),
            (0.03, "worker", "handler:start"),
            (0.5, "driver", "SIGTERM sent"),
            (0.54, "process", "exited", {"rc": 0}),
        )
    )

    assert plan.dispatches == (Dispatch(at_s=0.0, arrives_at_s=0.03, cron="* * * * *"),)
    assert (plan.requests, plan.term_at_s, plan.end_s) == ((), 0.5, 0.54)


def test_what_asks_nothing_or_a_queue_consumer_is_refused() -> None:
    """The message names the line and what is missing."""
    with pytest.raises(BadTrace, match="line 2, event: neither 'request:sent' nor"):
        plan_of(trace((0.0, "worker", "a"), (1.0, "driver", "observation:end")))
    with pytest.raises(BadTrace, match="line 1, event: 'queue:dispatched': the emulator has no"):
        plan_of(trace((0.0, "driver", "queue:dispatched")))


@pytest.mark.parametrize(
    ("opening", "at_s", "shown"),
    [
        ((1.0, "client", "response:end"), 31.2, True),
        ((1.0, "client", "response:end"), 31.1, False),
        ((1.0, "client", "disconnect", {"how": "reset"}), 31.2, True),
        ((1.0, "client", "response:headers"), 99.0, False),
    ],
)
def test_work_beyond_the_allowance_shows_that_there_was_no_ceiling(
    opening: tuple[Any, ...],
    at_s: float,
    shown: bool,  # noqa: FBT001  a parametrised fact
) -> None:
    """Counted from the answer's end or the client leaving."""
    read = trace(SENT, opening, (at_s, "worker", "bg:tick"), (200.0, "driver", "observation:end"))

    assert shows_no_ceiling(read, 30.0) is shown
