"""The budget of a pass: one duration, turned once into one absolute deadline.

Rules (`request budget` worked example: three attempts of 20 s do not fit a 30 s allowance):

* The policy is a duration with a default. It is never an instant that was computed earlier: each
  pass makes its own deadline, once, and carries it through attempts, waits, store calls, lookups
  and the last write.
* Inside a process time is monotonic. The wall clock is checked too, because a frozen process may
  thaw with a monotonic clock that stood still: the smaller remainder counts.
* The reserve is the slice at the end that only settling may spend. `for_work_s` excludes it.
* A remainder of zero or less starts nothing.

Not here: what the time is spent on (`delivery`, `accept`, `redrive`), and the lease of a claim, by
which only others are judged (`storage.lease`).
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol

import anyio

__all__ = ["Clock", "Deadline", "SystemClock", "budget", "budget_in_force_s"]

# Below this the two clocks are taken to agree: wall time is slewed and has coarse ticks.
_CLOCKS_AGREE_WITHIN_S = 0.05

_budget_s: ContextVar[float | None] = ContextVar("outlast_budget_s", default=None)


class Clock(Protocol):
    """Where the handler reads time; tests and scenarios pass their own."""

    def monotonic_s(self) -> float:
        """Return seconds on a clock that never goes back, the event loop's."""

    def wall_ms(self) -> int:
        """Return epoch milliseconds."""


class SystemClock:
    """The event loop's clock and the machine's wall clock."""

    def monotonic_s(self) -> float:
        """Return the running event loop's time in seconds."""
        return anyio.current_time()

    def wall_ms(self) -> int:
        """Return epoch milliseconds."""
        return time.time_ns() // 1_000_000


@contextmanager
def budget(seconds: float) -> Iterator[None]:
    """Grant passes that begin inside this context `seconds` instead of the configured budget."""
    token = _budget_s.set(seconds)
    try:
        yield
    finally:
        _budget_s.reset(token)


def budget_in_force_s(default_s: float) -> float:
    """Return the budget of this context in seconds, or the default when none was granted."""
    granted = _budget_s.get()
    return default_s if granted is None else granted


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadline:
    """The absolute instant at which a pass is over.

    Attributes:
        at_s: The instant on the clock's monotonic scale, in seconds.
        wall_at_ms: The same instant as epoch milliseconds.
        reserve_s: The slice before it that is kept for the last write.
        clock: The clock both were read from.
    """

    at_s: float
    wall_at_ms: int
    reserve_s: float
    clock: Clock

    @classmethod
    def after(
        cls,
        duration_s: float,
        *,
        clock: Clock,
        reserve_s: float = 0.0,
        allowance_s: float | None = None,
    ) -> "Deadline":
        """Make the deadline of a pass that begins now.

        Args:
            duration_s: The budget granted.
            clock: The clock that every later question is put to.
            reserve_s: The slice kept for the last write.
            allowance_s: What the platform still grants; the smaller of the two holds.
        """
        granted_s = duration_s if allowance_s is None else min(duration_s, allowance_s)
        return cls(
            at_s=clock.monotonic_s() + granted_s,
            wall_at_ms=clock.wall_ms() + round(granted_s * 1000),
            reserve_s=reserve_s,
            clock=clock,
        )

    def remaining_s(self) -> float:
        """Return the seconds left until the deadline; zero or less means it is over."""
        monotonic_left_s = self.at_s - self.clock.monotonic_s()
        wall_left_s = (self.wall_at_ms - self.clock.wall_ms()) / 1000
        if wall_left_s < monotonic_left_s - _CLOCKS_AGREE_WITHIN_S:
            return wall_left_s
        return monotonic_left_s

    def for_work_s(self) -> float:
        """Return the seconds left for attempts and waits: the remainder without the reserve."""
        return self.remaining_s() - self.reserve_s
