"""A process that stands still between requests: what is left of them is frozen, then thawed.

Rules: a request that nothing holds any more is let be here. When no other request holds the
process, everything of these is frozen, all at once; the next request thaws them, and they run
while it is served, as they would in one machine. Code that waits for nothing gets the event loop's
next turns before it is frozen: a process that wakes up does at once all that has become due. Wall
time and the event loop's go on meanwhile.

Not here: how one request is frozen (`frozen`), when a request is let be (`invocation`), and the
process itself standing still (`platform_sim.host`).
"""

from collections.abc import Callable
from contextvars import Context
from functools import partial

from platform_sim.lifetime.clock import Clock
from platform_sim.lifetime.frozen import freeze, thaw
from platform_sim.lifetime.invocation import SETTLE_TURNS, Invocation
from platform_sim.view.event import EventKind

__all__ = ["Standstill"]


class Standstill:
    """The requests that are let be, and whether they are frozen."""

    def __init__(self) -> None:
        self._left: dict[Invocation, None] = {}
        self._frozen_at_s: float | None = None
        self._settling = False

    def __len__(self) -> int:
        return len(self._left)

    @property
    def left(self) -> tuple[Invocation, ...]:
        """The requests that are let be, oldest first."""
        return tuple(self._left)

    def add(self, invocation: Invocation) -> None:
        """Let a request be."""
        self._left[invocation] = None

    def discard(self, invocation: Invocation) -> None:
        """Forget a request that has ended."""
        self._left.pop(invocation, None)

    def settle(self, clock: Clock, idle: Callable[[], bool]) -> None:
        """Hold everything that is left, in a few turns, if the process is idle until then."""
        if self._left and not self._settling and self._frozen_at_s is None:
            self._settling = True
            self._turn(clock, idle, SETTLE_TURNS)

    def _turn(self, clock: Clock, idle: Callable[[], bool], turns: int) -> None:
        if turns and self._left and idle():
            step = partial(self._turn, clock, idle, turns - 1)
            clock.loop.call_soon(step, context=Context())  # in nobody's context
            return
        self._settling = False
        if self._left and idle():
            self._freeze(clock)

    def _freeze(self, clock: Clock) -> None:
        self._frozen_at_s = clock.now_s()
        for invocation in self._left:
            freeze(clock.loop, invocation.gate)
            invocation.tell(EventKind.FROZEN)

    def thaw(self, clock: Clock) -> None:
        """Let it go on; nothing to do if it is not held."""
        if self._frozen_at_s is not None:
            frozen_s, self._frozen_at_s = clock.now_s() - self._frozen_at_s, None
            for invocation in self._left:
                thaw(clock.loop, invocation.gate)
                invocation.tell(EventKind.THAWED, frozen_s=round(frozen_s, 6))
