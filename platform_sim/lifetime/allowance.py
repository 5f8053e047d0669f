"""The allowance of one request under way: its window, and the alarm at the window's ceiling.

Rules: the window is opened once; before that, what would be granted is the profile's whole
allowance. The alarm is set only when something holds the request, since nothing else needs one.

Not here: when it is opened, set and taken back (`invocation`), the window's arithmetic (`window`).
"""

import asyncio
from collections.abc import Callable
from contextvars import Context

from platform_sim.lifetime.clock import Clock
from platform_sim.lifetime.window import CountedFrom, Window

__all__ = ["Allowance"]


class Allowance:
    """One request's allowance."""

    __slots__ = ("_alarm", "_clock", "_counted_from", "_granted_s", "_opened_at_s", "_outside")

    def __init__(self, granted_s: float | None, clock: Clock, outside: Context) -> None:
        self._counted_from: CountedFrom | None = None
        self._opened_at_s = 0.0
        self._granted_s = granted_s
        self._clock = clock
        self._outside = outside
        self._alarm: asyncio.TimerHandle | None = None

    def open(self, counted_from: CountedFrom) -> None:
        """Open the window now; nothing if it is open."""
        if self._counted_from is None:
            self._counted_from = counted_from
            self._opened_at_s = self._clock.now_s()

    @property
    def window(self) -> Window | None:
        """The window, once it is open."""
        if self._counted_from is None:
            return None
        return Window(
            allowance_s=self._granted_s,
            opened_at_s=self._opened_at_s,
            counted_from=self._counted_from,
        )

    def remaining_s(self) -> float | None:
        """Return what work would get now: seconds, None when unbounded."""
        window = self.window
        return self._granted_s if window is None else window.remaining_s(self._clock.now_s())

    def arm(self, at_ceiling: Callable[[], None]) -> None:
        """Call back at the ceiling; nothing if there is none, or if that is arranged."""
        if self._alarm is not None or (window := self.window) is None:
            return
        if (ceiling_s := window.ceiling_s) is not None:
            self._alarm = self._clock.call_at(ceiling_s, at_ceiling, context=self._outside)

    def disarm(self) -> None:
        """Do not call back."""
        if self._alarm is not None:
            self._alarm.cancel()
