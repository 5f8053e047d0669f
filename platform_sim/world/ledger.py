"""Ledger: the wire requests a receiver saw, each with how it ended.

The ledger is the outside witness: it knows nothing of markers or passes, only of what arrived.
Audits compare it, and the receiver's `effects`, with what the sender believes.
"""

from collections import Counter
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

__all__ = ["Ledger", "Outcome", "WireRequest"]


class Outcome(StrEnum):
    """How one wire request ended, as the receiver saw it."""

    OPEN = "open"  # still being worked on
    REPLIED = "replied"  # the step's own reply
    REPLAYED = "replayed"  # 200 again, for a key whose effect exists
    IN_PROGRESS = "in_progress"  # 409, the key is being worked on
    MISMATCHED = "mismatched"  # 422, the key came with another body
    UNREADABLE = "unreadable"  # 400, the script in its payload is none
    HUNG = "hung"
    DROPPED = "dropped"
    LEFT = "left"  # the client closed before anything was replied


@dataclass(frozen=True, slots=True, kw_only=True)
class WireRequest:
    """One request that arrived.

    Attributes:
        key: Its `Idempotency-Key`; empty without one.
        attempt: Which request of that key it is, from 1.
        at_ms: Arrival, epoch milliseconds.
        ended_at_ms: When its outcome was known, epoch milliseconds.
        status: Status that was replied, if any.
    """

    key: str
    path: str
    attempt: int
    at_ms: int
    body_sha256: str
    outcome: Outcome = Outcome.OPEN
    status: int | None = None
    ended_at_ms: int | None = None


class Ledger:
    """Requests in order of arrival, and the number of connections closed unread."""

    def __init__(self) -> None:
        self.requests: list[WireRequest] = []
        self.refused = 0
        self._arrived: Counter[str] = Counter()

    def arrive(self, *, key: str, path: str, at_ms: int, body_sha256: str) -> int:
        """Record an arrival and return the entry's place, for `end`."""
        self._arrived[key] += 1
        self.requests.append(
            WireRequest(
                key=key,
                path=path,
                attempt=self._arrived[key],
                at_ms=at_ms,
                body_sha256=body_sha256,
            )
        )
        return len(self.requests) - 1

    def end(self, place: int, outcome: Outcome, *, at_ms: int, status: int | None = None) -> None:
        """Record how the request at `place` ended."""
        self.requests[place] = replace(
            self.requests[place], outcome=outcome, ended_at_ms=at_ms, status=status
        )

    def refuse(self) -> None:
        """Count a connection that was closed unread; it is no wire request."""
        self.refused += 1

    def rows(self) -> list[dict[str, Any]]:
        """Return the requests as JSON-able data."""
        return [asdict(request) for request in self.requests]
