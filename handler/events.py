"""What the handler did, as events: one closed set of actions, sent to the sinks it was given.

A sink is a function; the log, the counters and an experiment's recorder are all sinks. A sink
must not wait; one that raises is passed over, since telling must never break the work told of
(the log's pipe may be gone while a confirmation has to be written). Losing a race is an event,
not an error.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from enum import StrEnum
from typing import Any

import structlog

__all__ = ["Action", "Counts", "Events", "Sink", "log_sink"]


class Action(StrEnum):
    """Everything worth telling, in the order an operation meets it."""

    ACCEPTED = "accepted"  # the marker write is confirmed
    REPLAYED = "replayed"  # same key, same body: the operation that exists
    MISMATCHED = "mismatched"  # same key, other body
    ACCEPT_FAILED = "accept_failed"  # the write was not confirmed; answered 503
    BACKGROUND_UNOWNED = "background_unowned"  # no lifetime: never started here, left to redrive
    BACKGROUND_REFUSED = "background_refused"  # wait_until raised: the claim's lease will tell
    NO_ALLOWANCE = "no_allowance"  # the platform grants nothing after the answer
    TURNED_AWAY = "turned_away"  # too many passes here, or a stop has begun; left to redrive
    PASS_STARTED = "pass_started"
    ATTEMPT_STARTED = "attempt_started"
    ATTEMPT_ENDED = "attempt_ended"
    LOOKED_UP = "looked_up"
    LEASE_EXTENDED = "lease_extended"
    LEASE_LOST = "lease_lost"
    SETTLED = "settled"
    WRITE_REFUSED = "write_refused"  # another claim holds it, or it is settled
    SETTLE_FAILED = "settle_failed"  # the store did not answer in time; the lease will tell
    PASS_CUT = "pass_cut"  # cancelled from outside
    PASS_FAILED = "pass_failed"  # a defect; what was known has been settled
    REDRIVE_STARTED = "redrive_started"
    CLAIMED = "claimed"
    TAKEN_OVER = "taken_over"
    CLAIM_LOST = "claim_lost"  # another run was first: normal
    STALE_HIT = "stale_hit"  # the index listed what is not due: normal
    HANDED_BACK = "handed_back"  # claimed and not started
    REDRIVE_FAILED = "redrive_failed"
    REDRIVE_ENDED = "redrive_ended"


Sink = Callable[[Action, Mapping[str, Any]], None]


class Events:
    """Sends each event to every sink."""

    def __init__(self, *sinks: Sink) -> None:
        self._sinks = sinks

    def emit(self, action: Action, **fields: Any) -> None:
        """Tell every sink of one event."""
        for sink in self._sinks:
            with suppress(Exception):
                sink(action, fields)


class Counts:
    """A sink that counts actions."""

    def __init__(self) -> None:
        self._counter: Counter[str] = Counter()

    def __call__(self, action: Action, _fields: Mapping[str, Any]) -> None:
        """Count one event."""
        self._counter[action.value] += 1

    def as_dict(self) -> dict[str, int]:
        """Return how often each action that happened did, by name."""
        return dict(sorted(self._counter.items()))


_WARNINGS = frozenset(
    {
        Action.ACCEPT_FAILED,
        Action.BACKGROUND_REFUSED,
        Action.LEASE_LOST,
        Action.PASS_FAILED,
        Action.REDRIVE_FAILED,
        Action.SETTLE_FAILED,
    }
)


def log_sink(logger: structlog.typing.FilteringBoundLogger) -> Sink:
    """Return a sink that writes each event as one log line with its `action`."""

    def write(action: Action, fields: Mapping[str, Any]) -> None:
        level = logger.warning if action in _WARNINGS else logger.info
        level(action.value, action=action.value, **fields)

    return write
