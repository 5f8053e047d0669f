"""What an attempt came to, and what a receiver's reply means.

Rules: only the receiver's own words settle anything. An attempt of which a byte may have left and
that brought no answer is `uncertain`, never failed and never "not sent". A destination may override
the status sets. Redirects are not followed and confirm nothing, so they count as uncertain.

Not here: what to do next (`retry`), and how it was found out whether a byte left (`sender`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum

__all__ = ["NoAnswer", "NotSent", "Outcome", "Reply", "Result", "outcome_of", "retry_after_s"]


class Outcome(StrEnum):
    """What one attempt came to."""

    DELIVERED = "delivered"  # the receiver confirmed
    REJECTED = "rejected"  # the receiver refused for good
    UNDELIVERED = "undelivered"  # known not delivered
    IN_PROGRESS = "in_progress"  # the receiver is at work under this key
    UNCERTAIN = "uncertain"  # may have been delivered


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A receiver's answer: its status and its headers, names in lower case."""

    status: int
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class NotSent:
    """No byte of the request left: refused, DNS, TLS, connect time, no pool slot."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NoAnswer:
    """A byte of the request may have left and no answer came."""

    reason: str


Result = Reply | NotSent | NoAnswer

_STATUS_OUTCOMES: Mapping[int, Outcome] = {
    408: Outcome.UNCERTAIN,
    409: Outcome.IN_PROGRESS,
    425: Outcome.IN_PROGRESS,
    429: Outcome.UNDELIVERED,
    503: Outcome.UNDELIVERED,
}
_CLASS_OUTCOMES: Mapping[int, Outcome] = {
    2: Outcome.DELIVERED,
    4: Outcome.REJECTED,
}


def outcome_of(result: Result, overrides: Mapping[int, Outcome]) -> Outcome:
    """Return what a result means at a destination with these status overrides."""
    match result:
        case NotSent():
            return Outcome.UNDELIVERED
        case NoAnswer():
            return Outcome.UNCERTAIN
        case Reply(status=status):
            named = overrides.get(status) or _STATUS_OUTCOMES.get(status)
            return named or _CLASS_OUTCOMES.get(status // 100, Outcome.UNCERTAIN)


def retry_after_s(value: str | None, *, wall_ms: int, limit_s: float) -> float | None:
    """Read a Retry-After header in either form (RFC 9110, 10.2.3).

    Args:
        value: The header's text, or None when there was none.
        wall_ms: Now, to turn a date into a duration.
        limit_s: The longest wait that a receiver may ask for.

    Returns:
        Seconds from now, between 0 and the limit, or None when the header is absent or unreadable.
    """
    if value is None:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit():
        return min(float(text), limit_s)
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, OverflowError, IndexError, TypeError):
        # The standard library's parser raises all of these on texts that are no dates.
        return None
    # A date in the obsolete forms carries no zone; HTTP dates are always UTC.
    at_s = (at if at.tzinfo else at.replace(tzinfo=UTC)) - datetime.fromtimestamp(
        wall_ms / 1000, UTC
    )
    return min(max(at_s.total_seconds(), 0.0), limit_s)
