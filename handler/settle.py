"""Settling: writing a pass's verdict, shielded and bounded by what its deadline leaves.

Rules: a confirmation needs only the operation's identity and is insisted on until the deadline,
because it is the one thing that cannot be had again cheaply. Everything else needs one's own
claim and never touches `delivered`; being refused is normal and returned. A confirmation that comes
when the deadline is over (a process that was frozen with an attempt on the wire and thaws) is worth
one more reserve: a pass never judges its own result by the clock. When the store does not
answer in time the marker stays claimed, which says "may have been sent", and its lease brings it
to redrive.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum

import anyio

from handler.budget import Deadline
from handler.events import Action, Events
from handler.persist import insist
from handler.retry import RowBackoff
from handler.settings import Settings
from handler.verdict import PassLog, Verdict, VerdictKind, within_limits
from storage.errors import StoreError
from storage.marker import Marker
from storage.replies import ConfirmReply, Gone, Refused, WriteReply
from storage.store import Store

__all__ = ["Settled", "Settler"]


class Settled(StrEnum):
    """How a pass left its marker."""

    DELIVERED = "delivered"
    REJECTED = "rejected"
    PARKED = "parked"
    UNDELIVERED = "undelivered"
    UNCERTAIN = "uncertain"
    REFUSED = "refused"  # another claim holds it, or it is settled
    UNWRITTEN = "unwritten"  # the store did not answer in time; the lease will tell


@dataclass(frozen=True, slots=True, kw_only=True)
class Settler:
    """Writes verdicts."""

    store: Store
    settings: Settings
    uniform: Callable[[], float]
    events: Events

    async def settle(
        self, held: Marker, verdict: Verdict, log: PassLog, deadline: Deadline
    ) -> Settled:
        """Write a verdict inside what the deadline leaves; never raises a store's failure."""
        due_at_ms = self._due_at_ms(held, log, deadline)
        verdict = within_limits(
            verdict,
            held,
            unknown=log.unknown,
            due_at_ms=due_at_ms,
            max_passes=self.settings.max_passes,
            max_age_s=self.settings.max_age_s,
        )
        settled = Settled.UNWRITTEN
        problem = "no time was left for the write"
        if verdict.kind is VerdictKind.CONFIRM and deadline.remaining_s() <= 0:
            deadline = Deadline.after(deadline.reserve_s, clock=deadline.clock)
        with anyio.move_on_after(max(deadline.remaining_s(), 0), shield=True):
            try:
                settled = await self._write(held, verdict, log, deadline, due_at_ms)
            except StoreError as error:
                problem = str(error)
        self._tell(held, verdict, log, settled, problem)
        return settled

    def _due_at_ms(self, held: Marker, log: PassLog, deadline: Deadline) -> int:
        now_ms = deadline.clock.wall_ms()
        row = RowBackoff(
            base_s=self.settings.row_backoff_base_s,
            cap_s=self.settings.row_backoff_cap_s,
            jitter=self.settings.row_backoff_jitter,
            uniform=self.uniform,
        )
        return row.due_at_ms(now_ms=now_ms, passes=held.passes, asked_at_ms=log.asked_at_ms())

    async def _write(
        self, held: Marker, verdict: Verdict, log: PassLog, deadline: Deadline, due_at_ms: int
    ) -> Settled:
        settlement = log.settlement(now_ms=deadline.clock.wall_ms())
        store = self.store
        calls: dict[VerdictKind, Callable[[float], Awaitable[WriteReply | ConfirmReply]]]
        calls = {
            VerdictKind.CONFIRM: lambda within_s: store.confirm(
                held.operation_id, settlement, within_s=within_s
            ),
            VerdictKind.REJECT: lambda within_s: store.reject(
                held, settlement=settlement, reason=verdict.reason, within_s=within_s
            ),
            VerdictKind.PARK: lambda within_s: store.park(
                held,
                unknown=log.unknown,
                settlement=settlement,
                reason=verdict.reason,
                within_s=within_s,
            ),
            VerdictKind.RELEASE: lambda within_s: store.release(
                held,
                uncertain=log.unknown,
                due_at_ms=due_at_ms,
                settlement=settlement,
                within_s=within_s,
            ),
        }
        result = await insist(
            calls[verdict.kind], deadline=deadline, limit_s=self.settings.store_call_limit_s
        )
        if isinstance(result, Refused | Gone):
            return Settled.REFUSED
        if verdict.kind is VerdictKind.RELEASE:
            return Settled.UNCERTAIN if log.unknown else Settled.UNDELIVERED
        return _SETTLED_BY[verdict.kind]

    def _tell(
        self, held: Marker, verdict: Verdict, log: PassLog, settled: Settled, problem: str
    ) -> None:
        if settled is Settled.UNWRITTEN:
            action, reason = Action.SETTLE_FAILED, problem
        elif settled is Settled.REFUSED:
            action, reason = Action.WRITE_REFUSED, verdict.reason
        else:
            action, reason = Action.SETTLED, verdict.reason
        self.events.emit(
            action,
            operation_id=held.operation_id,
            claim_id=held.claim_id,
            verdict=verdict.kind.value,
            state=settled.value,
            reason=reason,
            attempts=log.attempts_before + log.made(),
        )


_SETTLED_BY = {
    VerdictKind.CONFIRM: Settled.DELIVERED,
    VerdictKind.REJECT: Settled.REJECTED,
    VerdictKind.PARK: Settled.PARKED,
}
