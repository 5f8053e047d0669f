"""Log lines for people: the action and its facts, and silence where nothing happened."""

import json
from typing import Any

import pytest

from platform_sim.view.log_line import readable


@pytest.mark.parametrize(
    "line", ["INFO:  started", "", "7", "[1]", '{"url": "http://x"}', '{"event": 7}', "{"]
)
def test_what_is_no_event_is_shown_as_it_is(line: str) -> None:
    """A user's own app logs as it likes."""
    assert readable(line) == line


def test_an_event_is_its_action_and_its_facts() -> None:
    """What only machines need is left out, and what is not known."""
    event = {
        "action": "settled",
        "operation_id": "a",
        "status": None,
        "attempts": 0,
        "event": "settled",
        "level": "info",
        "timestamp": "2026-01-01T00:00:00Z",
    }

    assert readable(json.dumps(event)) == "settled operation_id=a attempts=0"


def test_a_log_line_of_any_structlog_app_is_readable_too() -> None:
    """`event` is the usual name for what happened."""
    line = json.dumps({"event": "order paid", "level": "info", "order": 7})

    assert readable(line) == "order paid order=7"


@pytest.mark.parametrize(
    ("more", "shown"),
    [
        ({"summary": {"listed": 0, "settled": {}}}, None),
        ({"summary": None}, None),
        ({"summary": {"listed": 2, "settled": {"delivered": 1}}}, "listed=2 delivered=1"),
        ({"ending": "failed", "error": "OSError: away"}, "OSError: away"),
        ({"ending": "limit"}, ""),
    ],
)
def test_a_scheduled_run_is_shown_when_it_did_something(
    more: dict[str, Any], shown: str | None
) -> None:
    """An idle schedule is silent, a failing one never."""
    run = {"call": "m:f", "run": 3, "ending": "completed", "took_s": 0.25, "error": None, **more}

    expected = None if shown is None else f"run {run['ending']} in 0.25 s: {shown}".rstrip()
    assert readable(json.dumps(run)) == expected


@pytest.mark.parametrize("action", ["redrive_started", "redrive_ended"])
def test_what_the_run_says_is_not_said_twice(action: str) -> None:
    """The schedule's own line has the summary."""
    assert readable(json.dumps({"action": action})) is None
