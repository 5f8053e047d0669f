"""The timing of an app, as its own trace shows it: how long its steps took on the real runtime.

Rules: a span is the app's own doing (a sleep of its code), never the platform's; whoever plays a
variant of a scenario takes the numbers from that variant. Where the trace does not show both ends,
the scenario's number stands. Spans are rounded to a multiple of 0.05 s that is close: what is
beside it is the jitter of real timers.

Not here: what is done in that time (`apps`).
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from platform_sim.lab.conformance.trace import Trace

__all__ = ["AS_WRITTEN", "Pace"]

_GRID_S = 0.05
_JITTER_S = 0.02
_NOTABLE_S = 0.1
_ROUNDING_S = 1e-6


class Pace:
    """Spans and numbers out of a trace, with those of the scenario as default.

    Attributes:
        taken: What the app was given that is clearly not the scenario's own number, for people.
    """

    def __init__(self, trace: Trace | None = None) -> None:
        self.taken: dict[str, str] = {}
        self._events = () if trace is None else trace.events

    def span(self, start: str, end: str, default_s: float) -> float:
        """Return the seconds from the first `start` to the first `end` after it."""
        started_at_s = self._first(start, lambda event: event.at_s)
        if started_at_s is None:
            return default_s
        ended_at_s = self._first(end, lambda event: event.at_s, from_s=started_at_s)
        if ended_at_s is None:
            return default_s
        return self._take(f"{start} to {end}", _steady(ended_at_s - started_at_s), default_s)

    def step(self, event: str, default_s: float, *, after: str | None = None) -> float:
        """Return the seconds from one of these events to the next, at their first gap.

        With `after`, the first gap may be that from the first `after` to the first event.
        """
        times = [each.at_s for each in self._events if each.name == event]
        started_at_s = None if after is None else self._first(after, lambda found: found.at_s)
        if started_at_s is not None:
            times.insert(0, started_at_s)
        for earlier_s, later_s in pairwise(times):
            if (step_s := _steady(later_s - earlier_s)) > 0:
                return self._take(f"each {event}", step_s, default_s)
        return default_s

    def number(self, event: str, member: str, default: int) -> int:
        """Return a number that the first event of this name carries."""
        value = self._first(event, lambda found: found.fields.get(member))
        return value if isinstance(value, int) else default

    def _take(self, what: str, span_s: float, default_s: float) -> float:
        if abs(span_s - default_s) > _NOTABLE_S:
            self.taken[what] = f"{what} {span_s:g} s"
        return span_s

    def _first(self, name: str, of: Callable[[Any], Any], *, from_s: float = 0.0) -> Any:
        for event in self._events:
            if event.name == name and event.at_s >= from_s:
                return of(event)
        return None


def _steady(span_s: float) -> float:
    near_s = round(span_s / _GRID_S) * _GRID_S
    return round(near_s if abs(near_s - span_s) < _JITTER_S + _ROUNDING_S else span_s, 3)


AS_WRITTEN = Pace()
"""The scenarios' own numbers."""
