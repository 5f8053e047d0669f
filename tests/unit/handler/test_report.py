"""The report of a run is plain data."""

import json

from handler.report import RedriveReport


def test_a_report_is_plain_data() -> None:
    """A scheduler logs it as it is."""
    report = RedriveReport(listed=3, claimed=2, taken_over=1)
    report.settled["delivered"] += 2
    expected = {
        "listed": 3,
        "claimed": 2,
        "taken_over": 1,
        "lost": 0,
        "stale": 0,
        "handed_back": 0,
        "failed": 0,
        "settled": {"delivered": 2},
    }

    assert expected == json.loads(json.dumps(report.as_dict()))
