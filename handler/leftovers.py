"""Leftovers: finding markers that are due, and getting or giving back a claim on one.

Rules: the index may lag and overlapping runs are normal, so the claim's condition decides. A
refusal hands over the marker; if that is a claim whose lease is over, it is taken over directly,
by exactly that claim id. A claim under way is not cut: its write might land without anybody to
give it back, and the next pass would have to take an untouched operation for an unknown one. What
was claimed and not started is handed back as it was, on time of its own, because the run's may be
over by then.

Not here: which of them are worked on, and when (`redrive`).
"""

from collections.abc import AsyncGenerator, Awaitable, Callable

import anyio

from handler.budget import Deadline
from handler.events import Action
from handler.persist import insist
from handler.report import RedriveReport
from handler.service import Service
from storage.errors import BrokenMarker, StoreError
from storage.lease import lease_over
from storage.marker import Claim, Marker, Settlement
from storage.replies import DuePage, Refused, WriteReply, Written
from storage.requests import DueCursor
from storage.shards import Lane
from storage.states import State

__all__ = ["Leftovers"]

_TRIES = 2
# A key that turns out to be held elsewhere costs a look; a run looks at this many batches.
_LOOKS_PER_BATCH = 10


class Leftovers:
    """The due markers of one run."""

    def __init__(self, service: Service, report: RedriveReport, deadline: Deadline) -> None:
        self._service = service
        self._settings = service.settings
        self._report = report
        self._deadline = deadline
        self._unreadable = 0

    async def due(self, lane: Lane, most: int) -> AsyncGenerator[str, None]:
        """Yield due keys of a lane, oldest first in each shard, the shards in turn."""
        cursors: dict[str, DueCursor | None] = dict.fromkeys(self._service.store.shards(lane))
        looks = most * _LOOKS_PER_BATCH
        # Small pages, so that no shard's backlog fills the batch before the next shard is asked.
        page_size = -(-most // len(cursors))
        # A row that cannot be read stays where it is for ever: it must not use up the looks.
        while cursors and looks + self._unreadable > 0:
            for shard in list(cursors):
                try:
                    page = await self._page(shard, cursors[shard], page_size)
                except StoreError as error:
                    self._failed(shard=shard, reason=str(error))
                    del cursors[shard]
                    continue
                self._report.listed += len(page.operation_ids)
                looks -= len(page.operation_ids)
                if page.after is None:
                    del cursors[shard]
                else:
                    cursors[shard] = page.after
                for operation_id in page.operation_ids:
                    yield operation_id

    async def hold(self, operation_id: str) -> Marker | None:
        """Claim a waiting marker or take over an abandoned one; None when it is not to be had."""
        try:
            with anyio.CancelScope(shield=True):  # bounded: every call in it is
                held = await self._hold(operation_id)
        except StoreError as error:
            self._unreadable += isinstance(error, BrokenMarker)
            self._failed(operation_id=operation_id, reason=str(error))
            return None
        return held

    async def hand_back(self, held: Marker, *, delay_s: float = 0.0) -> None:
        """Give an unstarted claim back as it was, also when the run is being cancelled."""
        reserve_s = self._settings.reserve_s
        deadline = Deadline.after(reserve_s, clock=self._service.clock)
        due_at_ms = self._service.clock.wall_ms() + round(delay_s * 1000)
        reason = "no time was left"
        with anyio.move_on_after(reserve_s, shield=True):
            try:
                await insist(
                    lambda within_s: self._service.store.release(
                        held,
                        uncertain=held.unknown,
                        due_at_ms=due_at_ms,
                        settlement=Settlement(passes=-1),
                        within_s=within_s,
                    ),
                    deadline=deadline,
                    limit_s=self._settings.store_call_limit_s,
                )
            except StoreError as error:
                reason = str(error)
            else:
                self._report.handed_back += 1
                self._tell(Action.HANDED_BACK, held)
                return
        self._failed(operation_id=held.operation_id, reason=reason)

    async def _page(self, shard: str, after: DueCursor | None, limit: int) -> DuePage:
        until_ms = self._service.clock.wall_ms()
        return await insist(
            lambda within_s: self._service.store.due(
                shard, until_ms=until_ms, limit=limit, after=after, within_s=within_s
            ),
            deadline=self._deadline,
            limit_s=self._settings.store_call_limit_s,
            tries=_TRIES,
        )

    async def _hold(self, operation_id: str) -> Marker | None:
        store = self._service.store
        claim = Claim(
            claim_id=self._service.ids.new_claim_id(), lease_s=self._settings.lease_in_force_s
        )
        result = await self._insist(
            lambda within_s: store.claim(operation_id, claim, within_s=within_s)
        )
        if isinstance(result, Written):
            self._report.claimed += 1
            self._tell(Action.CLAIMED, result.marker)
            return result.marker
        seen = result.marker
        if seen is None or not self._is_over(seen):
            self._not_due(operation_id, seen)
            return None
        result = await self._insist(lambda within_s: store.takeover(seen, claim, within_s=within_s))
        if isinstance(result, Refused):
            self._not_due(operation_id, result.marker)
            return None
        self._report.taken_over += 1
        self._tell(Action.TAKEN_OVER, result.marker, from_claim_id=seen.claim_id)
        return result.marker

    async def _insist(self, call: Callable[[float], Awaitable[WriteReply]]) -> WriteReply:
        return await insist(
            call,
            deadline=self._deadline,
            limit_s=self._settings.store_call_limit_s,
            tries=_TRIES,
        )

    def _is_over(self, seen: Marker) -> bool:
        return lease_over(
            seen,
            now_ms=self._service.clock.wall_ms(),
            skew_margin_s=self._settings.skew_margin_s,
        )

    def _not_due(self, operation_id: str, seen: Marker | None) -> None:
        state = None if seen is None else seen.state.value
        if seen is not None and seen.state is State.CLAIMED:
            self._report.lost += 1
            self._service.events.emit(Action.CLAIM_LOST, operation_id=operation_id, state=state)
        else:
            self._report.stale += 1
            self._service.events.emit(Action.STALE_HIT, operation_id=operation_id, state=state)

    def _failed(self, **fields: object) -> None:
        self._report.failed += 1
        self._service.events.emit(Action.REDRIVE_FAILED, **fields)

    def _tell(self, action: Action, held: Marker, **fields: object) -> None:
        self._service.events.emit(
            action,
            operation_id=held.operation_id,
            claim_id=held.claim_id,
            destination=held.destination,
            **fields,
        )
