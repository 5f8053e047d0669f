"""What a write does to a row, as data, and the groups of changes that belong together.

Each group is one fact about the marker ("a pass holds it", "nothing is due any more"), so that
no builder forgets half of it. Which write carries which group is in `builders`.
"""

from dataclasses import dataclass
from typing import TypeAlias

from storage.attributes import Attribute, Value
from storage.marker import Settlement

__all__ = [
    "Change",
    "Increase",
    "Remove",
    "Set",
    "SetIfMissing",
    "ends_pass",
    "expires",
    "held_by",
    "nothing_due",
    "starts_pass",
    "waits",
]


@dataclass(frozen=True, slots=True)
class Set:
    """Give the attribute this value."""

    attribute: Attribute
    value: Value


@dataclass(frozen=True, slots=True)
class SetIfMissing:
    """Give the attribute this value unless it has one."""

    attribute: Attribute
    value: Value


@dataclass(frozen=True, slots=True)
class Increase:
    """Add to the attribute; one that is missing counts as 0."""

    attribute: Attribute
    by: int


@dataclass(frozen=True, slots=True)
class Remove:
    """Take the attribute away; one that is missing is no error."""

    attribute: Attribute


Change: TypeAlias = Set | SetIfMissing | Increase | Remove


def held_by(claim_id: str, lease_until_ms: int) -> tuple[Set, ...]:
    """A pass holds the marker, which is due again when its lease ends."""
    return (
        Set(Attribute.CLAIM_ID, claim_id),
        Set(Attribute.LEASE_UNTIL_MS, lease_until_ms),
        Set(Attribute.DUE_AT, lease_until_ms),
    )


def starts_pass(claim_id: str, lease_until_ms: int) -> tuple[Change, ...]:
    """One more pass begins, under this claim."""
    return (*held_by(claim_id, lease_until_ms), Increase(Attribute.PASSES, 1))


def ends_pass(settlement: Settlement, *, claim_id: str | None) -> tuple[Change, ...]:
    """No pass holds the marker any more, and this is what the last one did.

    `claim_id` is the claim that ends itself; None when the writer holds none.
    """
    reported: dict[Attribute, Value | None] = {
        Attribute.LAST_CLAIM_ID: claim_id,
        Attribute.LAST_OUTCOME: settlement.last_outcome,
        Attribute.LAST_STATUS: settlement.last_status,
        Attribute.LAST_ATTEMPT_AT_MS: settlement.last_attempt_at_ms,
    }
    changes: list[Change] = [
        Remove(Attribute.CLAIM_ID),
        Remove(Attribute.LEASE_UNTIL_MS),
        Increase(Attribute.ATTEMPTS, settlement.attempts),
        *(Set(attribute, value) for attribute, value in reported.items() if value is not None),
    ]
    if settlement.passes:
        changes.append(Increase(Attribute.PASSES, settlement.passes))
    if settlement.last_outcome is not None and settlement.last_status is None:
        # The status of an earlier attempt would read as that of this one.
        changes.append(Remove(Attribute.LAST_STATUS))
    return tuple(changes)


def waits(due_at_ms: int, due_shard: str) -> tuple[Set, ...]:
    """The next pass is due then, and found there."""
    return (Set(Attribute.DUE_AT, due_at_ms), Set(Attribute.DUE_SHARD, due_shard))


def nothing_due(now_ms: int) -> tuple[Change, ...]:
    """The marker is settled and leaves the due index."""
    return (
        Remove(Attribute.DUE_AT),
        Remove(Attribute.DUE_SHARD),
        Set(Attribute.SETTLED_AT_MS, now_ms),
    )


def expires(now_ms: int, retention_s: int) -> tuple[Set, ...]:
    """The marker counts as absent once the retention has passed."""
    return (Set(Attribute.EXPIRES_AT, now_ms // 1000 + retention_s),)
