"""The allowance made concrete: one window per request, opened once, never moved.

Rules: late and nested registrations get only what is left of it; `remaining` is never negative;
None means unbounded.

Not here: who opens it and what happens at its ceiling (`invocation`).
"""

from dataclasses import dataclass
from enum import StrEnum, unique

__all__ = ["CountedFrom", "Window"]


@unique
class CountedFrom(StrEnum):
    """The instant the window is counted from, in the words of the warning."""

    ANSWER = "the answer"
    DISCONNECT = "the disconnect"
    REQUEST = "the request"
    DISPATCH = "the dispatch"
    OVERDUE = "the platform's answer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The allowance of one request, from its opening.

    Attributes:
        allowance_s: How long it is; None means unbounded.
        opened_at_s: Emulator seconds at which it opened.
        counted_from: What opened it.
    """

    allowance_s: float | None
    opened_at_s: float
    counted_from: CountedFrom

    @property
    def ceiling_s(self) -> float | None:
        """Emulator seconds at which the allowance ends; None means never."""
        return None if self.allowance_s is None else self.opened_at_s + self.allowance_s

    def remaining_s(self, now_s: float) -> float | None:
        """Return the seconds left at `now_s`: never negative, None when unbounded."""
        return None if self.ceiling_s is None else max(0.0, self.ceiling_s - now_s)

    def __str__(self) -> str:
        length = "unbounded window" if self.allowance_s is None else f"window {self.allowance_s} s"
        return f"{length} counted from {self.counted_from} at {round(self.opened_at_s, 3)}"
