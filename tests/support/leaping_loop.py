"""An event loop whose time leaps from timer to timer, with nothing else in it.

For histories by the thousand: it has no selector, no socket and no thread, and a leap costs one
turn. A history in which nothing could ever happen again, or in which code turns round and round
without time passing, ends in `Stuck`, so that it fails and shrinks where it would hang.
"""

import asyncio
from typing import Any

__all__ = ["LeapingLoop", "Stuck"]

_TURNS_WITHOUT_TIME = 20_000
_RESOLUTION_S = 1e-6


class Stuck(Exception):
    """Time can never pass again: everything waits for nothing, or something spins."""


class _Leap:
    """Stands where a loop has its selector: waiting is moving the clock."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self._turns = 0

    def select(self, timeout: float | None) -> list[Any]:
        """Let time pass at once."""
        if timeout is None:
            raise Stuck("everything waits and no timer is set")
        self._turns = self._turns + 1 if timeout <= 0 else 0
        if self._turns > _TURNS_WITHOUT_TIME:
            self._turns = 0
            raise Stuck(f"{_TURNS_WITHOUT_TIME} turns passed at {self.now_s} s")
        self.now_s += max(timeout, 0.0)
        return []


class LeapingLoop(asyncio.BaseEventLoop):
    """An event loop on virtual time, from 0."""

    def __init__(self) -> None:
        super().__init__()
        self._selector = _Leap()
        self._clock_resolution = _RESOLUTION_S  # timers this close are one instant

    def time(self) -> float:
        """Return virtual seconds."""
        return self._selector.now_s

    def _process_events(self, event_list: list[Any]) -> None:
        """Do nothing: there are no events but timers."""

    def _write_to_self(self) -> None:
        """Do nothing: nobody calls from another thread."""
