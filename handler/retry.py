"""When to try again: backoff inside a pass, and the next due time of a row after one.

Formulas, with `u` drawn evenly from [0, 1):

* inside a pass: `min(cap, base * 2 ** (n - 1)) * (1 - jitter * u)` before the attempt after the
  n-th; jitter 1 is full jitter, 0 is none.
* on the row: `min(cap, base * 2 ** (passes - 1)) * (1 + jitter * (2u - 1))` after a pass; jitter
  0.2 spreads by plus or minus a fifth, so rows that failed together do not come back together.

A receiver's Retry-After overrules both when it asks for longer; the row obeys it exactly. Not
here: whether another attempt is allowed at all (`reconcile` for the unknown, `budget` for time).
"""

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Backoff", "RowBackoff"]

_MAX_DOUBLINGS = 60  # keeps 2 ** n a sane float whatever count a row has reached


def _grown_s(base_s: float, cap_s: float, count: int) -> float:
    return min(cap_s, base_s * 2.0 ** min(max(count - 1, 0), _MAX_DOUBLINGS))


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """The wait between two attempts of one pass; all of it is charged to the budget."""

    base_s: float
    cap_s: float
    jitter: float
    uniform: Callable[[], float]

    def wait_s(self, attempts: int, asked_s: float | None) -> float:
        """Return the seconds to wait after `attempts` attempts of this pass.

        Args:
            attempts: How many this pass has made.
            asked_s: The receiver's Retry-After, if it sent one.
        """
        drawn_s = _grown_s(self.base_s, self.cap_s, attempts) * (1 - self.jitter * self.uniform())
        return drawn_s if asked_s is None else max(drawn_s, asked_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowBackoff:
    """The wait between two passes over one marker."""

    base_s: float
    cap_s: float
    jitter: float
    uniform: Callable[[], float]

    def due_at_ms(self, *, now_ms: int, passes: int, asked_at_ms: int | None) -> int:
        """Return when a marker is due again after its `passes`-th pass, in epoch milliseconds.

        Args:
            now_ms: Now.
            passes: How many passes the marker has had.
            asked_at_ms: The instant the receiver asked for with Retry-After, if it did.
        """
        if asked_at_ms is not None:
            return max(asked_at_ms, now_ms)
        spread = 1 + self.jitter * (2 * self.uniform() - 1)
        return now_ms + round(_grown_s(self.base_s, self.cap_s, passes) * spread * 1000)
