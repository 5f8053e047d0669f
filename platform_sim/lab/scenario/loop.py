"""The event loop of a world: its time jumps from timer to timer, and nothing waits in real time.

Rules: time goes on only when nothing is left to do at the present instant, and then straight to
the next timer. It is counted in whole microseconds, so that sums of decimal seconds meet. A world
that turns too often, at one instant or in all, is told so once, and stopped when it goes on.

Not here: threads and sockets; neither takes part in a world.
"""

import asyncio
import selectors
from collections.abc import Callable
from typing import Any

from platform_sim.lab.scenario.errors import Stuck

__all__ = ["VirtualLoop"]

_PER_S = 1_000_000
_MOST_TURNS_AT_ONCE = 20_000
_MOST_TURNS = 500_000
_LAST_TURNS = 10_000


class _Jumps(selectors.DefaultSelector):
    """A selector that lets time pass in place of waiting."""

    def __init__(self) -> None:
        super().__init__()
        self.now_us = 0
        self.turns = 0
        self.turns_here = 0
        self.on_turn: Callable[[], None] = lambda: None

    def select(self, timeout: float | None = None) -> Any:
        self.turns += 1
        self.turns_here += 1
        self.on_turn()
        if timeout == 0:
            return []
        ready = super().select(0)
        if not ready and timeout is None:
            raise Stuck("nothing is left that could happen")
        if not ready and timeout is not None:
            target_us = self.now_us + round(timeout * _PER_S)
            self.now_us = max(self.now_us + 1, target_us)
            self.turns_here = 0
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop on virtual time, which starts at 0.

    Attributes:
        on_stuck: Called once, with the reason, when the world does not come to rest.
    """

    def __init__(self) -> None:
        self._jumps = _Jumps()
        super().__init__(self._jumps)
        self.on_stuck: Callable[[str], None] | None = None
        self._stuck_at_turn: int | None = None
        self._jumps.on_turn = self._turned

    def time(self) -> float:
        """Return virtual seconds."""
        return self._jumps.now_us / _PER_S

    def _turned(self) -> None:
        turns = self._jumps.turns
        if self._stuck_at_turn is not None:
            if turns > self._stuck_at_turn + _LAST_TURNS and self._jumps.turns_here > _LAST_TURNS:
                raise Stuck("the world went on turning after it was stopped")
        elif turns > _MOST_TURNS or self._jumps.turns_here > _MOST_TURNS_AT_ONCE:
            at_once = turns <= _MOST_TURNS
            self._stuck_at_turn = turns
            self._jumps.turns_here = 0
            what = f"{_MOST_TURNS_AT_ONCE} turns at one instant" if at_once else f"{turns} turns"
            if self.on_stuck is not None:
                self.call_soon(self.on_stuck, f"{what} of the event loop")
