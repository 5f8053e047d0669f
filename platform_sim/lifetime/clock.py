"""The emulator's clock: seconds since it started, on the event loop's own time.

Rules: one source of time, the loop's, so a virtual-time loop makes everything virtual; wall time is
never read here.

Not here: wall-clock time (the host stamps the record once), and the clocks of other machines.
"""

import asyncio
from collections.abc import Callable
from contextvars import Context
from dataclasses import dataclass

__all__ = ["Clock"]


@dataclass(frozen=True, slots=True)
class Clock:
    """Emulator seconds.

    Attributes:
        loop: The loop that keeps time.
        epoch_s: The loop's time at which the emulator started.
    """

    loop: asyncio.AbstractEventLoop
    epoch_s: float

    def now_s(self) -> float:
        """Return the seconds since the emulator started."""
        return self.loop.time() - self.epoch_s

    def call_at(
        self, at_s: float, callback: Callable[[], None], *, context: Context
    ) -> asyncio.TimerHandle:
        """Call back at `at_s` emulator seconds, in `context`."""
        return self.loop.call_at(self.epoch_s + at_s, callback, context=context)
