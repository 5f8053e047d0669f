"""Who listens to events. The runtime tells one observer and knows nothing of what it does.

Rules: observing is optional and never changes what happens; an observer is called on the event
loop, must not await and must be quick.

Not here: the events themselves (`event`), files of them (`recording`), and what is made of those.
"""

from typing import Protocol

from platform_sim.view.event import Event, EventKind

__all__ = ["Observer", "Recorder", "Silent", "Tee", "kinds_of"]


class Observer(Protocol):
    """Is told every event, in order.

    One that has an attribute `kinds`, a set, is told only events of these kinds, if its teller
    heeds that: telling what nobody wants to hear costs time.
    """

    def observe(self, event: Event) -> None:
        """Take one event."""


def kinds_of(observer: Observer) -> frozenset[EventKind] | None:
    """Return the kinds of events an observer wants to be told; None: all."""
    kinds: frozenset[EventKind] | None = getattr(observer, "kinds", None)
    return kinds


class Silent:
    """The default observer: does nothing."""

    kinds: frozenset[EventKind] | None = frozenset()

    def observe(self, event: Event) -> None:
        """Forget the event."""


class Recorder:
    """Keeps every event in memory, in order.

    Attributes:
        events: What was observed so far.
    """

    def __init__(self) -> None:
        self.events: list[Event] = []

    def observe(self, event: Event) -> None:
        """Keep the event."""
        self.events.append(event)

    def of(self, *kinds: EventKind) -> list[Event]:
        """Return the events of these kinds, in order."""
        return [event for event in self.events if event.kind in kinds]


class Tee:
    """Passes each event to several observers, in the order they were given.

    Attributes:
        kinds: What any of them wants to be told.
    """

    def __init__(self, *observers: Observer) -> None:
        self._observers = observers
        wanted = [kinds_of(observer) for observer in observers]
        every = None in wanted
        self.kinds = None if every else frozenset().union(*(kinds or () for kinds in wanted))

    def observe(self, event: Event) -> None:
        """Pass the event on."""
        for observer in self._observers:
            observer.observe(event)
