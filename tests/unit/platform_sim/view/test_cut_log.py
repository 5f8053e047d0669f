"""The log a person reads: one line per cut, and failures nobody else will hear of."""

from typing import Any

import pytest

from platform_sim.view.cut_log import CutLog
from platform_sim.view.event import Event, EventKind


def test_it_warns_of_cuts_and_of_failures_after_the_response(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A failure before the response is the server's to log; all else is no warning."""
    told: list[tuple[EventKind, dict[str, Any]]] = [
        (EventKind.REQUEST, {"name": "GET /"}),
        (EventKind.CUT, {"text": "cancel at 32.0 (ceiling): c"}),
        (EventKind.TASK_FAILED, {"name": "b", "error": "ValueError('b')", "traceback": "in b"}),
        (EventKind.APP_FAILED, {"error": "ValueError('early')", "after_response": False}),
        (
            EventKind.APP_FAILED,
            {"error": "ValueError('late')", "traceback": "in app", "after_response": True},
        ),
    ]

    for kind, fields in told:
        CutLog().observe(Event(at_s=1.0, kind=kind, invocation_id="7", fields=fields))

    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("WARNING", "request 7: cancel at 32.0 (ceiling): c"),
        ("WARNING", "request 7: b failed: ValueError('b')\nin b"),
        (
            "WARNING",
            (
                "request 7: the app call raised, and its response had been sent: "
                "ValueError('late')\nin app"
            ),
        ),
    ]
