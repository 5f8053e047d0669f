"""Tells the observer what happens to one request, in the record's words.

Rules: times are emulator seconds, to the microsecond. Texts are for people: they name the work,
when it was registered and what the window was counted from.

Not here: what happens, and in which order (`invocation`, `ending`).
"""

from collections.abc import Sequence
from typing import Any

from platform_sim.lifetime.clock import Clock
from platform_sim.lifetime.cut import CUT_KINDS, Doomed, EndReason, Role
from platform_sim.lifetime.profile import CutMode
from platform_sim.lifetime.registry import Registration
from platform_sim.lifetime.window import Window
from platform_sim.view.event import Event, EventKind
from platform_sim.view.recorder import Observer

__all__ = ["Narrator"]


class Narrator:
    """One request's voice.

    Args:
        invocation_id: The request.
        clock: Emulator time.
        observer: Is told.
        wanted: The kinds of events the observer wants to be told; None: all.
    """

    __slots__ = ("_clock", "_invocation_id", "_observer", "_wanted")

    def __init__(
        self,
        invocation_id: str,
        clock: Clock,
        observer: Observer,
        wanted: frozenset[EventKind] | None = None,
    ) -> None:
        self._invocation_id = invocation_id
        self._clock = clock
        self._observer = observer
        self._wanted = wanted

    def is_heard(self, kind: EventKind) -> bool:
        """Tell whether anybody wants to be told such facts."""
        return self._wanted is None or kind in self._wanted

    def tell(self, kind: EventKind, **fields: Any) -> None:
        """Tell one fact that has just come true."""
        if self._wanted is not None and kind not in self._wanted:
            return
        self._observer.observe(
            Event(
                at_s=round(self._clock.now_s(), 6),
                kind=kind,
                invocation_id=self._invocation_id,
                fields=fields,
            )
        )

    def tell_work(self, kind: EventKind, registration: Registration, **fields: Any) -> None:
        """Tell what came of one piece of registered work."""
        self.tell(
            kind,
            task=registration.number,
            name=registration.name,
            registered_at_s=registration.registered_at_s,
            **fields,
        )

    def tell_cut(
        self,
        reason: EndReason,
        mode: CutMode,
        doomed: Sequence[Doomed],
        foreign: Sequence[Registration],
        window: Window | None,
    ) -> None:
        """Tell in one line all that a cut finds alive."""
        named = [each for each in doomed if each.role is not Role.HELPER]
        helpers = len(doomed) - len(named)
        parts = [_in_words(each, reason) for each in named]
        parts += [f"{item.name} (not of this request: let go)" for item in foreign]
        if helpers:
            parts.append(f"{helpers} helper tasks")
        self.tell(
            EventKind.CUT,
            reason=str(reason),
            mode=str(mode),
            names=[each.name for each in named],
            helpers=helpers,
            text=self._text(reason, mode, ", ".join(parts), window),
        )

    def tell_doomed(
        self, reason: EndReason, mode: CutMode, each: Doomed, window: Window | None
    ) -> None:
        """Tell the cut of one piece of work; helpers are not told one by one."""
        kind = CUT_KINDS.get((each.role, mode))
        if kind is None:
            return
        text = self._text(reason, mode, _in_words(each, reason), window)
        if each.role is Role.FLOATING:
            self.tell(kind, name=each.name, text=text, created=each.stepper.birthplace)
        elif each.registration is None:
            self.tell(kind, name=each.name, text=text)
        elif kind is EventKind.TASK_CANCELLED:
            self.tell_work(kind, each.registration, by="platform", text=text)
        else:
            self.tell_work(kind, each.registration, text=text)

    def tell_unheld(self, reason: EndReason, left: Sequence[Doomed], window: Window | None) -> None:
        """Tell what is left of a request that nothing holds any more."""
        self.tell(
            EventKind.UNHELD,
            reason=str(reason),
            names=[each.name for each in left],
            text=self._text(reason, CutMode.FREEZE, ", ".join(map(str, left)), window),
        )

    def _text(self, reason: EndReason, mode: CutMode, what: str, window: Window | None) -> str:
        counted = f"; {window}" if window is not None else ""
        return f"{mode} at {round(self._clock.now_s(), 3)} ({reason}): {what}{counted}"


def _in_words(each: Doomed, reason: EndReason) -> str:
    """Say what is cut; of an app call that outlived its answer also where it is, and why."""
    if each.role is not Role.APP or reason is not EndReason.DONE:
        return str(each)
    where = each.stepper.suspended_at()
    at = "" if where is None else f" at {where}"
    return f"{each}, still running{at} (a BackgroundTask, say: never given to wait_until)"
