"""Clocks of a world: one true time, and each replica's own idea of it.

Rules: true time is the event loop's, from 0. A replica's wall clock may be skewed. While a
replica is frozen its monotonic clock stands still, as in a suspended machine, and its wall clock
does not.
"""

from asyncio import AbstractEventLoop
from dataclasses import dataclass, field

__all__ = ["EPOCH_MS", "ReplicaClock", "WorldClock"]

EPOCH_MS = 1_767_225_600_000
"""Epoch milliseconds at second 0 of every world: 2026-01-01T00:00:00Z."""


@dataclass(frozen=True, slots=True)
class WorldClock:
    """True time.

    Attributes:
        loop: Keeps it.
        started_s: The loop's time at second 0.
    """

    loop: AbstractEventLoop
    started_s: float

    def now_s(self) -> float:
        """Return the seconds since the world began."""
        return self.loop.time() - self.started_s

    def wall_ms(self) -> int:
        """Return true epoch milliseconds."""
        return EPOCH_MS + round(self.now_s() * 1000)


@dataclass(slots=True)
class ReplicaClock:
    """One replica's time.

    Attributes:
        world: True time.
        skew_s: How far its wall clock is ahead.
    """

    world: WorldClock
    skew_s: float = 0.0
    _stood_still_s: float = field(default=0.0, init=False)
    _frozen_at_s: float | None = field(default=None, init=False)

    def monotonic_s(self) -> float:
        """Return seconds on a clock that stands still while the replica is frozen."""
        now_s = self.world.now_s() if self._frozen_at_s is None else self._frozen_at_s
        return now_s - self._stood_still_s

    def wall_ms(self) -> int:
        """Return the replica's epoch milliseconds."""
        return self.world.wall_ms() + round(self.skew_s * 1000)

    def freeze(self) -> None:
        """Stop the monotonic clock."""
        if self._frozen_at_s is None:
            self._frozen_at_s = self.world.now_s()

    def thaw(self) -> None:
        """Let the monotonic clock go on from where it stood."""
        if self._frozen_at_s is not None:
            self._stood_still_s += self.world.now_s() - self._frozen_at_s
            self._frozen_at_s = None
