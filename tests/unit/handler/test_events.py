"""Events reach every sink; telling never breaks the work it tells of."""

from collections.abc import Mapping
from typing import Any

import pytest
import structlog
from structlog.testing import LogCapture

from handler.events import Action, Counts, Events, log_sink


def test_every_sink_is_told_and_counts_add_up() -> None:
    """Each event goes to each sink, in order."""
    counts, seen = Counts(), list[tuple[Action, Mapping[str, Any]]]()
    events = Events(counts, lambda action, fields: seen.append((action, fields)))
    events.emit(Action.ACCEPTED, operation_id="a")
    events.emit(Action.SETTLED, operation_id="a")
    events.emit(Action.ACCEPTED, operation_id="b")

    assert counts.as_dict() == {"accepted": 2, "settled": 1}
    assert seen[1] == (Action.SETTLED, {"operation_id": "a"})


def test_a_sink_that_raises_breaks_neither_the_work_nor_the_other_sinks() -> None:
    """A log whose pipe is gone must not turn a confirmed write into an error."""
    counts = Counts()

    def broken(_action: Action, _fields: Mapping[str, Any]) -> None:
        raise BrokenPipeError

    Events(broken, counts).emit(Action.ACCEPTED)

    assert counts.as_dict() == {"accepted": 1}


@pytest.mark.parametrize(
    ("action", "level"),
    [
        (Action.SETTLED, "info"),
        (Action.CLAIM_LOST, "info"),
        (Action.SETTLE_FAILED, "warning"),
        (Action.ACCEPT_FAILED, "warning"),
        (Action.LEASE_LOST, "warning"),
        (Action.REDRIVE_FAILED, "warning"),
    ],
)
def test_a_lost_race_is_no_warning_and_a_silent_store_is(action: Action, level: str) -> None:
    """Levels are for people: only what somebody should look at is a warning."""
    capture = LogCapture()
    log_sink(structlog.wrap_logger(None, processors=[capture]))(action, {"operation_id": "a"})

    expected = {"event": action.value, "action": action.value, "operation_id": "a"}
    assert [expected | {"log_level": level}] == capture.entries
