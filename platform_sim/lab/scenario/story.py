"""The story of a run: every event of every part, in order, on true time.

Rules: an event is told when it happens and never changed. Listeners are called at once, inside
the code that told it, so that a fault can strike at a named point; one that fails is kept, since
the product passes over what its sinks raise. Which request an operation belongs to is known from
the context the request runs in.
"""

from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from platform_sim.world.clocks import WorldClock

__all__ = ["CURRENT_REQUEST", "MOST_EVENTS", "Story", "StoryEvent"]

CURRENT_REQUEST: ContextVar[str | None] = ContextVar("outlast_scenario_request", default=None)
"""The name of the request whose context this is."""

MOST_EVENTS = 1_000_000
"""A story that grows longer is a world that never ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoryEvent:
    """One event.

    Attributes:
        at_s: True seconds since the world began.
        source: Who tells it: a replica, a receiver, `client`, `world`.
        kind: What happened.
        operation_id: The operation it is about, if it is about one.
        fields: More of it, as plain data.
    """

    at_s: float
    source: str
    kind: str
    operation_id: str | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)


class Story:
    """What happened, and who listens.

    Attributes:
        events: In order.
        names: The operation that each request turned into.
        listeners: Told of every event.
        defects: What listeners raised.
        on_full: Called once, with the reason, when the story is too long.
    """

    def __init__(self, clock: WorldClock, *, most_events: int = MOST_EVENTS) -> None:
        self.events: list[StoryEvent] = []
        self.names: dict[str, str] = {}
        self.listeners: list[Callable[[StoryEvent], None]] = []
        self.defects: list[Exception] = []
        self.on_full: Callable[[str], None] | None = None
        self._clock = clock
        self._most_events = most_events

    def tell(
        self, source: str, kind: str, *, operation_id: str | None = None, **fields: Any
    ) -> None:
        """Tell one event, now."""
        request = CURRENT_REQUEST.get()
        if request is not None and operation_id is not None:
            self.names.setdefault(request, operation_id)
        event = StoryEvent(
            at_s=self._clock.now_s(),
            source=source,
            kind=kind,
            operation_id=operation_id,
            fields=fields,
        )
        self.events.append(event)
        for listener in tuple(self.listeners):
            try:
                listener(event)
            except Exception as defect:  # noqa: BLE001  raised again at the end, see `defects`
                self.defects.append(defect)
        if len(self.events) > self._most_events and self.on_full is not None:
            on_full, self.on_full = self.on_full, None
            on_full(f"more than {self._most_events} events")

    def of(self, *kinds: str, operation_id: str | None = None) -> Iterator[StoryEvent]:
        """Yield the events of some kinds, of one operation if one is given."""
        for event in self.events:
            if event.kind in kinds and operation_id in {None, event.operation_id}:
                yield event
