"""Redrive: the scheduled function that finishes what was left. Its own process, never the web's.

One run has a budget, walks every shard of both lanes, claims a bounded batch and delivers with
bounded concurrency. It awaits all its work and uses no wait_until. Rules:

* The index may lag and overlapping runs are normal: the claim's condition decides. A refusal
  hands over the marker; if that is a claim whose lease is over, it is taken over directly, by
  exactly that claim id.
* Rows that were tried before get at most half of a batch, so a poisoned head cannot starve new
  work. One destination gets at most half of a batch and a bounded number of passes at once, so a
  slow or broken one cannot starve the others.
* No pass starts when the run's budget or the claim's lease is too short for it; what was claimed
  and not started is handed back, untouched.

Not here: the schedule (the platform's), what a pass does (`delivery`).
"""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field

import anyio
from anyio.abc import TaskGroup

from handler.budget import Deadline
from handler.events import Action
from handler.persist import insist
from handler.service import Parts, Service
from storage.errors import StoreError
from storage.lease import lease_over
from storage.marker import Claim, Marker, Settlement
from storage.replies import DuePage, Refused, WriteReply, Written
from storage.requests import DueCursor
from storage.shards import Lane
from storage.states import State

__all__ = ["Redrive", "RedriveReport", "run_from_environment"]

_CLAIM_TRIES = 2
# A key that turns out to be held elsewhere costs a look; a run looks at this many batches.
_LOOKS_PER_BATCH = 10
_FRESH_CLAIM_MS = 1000


@dataclass(slots=True)
class RedriveReport:
    """What one run did.

    Attributes:
        listed: Keys the index gave.
        claimed: Passes begun on waiting markers.
        taken_over: Passes begun on claims whose lease was over.
        lost: Claims that another run won: normal.
        stale: Keys that were not due after all: normal.
        handed_back: Claims given back untouched.
        failed: Store calls that failed.
        settled: How the passes ended, by state.
    """

    listed: int = 0
    claimed: int = 0
    taken_over: int = 0
    lost: int = 0
    stale: int = 0
    handed_back: int = 0
    failed: int = 0
    settled: Counter[str] = field(default_factory=Counter)

    def as_dict(self) -> Mapping[str, object]:
        """Return the report as plain data."""
        return {
            "listed": self.listed,
            "claimed": self.claimed,
            "taken_over": self.taken_over,
            "lost": self.lost,
            "stale": self.stale,
            "handed_back": self.handed_back,
            "failed": self.failed,
            "settled": dict(sorted(self.settled.items())),
        }


async def run_from_environment() -> RedriveReport:
    """Run once with everything read from environment variables; what a scheduler calls.

    Raises:
        ConfigurationError: A variable is unusable.
    """
    service = Service(Parts.from_environment())
    try:
        return await Redrive(service).run()
    finally:
        with anyio.CancelScope(shield=True):
            await service.aclose()


class Redrive:
    """Runs over one service."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._settings = service.settings

    async def run(self) -> RedriveReport:
        """Run once, within the redrive budget."""
        service, settings = self._service, self._settings
        report = RedriveReport()
        deadline = Deadline.after(
            settings.redrive_budget_s, clock=service.clock, reserve_s=settings.reserve_s
        )
        service.events.emit(Action.REDRIVE_STARTED, budget_s=settings.redrive_budget_s)
        run = _Run(service, report, deadline)
        async with anyio.create_task_group() as passes:
            retried = await run.claim_lane(
                Lane.RETRIED, max(1, settings.redrive_batch // 2), passes
            )
            await run.claim_lane(Lane.NEW, settings.redrive_batch - retried, passes)
        service.events.emit(Action.REDRIVE_ENDED, **report.as_dict())
        return report


class _Run:
    """One run: what it has claimed, and the room that is left for each destination."""

    def __init__(self, service: Service, report: RedriveReport, deadline: Deadline) -> None:
        self._service = service
        self._settings = service.settings
        self._report = report
        self._deadline = deadline
        self._room = anyio.CapacityLimiter(self._settings.redrive_concurrency)
        self._rooms: dict[str, anyio.CapacityLimiter] = {}
        self._shares: Counter[str] = Counter()

    async def claim_lane(self, lane: Lane, most: int, passes: TaskGroup) -> int:
        """Claim up to `most` markers of a lane and start their passes; return how many."""
        begun = 0
        async for operation_id in self._due(lane, most):
            if begun >= most or not self._may_start():
                break
            held = await self._hold(operation_id)
            if held is None:
                continue
            if self._shares[held.destination] >= max(1, self._settings.redrive_batch // 2):
                await self._hand_back(held, delay_s=self._settings.row_backoff_base_s)
                continue
            self._shares[held.destination] += 1
            begun += 1
            passes.start_soon(self._pass, held)
        return begun

    def _may_start(self) -> bool:
        return (
            self._deadline.for_work_s() > 0
            and self._deadline.remaining_s() >= self._settings.min_pass_s
        )

    async def _due(self, lane: Lane, most: int) -> AsyncIterator[str]:
        """Yield due keys of a lane, oldest first in each shard, the shards in turn."""
        cursors: dict[str, DueCursor | None] = dict.fromkeys(self._service.store.shards(lane))
        looks = most * _LOOKS_PER_BATCH
        # Small pages, so that no shard's backlog fills the batch before the next shard is asked.
        page_size = -(-most // len(cursors))
        while cursors and looks > 0:
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

    async def _page(self, shard: str, after: DueCursor | None, limit: int) -> DuePage:
        until_ms = self._service.clock.wall_ms()
        return await insist(
            lambda within_s: self._service.store.due(
                shard, until_ms=until_ms, limit=limit, after=after, within_s=within_s
            ),
            deadline=self._deadline,
            limit_s=self._settings.store_call_limit_s,
            tries=_CLAIM_TRIES,
        )

    async def _hold(self, operation_id: str) -> Marker | None:
        """Claim a waiting marker or take over an abandoned one; None when it is not to be had."""
        claim = Claim(
            claim_id=self._service.ids.new_claim_id(), lease_s=self._settings.lease_in_force_s
        )
        store = self._service.store
        try:
            result = await self._insist(
                lambda within_s: store.claim(operation_id, claim, within_s=within_s)
            )
            if isinstance(result, Written):
                self._report.claimed += 1
                self._tell(Action.CLAIMED, result.marker)
                return result.marker
            seen = result.marker
            if seen is None or seen.state is not State.CLAIMED or not self._is_over(seen):
                self._not_due(operation_id, seen)
                return None
            result = await self._insist(
                lambda within_s: store.takeover(seen, claim, within_s=within_s)
            )
        except StoreError as error:
            self._failed(operation_id=operation_id, reason=str(error))
            return None
        if isinstance(result, Refused):
            self._not_due(operation_id, result.marker)
            return None
        self._report.taken_over += 1
        self._tell(Action.TAKEN_OVER, result.marker, from_claim_id=seen.claim_id)
        return result.marker

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

    async def _pass(self, held: Marker) -> None:
        """Run the pass of one claim when there is room for it, or hand the claim back."""
        begun = False
        try:
            async with self._room_for(held.destination), self._room:
                if self._may_start() and self._lease_suffices(held):
                    begun = True
                    settled = await self._service.delivery.run_pass(held, self._pass_deadline())
                    self._report.settled[settled.value] += 1
        finally:
            if not begun:
                await self._hand_back(held)

    def _room_for(self, destination: str) -> anyio.CapacityLimiter:
        return self._rooms.setdefault(
            destination, anyio.CapacityLimiter(self._settings.redrive_per_destination)
        )

    def _lease_suffices(self, held: Marker) -> bool:
        """Tell whether a whole attempt still fits a claim that waited for room.

        A claim that did not wait always starts: with a lease shorter than an attempt nothing ever
        would, and a pass that outlives its lease costs at most a repeat.
        """
        now_ms = self._service.clock.wall_ms()
        needed_s = self._settings.attempt_limit_s + self._settings.skew_margin_s
        fresh = now_ms - held.updated_at_ms <= _FRESH_CLAIM_MS
        left_ms = (held.lease_until_ms or 0) - now_ms
        return fresh or left_ms >= needed_s * 1000

    def _pass_deadline(self) -> Deadline:
        return Deadline.after(
            self._settings.budget_s,
            clock=self._service.clock,
            reserve_s=self._settings.reserve_s,
            allowance_s=self._deadline.remaining_s(),
        )

    async def _hand_back(self, held: Marker, *, delay_s: float = 0.0) -> None:
        """Give an unstarted claim back as it was, also when the run is being cancelled."""
        due_at_ms = self._service.clock.wall_ms() + round(delay_s * 1000)
        with anyio.move_on_after(self._settings.reserve_s, shield=True):
            try:
                await self._insist(
                    lambda within_s: self._service.store.release(
                        held,
                        uncertain=held.unknown,
                        due_at_ms=due_at_ms,
                        settlement=Settlement(passes=-1),
                        within_s=within_s,
                    )
                )
            except StoreError as error:
                self._failed(operation_id=held.operation_id, reason=str(error))
                return
            self._report.handed_back += 1
            self._tell(Action.HANDED_BACK, held)

    async def _insist(self, call: Callable[[float], Awaitable[WriteReply]]) -> WriteReply:
        return await insist(
            call,
            deadline=self._deadline,
            limit_s=self._settings.store_call_limit_s,
            tries=_CLAIM_TRIES,
        )

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
