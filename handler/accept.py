"""Accepting an operation: one conditional write, confirmed before the answer.

Rules: the answer 202 follows a confirmed marker write and nothing else. The accept has its own
short budget; a lost reply is asked for once more with the same token, which cannot make a second
marker. With the same key and body the caller gets the operation that exists; with another body,
422. When the pass will follow inline the marker is written already claimed, so the happy path is
two writes and no read.

The pass's deadline is made here, once, before the answer leaves: a process that freezes at the
answer and thaws later finds it passed.
"""

from dataclasses import dataclass

import anyio

from handler.budget import Clock, Deadline, budget_in_force_s
from handler.events import Action, Events
from handler.ids import Ids, operation_id_for_key
from handler.intake import Intake
from handler.lifetime import Lifetime
from handler.persist import insist
from handler.places import Places
from handler.problems import Problem
from handler.settings import Settings
from storage.errors import StoreError, StoreMisconfigured
from storage.marker import Claim, Draft, Marker, Settlement
from storage.replies import Accepted, AcceptReply, Mismatched
from storage.store import Store

__all__ = ["Acceptance", "Acceptor"]

_TRIES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """An acknowledged operation.

    Attributes:
        marker: The marker as stored.
        deadline: The inline pass's deadline, or None when no inline pass follows.
    """

    marker: Marker
    deadline: Deadline | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptor:
    """Turns valid requests into markers."""

    store: Store
    settings: Settings
    clock: Clock
    ids: Ids
    events: Events
    places: Places

    async def accept(self, intake: Intake, *, caller: str, lifetime: Lifetime | None) -> Acceptance:
        """Write the marker and return the acknowledged operation.

        Raises:
            Problem: 503 when the write was not confirmed in time, 422 when the key stands for
                another request.
        """
        operation_id = (
            self.ids.new_operation_id()
            if intake.key is None
            else operation_id_for_key(caller, intake.key)
        )
        draft = Draft(
            operation_id=operation_id,
            accept_id=self.ids.new_accept_id(),
            destination=intake.destination,
            payload=intake.payload,
            fingerprint=intake.fingerprint,
        )
        claim = Claim(claim_id=self.ids.new_claim_id(), lease_s=self.settings.lease_in_force_s)
        deadline = self._pass_deadline(draft, claim, lifetime)
        ours = False
        try:
            result = await self._write(draft, None if deadline is None else claim)
            accepted = self._read(result, draft)
            # Our own write may have come home late, after another claim took over.
            ours = isinstance(result, Accepted) and accepted.claim_id == claim.claim_id
        except anyio.get_cancelled_exc_class():
            if deadline is not None:
                await self._hand_back(draft, claim)
            raise
        finally:
            if not ours:
                self.places.give_back(claim.claim_id)
        return Acceptance(marker=accepted, deadline=deadline if ours else None)

    async def _hand_back(self, draft: Draft, claim: Claim) -> None:
        """Leave no claim behind when the caller goes away during the write: no pass will follow.

        The write is made again, which cannot make a second marker, so that the first one cannot
        land later; then the claim is given back as it was. Redrive delivers.
        """
        within_s = self.settings.reserve_s
        with anyio.move_on_after(within_s, shield=True):
            try:
                result = await self.store.accept(draft, claim=claim, within_s=within_s)
                held = result.marker
                if isinstance(result, Accepted) and held.claim_id == claim.claim_id:
                    await self.store.release(
                        held,
                        uncertain=False,
                        due_at_ms=self.clock.wall_ms(),
                        settlement=Settlement(passes=-1),
                        within_s=within_s,
                    )
                    self.events.emit(Action.HANDED_BACK, operation_id=draft.operation_id)
            except StoreError as error:
                self.events.emit(
                    Action.ACCEPT_FAILED, operation_id=draft.operation_id, reason=str(error)
                )

    def _read(self, result: AcceptReply, draft: Draft) -> Marker:
        operation_id = draft.operation_id
        if isinstance(result, Mismatched):
            self.events.emit(Action.MISMATCHED, operation_id=operation_id)
            raise Problem(
                422,
                "key-reused",
                "this Idempotency-Key stands for an operation with another body",
                field="Idempotency-Key",
                remedy="Send a new key for a new operation, or the first body with this key",
            )
        action = Action.ACCEPTED if isinstance(result, Accepted) else Action.REPLAYED
        self.events.emit(action, operation_id=operation_id, state=result.marker.state.value)
        return result.marker

    async def _write(self, draft: Draft, claim: Claim | None) -> AcceptReply:
        deadline = Deadline.after(self.settings.accept_budget_s, clock=self.clock)
        try:
            return await insist(
                lambda within_s: self.store.accept(draft, claim=claim, within_s=within_s),
                deadline=deadline,
                limit_s=self.settings.accept_budget_s,
                tries=_TRIES,
            )
        except StoreError as error:
            self.events.emit(
                Action.ACCEPT_FAILED, operation_id=draft.operation_id, reason=str(error)
            )
            retry_after = {} if isinstance(error, StoreMisconfigured) else {"Retry-After": "1"}
            raise Problem(
                503,
                "store-unavailable",
                "the marker write was not confirmed, so the operation is not acknowledged",
                remedy="Repeat the request with the same Idempotency-Key",
                headers=retry_after,
            ) from error

    def _pass_deadline(
        self, draft: Draft, claim: Claim, lifetime: Lifetime | None
    ) -> Deadline | None:
        """Return the deadline of the pass that will follow here, or None when none will."""
        operation_id = draft.operation_id
        if lifetime is None:
            self.events.emit(Action.BACKGROUND_UNOWNED, operation_id=operation_id)
            return None
        deadline = Deadline.after(
            budget_in_force_s(self.settings.budget_s),
            clock=self.clock,
            reserve_s=self.settings.reserve_s,
            allowance_s=lifetime.remaining(),
        )
        if deadline.for_work_s() <= 0:
            self.events.emit(Action.NO_ALLOWANCE, operation_id=operation_id)
            return None
        if lifetime.stopping() or not self.places.take(claim.claim_id, deadline):
            self.events.emit(Action.TURNED_AWAY, operation_id=operation_id)
            return None
        return deadline
