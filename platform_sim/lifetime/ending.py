"""How a request's context ends: what is alive is cut, once, by the profile's cut mode.

Rules: `cancel` delivers cancellation to every task of the request at once, and kills what is still
alive after the grace; any other mode stops everything at once. Work that is not of this request is
let go.

Not here: when and why it ends (`invocation`), and how a kill works (`gate`, `residue`).
"""

import asyncio
from collections.abc import Callable, Sequence
from contextvars import Context

from platform_sim.lifetime.clock import Clock
from platform_sim.lifetime.cut import Doomed, EndReason, find_doomed
from platform_sim.lifetime.gate import Gate, Stepper
from platform_sim.lifetime.narrator import Narrator
from platform_sim.lifetime.profile import CutMode
from platform_sim.lifetime.registry import Registry
from platform_sim.lifetime.residue import drop_residue
from platform_sim.lifetime.window import Window
from platform_sim.view.event import EventKind

__all__ = ["Ending"]


class Ending:
    """The end of one request's context.

    Attributes:
        reason: Why it ends.
    """

    def __init__(
        self,
        reason: EndReason,
        mode: CutMode,
        *,
        gate: Gate,
        registry: Registry,
        app: Stepper,
        window: Window | None,
        narrator: Narrator,
    ) -> None:
        self.reason = reason
        self._mode = mode
        self._gate = gate
        self._registry = registry
        self._app = app
        self._window = window
        self._narrator = narrator
        self._grace: asyncio.TimerHandle | None = None

    def cut(
        self, clock: Clock, *, grace_s: float, outside: Context, on_killed: Callable[[], None]
    ) -> None:
        """Cut what is alive; call back when something had to be killed."""
        doomed = find_doomed(self._gate, self._registry, self._app)
        self._let_go(doomed)
        if not doomed:
            return
        if self._mode is not CutMode.CANCEL:
            self._kill(clock.loop, on_killed)
            return
        for each in doomed:
            self._narrator.tell_doomed(self.reason, CutMode.CANCEL, each, self._window)
            if each.stepper.task is not None:
                each.stepper.task.cancel(f"cut by the platform ({self.reason})")
        self._grace = clock.call_at(
            clock.now_s() + grace_s, lambda: self._kill(clock.loop, on_killed), context=outside
        )

    def _let_go(self, doomed: Sequence[Doomed]) -> None:
        foreign = [item for item in self._registry if not item.steppers]
        if doomed or foreign:
            self._narrator.tell_cut(self.reason, self._mode, doomed, foreign, self._window)
        for item in foreign:
            self._registry.settle(item.future)
            self._narrator.tell_work(EventKind.TASK_ABANDONED, item)

    def _kill(self, loop: asyncio.AbstractEventLoop, on_killed: Callable[[], None]) -> None:
        doomed = find_doomed(self._gate, self._registry, self._app)
        killed = self._gate.kill()
        drop_residue(loop, self._gate, killed)
        mode = CutMode.KILL if self._mode is CutMode.CANCEL else self._mode
        for each in doomed:
            self._narrator.tell_doomed(self.reason, mode, each, self._window)
        for registration in self._registry:
            self._registry.settle(registration.future)
        on_killed()

    def finish(self) -> None:
        """Nothing is left to kill."""
        if self._grace is not None:
            self._grace.cancel()
