"""The report: what one redrive run did, as plain data for logs and schedulers."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["RedriveReport"]


@dataclass(slots=True)
class RedriveReport:
    """What one run did.

    Attributes:
        listed: Keys the index gave.
        claimed: Claims won on waiting markers.
        taken_over: Claims won from passes whose lease was over.
        lost: Claims that another run won: normal.
        stale: Keys that were not due after all: normal.
        handed_back: Claims given back untouched.
        failed: Store calls and passes that failed.
        settled: How the passes ended, by state.
    """

    listed: int = 0
    claimed: int = 0
    taken_over: int = 0
    lost: int = 0
    stale: int = 0
    handed_back: int = 0
    failed: int = 0
    settled: Counter[str] = field(default_factory=Counter)

    def as_dict(self) -> Mapping[str, object]:
        """Return the report as plain data."""
        return {
            "listed": self.listed,
            "claimed": self.claimed,
            "taken_over": self.taken_over,
            "lost": self.lost,
            "stale": self.stale,
            "handed_back": self.handed_back,
            "failed": self.failed,
            "settled": dict(sorted(self.settled.items())),
        }
