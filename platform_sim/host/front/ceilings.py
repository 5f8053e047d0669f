"""Ceilings told in advance, for a worker that may be too busy to keep its own.

Rules: as long as work holds a request after its response, the front knows when its ceiling is; a
worker whose event loop is blocked is killed from outside then. Told is the machine's monotonic
clock, which the processes share.

Not here: the kill (`front`), and the ceiling that the worker keeps itself (`invocation`).
"""

from collections.abc import Callable
from typing import Final

from platform_sim.host.front.messages import Held, Released
from platform_sim.view.event import Event, EventKind

__all__ = ["Ceilings"]

_OPENS: Final = frozenset({EventKind.RESPONSE_END, EventKind.CLIENT_LEFT, EventKind.OVERDUE})
_SETTLES: Final = frozenset(
    {
        EventKind.TASK_DONE,
        EventKind.TASK_FAILED,
        EventKind.TASK_CANCELLED,
        EventKind.TASK_ABANDONED,
    }
)


class Ceilings:
    """An observer that tells the front of requests that are held.

    Args:
        tell: Sends a message to the front.
        now_s: The machine's monotonic clock.

    Attributes:
        kinds: The events it wants to be told.
    """

    def __init__(self, tell: Callable[[Held | Released], None], now_s: Callable[[], float]) -> None:
        self._tell = tell
        self._now_s = now_s
        self._work: dict[str, dict[int, str]] = {}
        self._answered: set[str] = set()
        self.kinds = _OPENS | _SETTLES | {EventKind.REGISTERED, EventKind.CONTEXT_END}

    def observe(self, event: Event) -> None:
        """Follow one request, and tell what the front has to know."""
        request = event.invocation_id
        if event.kind is EventKind.REGISTERED:
            self._work.setdefault(request, {})[event.fields["task"]] = event.fields["name"]
        elif event.kind in _SETTLES and request in self._work:
            self._work[request].pop(event.fields["task"], None)
        elif event.kind in _OPENS:
            self._answered.add(request)
        elif event.kind is EventKind.CONTEXT_END:
            if self._work.pop(request, None) is not None and request in self._answered:
                self._tell(Released(request))
            self._answered.discard(request)
            return
        else:
            return
        remaining_s = event.fields.get("remaining_s")
        if request in self._answered and self._work.get(request) and remaining_s is not None:
            names = ", ".join(self._work[request].values())
            self._tell(Held(request, self._now_s() + remaining_s, names))
