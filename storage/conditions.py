"""What a write demands of the row it finds, as data, derived from the transition table.

`condition_for` turns one event's row of `states.TRANSITIONS` and the caller's facts into a
condition: the state must be one of the sources, and each guard must hold. Transports render or
interpret the condition; nothing here knows their syntax. A number is compared only inside
`AtMost`, which demands a number first: comparing other types is an error in some stores.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypeAlias

from storage.attributes import Attribute, AttributeType
from storage.errors import NotHeld
from storage.lease import lease_over_bound_ms
from storage.marker import Marker
from storage.states import ABSENT, TRANSITIONS, Event, Guard, State

__all__ = [
    "AllOf",
    "AnyOf",
    "AtMost",
    "Condition",
    "Equal",
    "Facts",
    "Missing",
    "Not",
    "OfType",
    "OneOf",
    "condition_for",
]


@dataclass(frozen=True, slots=True)
class Missing:
    """The row has no such attribute; of the partition key: there is no row."""

    attribute: Attribute


@dataclass(frozen=True, slots=True)
class Equal:
    """The attribute has this type and value."""

    attribute: Attribute
    value: str | int


@dataclass(frozen=True, slots=True)
class OneOf:
    """The attribute is one of these texts."""

    attribute: Attribute
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OfType:
    """The attribute is there and has this type."""

    attribute: Attribute
    type: AttributeType


@dataclass(frozen=True, slots=True)
class AtMost:
    """The attribute is a number, and not above the bound."""

    attribute: Attribute
    bound: int


@dataclass(frozen=True, slots=True)
class Not:
    """The inner condition does not hold."""

    condition: "Condition"


@dataclass(frozen=True, slots=True)
class AllOf:
    """Every one of the conditions holds."""

    conditions: tuple["Condition", ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """At least one of the conditions holds."""

    conditions: tuple["Condition", ...]


Condition: TypeAlias = Missing | Equal | OneOf | OfType | AtMost | Not | AllOf | AnyOf


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the caller knows; each guard takes what it needs.

    Attributes:
        now_ms: The caller's wall clock.
        skew_margin_s: Seconds a lease must have ended for, in the caller's clock.
        marker: The marker as the caller holds it, or as it was seen or shown.
        lease_until_ms: End of the lease about to be written.
    """

    now_ms: int
    skew_margin_s: float = 0.0
    marker: Marker | None = None
    lease_until_ms: int = 0

    @property
    def seen(self) -> Marker:
        """The marker a guard compares with."""
        assert self.marker is not None
        return self.marker


def condition_for(event: Event, facts: Facts) -> Condition:
    """Return what the row must satisfy for `event` to happen.

    Raises:
        NotHeld: The event needs one's own claim and the marker carries no claim id.
    """
    transition = TRANSITIONS[event]
    guards = (_GUARDS[guard](facts) for guard in transition.guards)
    return AllOf((_in_one_of(transition.sources, facts.now_ms), *guards))


def _in_one_of(sources: frozenset[State | None], now_ms: int) -> Condition:
    if ABSENT in sources:
        return AnyOf(
            (
                Missing(Attribute.OPERATION_ID),
                AtMost(Attribute.EXPIRES_AT, now_ms // 1000),
            )
        )
    return OneOf(Attribute.STATE, tuple(state.value for state in State if state in sources))


def _passed_or_unreadable(attribute: Attribute, bound: int) -> Condition:
    return AnyOf((Not(OfType(attribute, AttributeType.NUMBER)), AtMost(attribute, bound)))


def _due(facts: Facts) -> Condition:
    return _passed_or_unreadable(Attribute.DUE_AT, facts.now_ms)


def _own_claim(facts: Facts) -> Condition:
    if facts.seen.claim_id is None:
        raise NotHeld(f"operation {facts.seen.operation_id}: this marker carries no claim id")
    return Equal(Attribute.CLAIM_ID, facts.seen.claim_id)


def _seen_claim(facts: Facts) -> Condition:
    if facts.seen.claim_id is None:
        return Not(OfType(Attribute.CLAIM_ID, AttributeType.TEXT))
    return Equal(Attribute.CLAIM_ID, facts.seen.claim_id)


def _lease_over(facts: Facts) -> Condition:
    bound_ms = lease_over_bound_ms(facts.now_ms, facts.skew_margin_s)
    return _passed_or_unreadable(Attribute.LEASE_UNTIL_MS, bound_ms)


def _later_lease(facts: Facts) -> Condition:
    return _passed_or_unreadable(Attribute.LEASE_UNTIL_MS, facts.lease_until_ms)


def _as_shown(facts: Facts) -> Condition:
    return AllOf(
        (
            Equal(Attribute.STATE, facts.seen.state.value),
            Equal(Attribute.UPDATED_AT_MS, facts.seen.updated_at_ms),
        )
    )


_GUARDS: Final[Mapping[Guard, Callable[[Facts], Condition]]] = MappingProxyType(
    {
        Guard.DUE: _due,
        Guard.OWN_CLAIM: _own_claim,
        Guard.SEEN_CLAIM: _seen_claim,
        Guard.LEASE_OVER: _lease_over,
        Guard.LATER_LEASE: _later_lease,
        Guard.AS_SHOWN: _as_shown,
    }
)
