"""Clocks for tests: one that follows the (virtual) event loop, one that is moved by hand."""

from dataclasses import dataclass

import anyio

__all__ = ["EPOCH_MS", "HandClock", "LoopClock"]

EPOCH_MS = 1_700_000_000_000


@dataclass(slots=True)
class LoopClock:
    """The running loop's time; the wall clock agrees with it but for `wall_ahead_s`.

    A process that was frozen and thaws is one whose wall clock is ahead by the time it slept.
    """

    wall_ahead_s: float = 0.0

    def monotonic_s(self) -> float:
        """Return the loop's time."""
        return anyio.current_time()

    def wall_ms(self) -> int:
        """Return epoch milliseconds."""
        return EPOCH_MS + round((anyio.current_time() + self.wall_ahead_s) * 1000)


@dataclass(slots=True)
class HandClock:
    """Two clocks that stand still until they are moved."""

    at_s: float = 0.0
    wall_at_ms: int = EPOCH_MS

    def monotonic_s(self) -> float:
        """Return the monotonic instant."""
        return self.at_s

    def wall_ms(self) -> int:
        """Return the wall instant."""
        return self.wall_at_ms

    def advance(self, seconds: float) -> None:
        """Move both clocks."""
        self.at_s += seconds
        self.wall_at_ms += round(seconds * 1000)
