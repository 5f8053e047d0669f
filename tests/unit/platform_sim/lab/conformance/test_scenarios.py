"""The recorded scenarios: each has an app or a reason."""

import pytest

from platform_sim.lab.conformance.scenarios import (
    APPS,
    app_for,
    reason_not_claimed,
    recorded,
    script_of,
)
from tests.support.traces import trace

SENT = (0.0, "client", "request:sent", {"path": "/s12_disconnect_before_headers_nowait_signal"})


def test_every_trace_that_comes_along_has_an_app_or_a_reason() -> None:
    """45 of them, and every file is named for its scenario."""
    traces = recorded()

    assert len(traces) == 45
    assert [read.file for read in traces] == [f"{read.scenario}.jsonl" for read in traces]
    assert [
        read.scenario for read in traces if not (app_for(read) or reason_not_claimed(read))
    ] == []


def test_what_is_not_claimed_is_exactly_this() -> None:
    """A scenario that stops being claimed is a decision, not an accident."""
    assert [read.scenario for read in recorded() if reason_not_claimed(read)] == [
        "s08_never_settles_alone",
        "s09_never_settles_with_timer",
        "s10_handler_never_responds",
        "s11_disconnect_before_headers_signal",
        "s12_disconnect_before_headers_nowait_nosignal",
        "s12_disconnect_before_headers_nowait_signal",
        "s12_variant_halfclose",
        "s17_passthrough_on_exception",
        "s22_long_after_disconnect",
        "s23_non_promise_args",
        "s25_scheduled_hang",
        "s26_q_ok",
        "s26_q_throw",
        "s26_q_waitfail",
    ]


def test_the_script_is_what_the_path_names_else_the_scenario() -> None:
    """A variant of a scenario has a name of its own and the path of its script."""
    by_path = trace((0, "client", "request:sent", {"path": "/s07_foreign_ctx/a"}), scenario="new")
    by_name = trace((0, "driver", "sched:dispatched"), scenario="s25_scheduled_waitfail")
    unknown = trace((0, "client", "request:sent", {"path": "/"}), scenario="new")

    assert script_of(by_path) == "s07_foreign_ctx"
    assert app_for(by_name) is APPS["s25_scheduled_waitfail"]
    assert (script_of(unknown), app_for(unknown)) == ("new", None)


@pytest.mark.parametrize(
    ("how", "reason"),
    [("close", "did not see the FIN"), ("halfclose", "the same FIN"), ("reset", None)],
)
def test_how_a_client_leaves_decides_what_is_claimed(how: str, reason: str | None) -> None:
    """Also in a trace that nobody has seen yet."""
    found = reason_not_claimed(trace(SENT, (1.0, "client", "disconnect", {"how": how})))

    assert (found is None) if reason is None else (reason in str(found))
