"""The marker's states, the events that move it, and the table that says which move is legal.

Everything about legality is in `TRANSITIONS`; the store's conditions are derived from it
(`conditions`), so code and table cannot drift apart. An event whose sources do not hold the
marker's state changes nothing. This module knows no store, no clock and no claim.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

__all__ = ["ABSENT", "SETTLED", "TRANSITIONS", "WAITING", "Event", "Guard", "State", "Transition"]


class State(StrEnum):
    """Where an operation stands."""

    CLAIMED = "claimed"
    """A pass is working on it, or died doing so."""
    UNDELIVERED = "undelivered"
    """Waiting; known not to be delivered."""
    UNCERTAIN = "uncertain"
    """Waiting; may have been delivered."""
    DELIVERED = "delivered"
    """The receiver confirmed it. Settled."""
    REJECTED = "rejected"
    """The receiver refused it for good. Settled."""
    PARKED = "parked"
    """Automatic redrive stopped; a person decides. Settled."""


WAITING: Final = frozenset({State.UNDELIVERED, State.UNCERTAIN})
"""States in which the next pass may claim, once due."""

SETTLED: Final = frozenset({State.DELIVERED, State.REJECTED, State.PARKED})
"""States in which nothing is due."""

ABSENT: Final = None
"""The source of an accept: no marker, or one that has expired."""


class Event(StrEnum):
    """What can happen to a marker."""

    ACCEPT = "accept"
    CLAIM = "claim"
    TAKEOVER = "takeover"
    HEARTBEAT = "heartbeat"
    CONFIRM = "confirm"
    RELEASE = "release"
    REJECT = "reject"
    PARK = "park"
    REQUEUE = "requeue"
    RESOLVE = "resolve"


class Guard(StrEnum):
    """What must hold in the store besides the state."""

    DUE = "due"
    """Its due time has come."""
    OWN_CLAIM = "own claim"
    """The row carries the caller's claim id."""
    SEEN_CLAIM = "seen claim"
    """The row carries the claim id that was seen, or lacks one just as was seen."""
    LEASE_OVER = "lease over"
    """The claim's lease has ended by more than the skew margin, or cannot be read."""
    LATER_LEASE = "later lease"
    """The new lease does not end before the stored one."""
    AS_SHOWN = "as shown"
    """Nothing has been written since the person looked (heartbeats aside)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """One event's row of the table.

    Attributes:
        sources: States the event may find; `ABSENT` stands for no marker.
        targets: States it may leave; the caller's facts choose when there are two.
        guards: What else must hold in the store.
    """

    sources: frozenset[State | None]
    targets: frozenset[State]
    guards: tuple[Guard, ...] = ()


_DISPUTABLE: Final = frozenset({State.REJECTED, State.PARKED, State.UNCERTAIN})

TRANSITIONS: Final[Mapping[Event, Transition]] = MappingProxyType(
    {
        Event.ACCEPT: Transition(
            sources=frozenset({ABSENT}),
            targets=frozenset({State.CLAIMED, State.UNDELIVERED}),
        ),
        Event.CLAIM: Transition(
            sources=WAITING,
            targets=frozenset({State.CLAIMED}),
            guards=(Guard.DUE,),
        ),
        Event.TAKEOVER: Transition(
            sources=frozenset({State.CLAIMED}),
            targets=frozenset({State.CLAIMED}),
            guards=(Guard.SEEN_CLAIM, Guard.LEASE_OVER),
        ),
        Event.HEARTBEAT: Transition(
            sources=frozenset({State.CLAIMED}),
            targets=frozenset({State.CLAIMED}),
            guards=(Guard.OWN_CLAIM, Guard.LATER_LEASE),
        ),
        Event.CONFIRM: Transition(
            sources=frozenset(State) - {State.DELIVERED},
            targets=frozenset({State.DELIVERED}),
        ),
        Event.RELEASE: Transition(
            sources=frozenset({State.CLAIMED}),
            targets=WAITING,
            guards=(Guard.OWN_CLAIM,),
        ),
        Event.REJECT: Transition(
            sources=frozenset({State.CLAIMED}),
            targets=frozenset({State.REJECTED}),
            guards=(Guard.OWN_CLAIM,),
        ),
        Event.PARK: Transition(
            sources=frozenset({State.CLAIMED}),
            targets=frozenset({State.PARKED}),
            guards=(Guard.OWN_CLAIM,),
        ),
        Event.REQUEUE: Transition(
            sources=_DISPUTABLE,
            targets=frozenset({State.UNDELIVERED}),
            guards=(Guard.AS_SHOWN,),
        ),
        Event.RESOLVE: Transition(
            sources=_DISPUTABLE,
            targets=frozenset({State.DELIVERED}),
            guards=(Guard.AS_SHOWN,),
        ),
    }
)
