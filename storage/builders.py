"""What each operation on a marker asks of the store: pure functions that build requests.

Conditions come from the transition table (`conditions.condition_for`), never from here; a
target state does too, unless the event has two. Each builder takes the present instant; none
looks at a clock or does I/O.
"""

from dataclasses import dataclass

from storage import changes
from storage.attributes import Attribute, Value
from storage.changes import Change, Remove, Set, SetIfMissing
from storage.conditions import Facts, condition_for
from storage.lease import lease_end_ms
from storage.marker import Claim, Draft, Marker, Settlement
from storage.requests import DueCursor, PutMarker, QueryDue, ReadMarker, UpdateMarker
from storage.shards import Lane, due_shard
from storage.states import TRANSITIONS, Event, State

__all__ = ["RequestBuilder"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestBuilder:
    """The request builders of one table.

    Attributes:
        table_name: Table that holds the markers.
        shard_count: Numbers in each lane of the due index.
        retention_s: Seconds a delivered or rejected marker keeps answering replays.
        skew_margin_s: Seconds a lease must be over before others judge the pass lost.
    """

    table_name: str
    shard_count: int
    retention_s: int
    skew_margin_s: float

    def accept(
        self, draft: Draft, claim: Claim | None, *, due_at_ms: int | None, now_ms: int
    ) -> PutMarker:
        """Create the marker, held by `claim` or waiting until `due_at_ms` (default: now)."""
        row: dict[str, Value] = {
            Attribute.OPERATION_ID: draft.operation_id,
            Attribute.STATE: State.UNDELIVERED.value,
            Attribute.DESTINATION: draft.destination,
            Attribute.PAYLOAD: draft.payload,
            Attribute.FINGERPRINT: draft.fingerprint,
            Attribute.ACCEPT_ID: draft.accept_id,
            Attribute.CREATED_AT_MS: now_ms,
            Attribute.UPDATED_AT_MS: now_ms,
            Attribute.UNKNOWN: False,
            Attribute.DUE_AT: now_ms if due_at_ms is None else due_at_ms,
            Attribute.DUE_SHARD: self._shard(draft.operation_id, attempts=0),
            Attribute.ATTEMPTS: 0,
            Attribute.PASSES: 0,
        }
        if claim is not None:
            held = changes.held_by(claim.claim_id, lease_end_ms(now_ms, claim.lease_s))
            row |= {change.attribute: change.value for change in held}
            row |= {Attribute.STATE: State.CLAIMED.value, Attribute.PASSES: 1}
        condition = condition_for(Event.ACCEPT, Facts(now_ms=now_ms))
        plain = {str(attribute): value for attribute, value in row.items()}
        return PutMarker(
            table_name=self.table_name, event=Event.ACCEPT, row=plain, condition=condition
        )

    def claim(self, operation_id: str, claim: Claim, *, now_ms: int) -> UpdateMarker:
        """Begin a pass on a waiting marker that is due; its unknown flag stays as it is."""
        # A row that lost its due shard would be in no index: any shard of its own finds it again.
        shard = self._shard(operation_id, attempts=1)
        return self._update(
            Event.CLAIM,
            operation_id,
            Facts(now_ms=now_ms),
            *changes.starts_pass(claim.claim_id, lease_end_ms(now_ms, claim.lease_s)),
            SetIfMissing(Attribute.DUE_SHARD, shard),
        )

    def takeover(self, seen: Marker, claim: Claim, *, now_ms: int) -> UpdateMarker:
        """Rewrite a lost pass's claim into the next; it may have made one attempt."""
        facts = Facts(now_ms=now_ms, skew_margin_s=self.skew_margin_s, marker=seen)
        shard = self._shard(seen.operation_id, attempts=seen.attempts + 1)
        return self._update(
            Event.TAKEOVER,
            seen.operation_id,
            facts,
            *changes.starts_pass(claim.claim_id, lease_end_ms(now_ms, claim.lease_s)),
            Set(Attribute.DUE_SHARD, shard),
            Set(Attribute.UNKNOWN, value=True),
            changes.Increase(Attribute.ATTEMPTS, 1),
        )

    def heartbeat(self, held: Marker, lease_s: float, *, now_ms: int) -> UpdateMarker:
        """Extend a held lease and touch nothing else: a non-key attribute costs one unit."""
        lease_until_ms = lease_end_ms(now_ms, lease_s)
        facts = Facts(now_ms=now_ms, marker=held, lease_until_ms=lease_until_ms)
        return UpdateMarker(
            table_name=self.table_name,
            event=Event.HEARTBEAT,
            operation_id=held.operation_id,
            condition=condition_for(Event.HEARTBEAT, facts),
            changes=(Set(Attribute.LEASE_UNTIL_MS, lease_until_ms),),
        )

    def confirm(self, operation_id: str, settlement: Settlement, *, now_ms: int) -> UpdateMarker:
        """Record the receiver's confirmation, whoever holds the marker."""
        return self._update(
            Event.CONFIRM,
            operation_id,
            Facts(now_ms=now_ms),
            *changes.ends_pass(settlement, claim_id=None),
            *changes.nothing_due(now_ms),
            *changes.expires(now_ms, self.retention_s),
            Set(Attribute.UNKNOWN, value=False),
            Remove(Attribute.REASON),
        )

    def release(
        self,
        held: Marker,
        settlement: Settlement,
        *,
        uncertain: bool,
        due_at_ms: int,
        now_ms: int,
    ) -> UpdateMarker:
        """Hand a held marker back to wait for its next pass."""
        attempts = held.attempts + settlement.attempts
        return self._update(
            Event.RELEASE,
            held.operation_id,
            Facts(now_ms=now_ms, marker=held),
            *changes.ends_pass(settlement, claim_id=held.claim_id),
            *changes.waits(due_at_ms, self._shard(held.operation_id, attempts=attempts)),
            Set(Attribute.UNKNOWN, uncertain),
            to=State.UNCERTAIN if uncertain else State.UNDELIVERED,
        )

    def reject(
        self, held: Marker, settlement: Settlement, *, reason: str, now_ms: int
    ) -> UpdateMarker:
        """Settle a held marker that the receiver refused for good."""
        return self._update(
            Event.REJECT,
            held.operation_id,
            Facts(now_ms=now_ms, marker=held),
            *changes.ends_pass(settlement, claim_id=held.claim_id),
            *changes.nothing_due(now_ms),
            *changes.expires(now_ms, self.retention_s),
            Set(Attribute.UNKNOWN, value=False),
            Set(Attribute.REASON, reason),
        )

    def park(
        self, held: Marker, settlement: Settlement, *, unknown: bool, reason: str, now_ms: int
    ) -> UpdateMarker:
        """Settle a held marker for a person to see; it never expires and says what is unknown."""
        return self._update(
            Event.PARK,
            held.operation_id,
            Facts(now_ms=now_ms, marker=held),
            *changes.ends_pass(settlement, claim_id=held.claim_id),
            *changes.nothing_due(now_ms),
            Set(Attribute.UNKNOWN, unknown),
            Set(Attribute.REASON, reason),
        )

    def requeue(self, seen: Marker, *, now_ms: int) -> UpdateMarker:
        """Let automatic passes try again, on a person's word that it is not delivered.

        Passes start from 0 again, or their limit would park it at once.
        """
        shard = self._shard(seen.operation_id, attempts=seen.attempts)
        return self._update(
            Event.REQUEUE,
            seen.operation_id,
            Facts(now_ms=now_ms, marker=seen),
            *changes.waits(now_ms, shard),
            Set(Attribute.UNKNOWN, value=False),
            Set(Attribute.PASSES, 0),
            Remove(Attribute.REASON),
            Remove(Attribute.SETTLED_AT_MS),
            Remove(Attribute.EXPIRES_AT),
        )

    def resolve(self, seen: Marker, *, now_ms: int) -> UpdateMarker:
        """Settle as delivered, on a person's word."""
        return self._update(
            Event.RESOLVE,
            seen.operation_id,
            Facts(now_ms=now_ms, marker=seen),
            *changes.nothing_due(now_ms),
            *changes.expires(now_ms, self.retention_s),
            Set(Attribute.UNKNOWN, value=False),
            Remove(Attribute.REASON),
        )

    def read(self, operation_id: str) -> ReadMarker:
        """Read one marker, consistently."""
        return ReadMarker(table_name=self.table_name, operation_id=operation_id)

    def due(
        self, shard: str, *, until_ms: int, limit: int, after: DueCursor | None = None
    ) -> QueryDue:
        """List what is due in one shard."""
        return QueryDue(
            table_name=self.table_name,
            due_shard=shard,
            until_ms=until_ms,
            limit=limit,
            after=after,
        )

    def _shard(self, operation_id: str, *, attempts: int) -> str:
        return due_shard(operation_id, Lane.after(attempts), self.shard_count)

    def _update(
        self,
        event: Event,
        operation_id: str,
        facts: Facts,
        *parts: Change,
        to: State | None = None,
    ) -> UpdateMarker:
        """Build one event's update; the target is the table's unless there are two."""
        targets = TRANSITIONS[event].targets
        (target,) = targets if to is None else targets & {to}
        return UpdateMarker(
            table_name=self.table_name,
            event=event,
            operation_id=operation_id,
            condition=condition_for(event, facts),
            changes=(
                Set(Attribute.STATE, target.value),
                Set(Attribute.UPDATED_AT_MS, facts.now_ms),
                *parts,
            ),
        )
