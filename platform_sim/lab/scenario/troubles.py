"""The troubles of a world: faults that strike at an instant or at a named point.

Rules: a fault strikes once, except trouble with the store and the index, which last from their
instant until their end or for a number of calls. A named point strikes inside the code that
reaches it, so what is killed there runs to its next await and no further.

Not here: what a kill or a freeze does (`strikes`, `replicas`), how a store call fails (the
product's wiring).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from platform_sim.lab.scenario.faults import Act, Fault
from platform_sim.lab.scenario.file import Scenario
from platform_sim.lab.scenario.product import StoreTrouble
from platform_sim.lab.scenario.story import Story, StoryEvent
from platform_sim.world.clocks import WorldClock

__all__ = ["Troubles"]

_LASTING = frozenset({Act.STORE, Act.INDEX_LAG})


@dataclass(slots=True, kw_only=True)
class _Lasting:
    fault: Fault
    from_s: float
    met: int = field(default=0)

    def holds(self, now_s: float) -> bool:
        until_s, count = self.fault.until_s, self.fault.count
        if now_s < self.from_s or (until_s is not None and now_s >= until_s):
            return False
        return count is None or self.met < count


class Troubles:
    """Watches for named points and answers for the store.

    Args:
        scenario: Whose faults.
        clock: True time.
        story: Is listened to.
        strike: Does what a fault says.
    """

    def __init__(
        self,
        scenario: Scenario,
        clock: WorldClock,
        story: Story,
        strike: Callable[[Fault, StoryEvent | None], None],
    ) -> None:
        self._clock = clock
        self._story = story
        self._strike = strike
        self._lasting: list[_Lasting] = []
        self._reached: dict[int, int] = {}
        self._watched = [fault for fault in scenario.faults if fault.at is not None]
        self.timed = [fault for fault in scenario.faults if fault.at is None]
        story.listeners.append(self._listen)

    def begin(self, fault: Fault, event: StoryEvent | None = None) -> None:
        """Let a fault strike now."""
        whom = fault.replica or fault.receiver or fault.operation
        self._story.tell("world", "fault", do=fault.do.value, to=whom, at=fault.at, **_more(fault))
        if fault.do in _LASTING:
            self._lasting.append(_Lasting(fault=fault, from_s=self._clock.now_s()))
        else:
            self._strike(fault, event)

    def meet(self, replica: str, call: str) -> StoreTrouble | None:
        """Say how a store call fails, counting it, or None."""
        for trouble in self._lasting:
            fault = trouble.fault
            concerned = fault.replica in {None, replica} and (
                not fault.calls or call in fault.calls
            )
            if fault.do is Act.STORE and concerned and trouble.holds(self._clock.now_s()):
                trouble.met += 1
                assert fault.how is not None
                return StoreTrouble(how=fault.how, by_s=fault.by_s)
        return None

    def index_lag_s(self) -> float:
        """Say how old the due index is now."""
        now_s = self._clock.now_s()
        lags = [
            trouble.fault.by_s
            for trouble in self._lasting
            if trouble.fault.do is Act.INDEX_LAG and trouble.holds(now_s)
        ]
        return max(lags, default=0.0)

    def _listen(self, event: StoryEvent) -> None:
        for place, fault in enumerate(self._watched):
            if event.kind != fault.at or not self._concerns(fault, event):
                continue
            self._reached[place] = self._reached.get(place, 0) + 1
            if self._reached[place] == fault.nth:
                self.begin(fault, event)

    def _concerns(self, fault: Fault, event: StoryEvent) -> bool:
        if event.kind == "write" and fault.calls and event.fields["event"] not in fault.calls:
            return False
        if fault.operation is None:
            return True
        return self._story.names.get(fault.operation) == event.operation_id is not None


def _more(fault: Fault) -> dict[str, Any]:
    """Return what else a fault says of itself, for who reads the story."""
    said = {
        "how": None if fault.how is None else fault.how.value,
        "by_s": fault.by_s,
        "calls": ", ".join(fault.calls),
        "count": fault.count,
        "until_s": fault.until_s,
        "grace_s": fault.grace_s,
        "back_after_s": fault.back_after_s,
    }
    return {key: value for key, value in said.items() if value not in (None, "", 0.0)}
