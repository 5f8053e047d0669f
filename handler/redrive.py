"""Redrive: the scheduled function that finishes what was left. Its own process, never the web's.

One run has a budget, walks every shard of both lanes, claims a bounded batch and delivers with
bounded concurrency. It awaits all its work and uses no wait_until. Rules:

* Rows that were tried before get at most half of a batch, so a poisoned head cannot starve new
  work. One destination gets more than half of a batch only from what the others left of it, and a
  bounded number of passes at once, so a slow or broken one cannot starve the others.
* No pass starts when the run's budget or the claim's lease is too short for it; what was claimed
  and not started is handed back, untouched, also by a run that is cancelled.
* Passes leave the run its reserve, in which the rest is handed back.
* A pass that fails by a defect is counted, and the other passes go on.

Not here: the schedule (the platform's), what a pass does (`delivery`), how claims are won and
given back (`leftovers`).
"""

import json
import sys
from collections import Counter
from contextlib import aclosing

import anyio
from anyio.abc import TaskGroup

from handler.budget import Deadline, budget_in_force_s
from handler.errors import ConfigurationError
from handler.events import Action
from handler.leftovers import Leftovers
from handler.report import RedriveReport
from handler.service import Parts, Service
from storage.errors import StoreMisconfigured
from storage.marker import Marker
from storage.shards import Lane

__all__ = ["Redrive", "RedriveReport", "main", "run_from_environment"]

_FRESH_CLAIM_MS = 1000


async def run_from_environment() -> RedriveReport:
    """Run once with everything read from environment variables; what a scheduler calls.

    Raises:
        ConfigurationError: A variable is unusable.
    """
    service = Service(Parts.from_environment())
    try:
        return await Redrive(service).run()
    finally:
        await service.aclose()


class Redrive:
    """Runs over one service."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def run(self) -> RedriveReport:
        """Run once, within the redrive budget."""
        service, settings = self._service, self._service.settings
        report = RedriveReport()
        deadline = Deadline.after(
            settings.redrive_budget_s, clock=service.clock, reserve_s=settings.reserve_s
        )
        service.events.emit(Action.REDRIVE_STARTED, budget_s=settings.redrive_budget_s)
        run = _Run(service, report, deadline)
        async with anyio.create_task_group() as tasks:
            # In a task of its own, where the shields hold also against a native cancel.
            tasks.start_soon(run.claim_all, tasks)
        service.events.emit(Action.REDRIVE_ENDED, **report.as_dict())
        return report


class _Run:
    """One run: what it has claimed, and the room that is left for each destination."""

    def __init__(self, service: Service, report: RedriveReport, deadline: Deadline) -> None:
        self._service = service
        self._settings = service.settings
        self._report = report
        self._deadline = deadline
        self._leftovers = Leftovers(service, report, deadline)
        self._room = anyio.CapacityLimiter(self._settings.redrive_concurrency)
        self._rooms: dict[str, anyio.CapacityLimiter] = {}
        self._share = max(1, self._settings.redrive_batch // 2)
        self._shares: Counter[str] = Counter()
        self._set_aside: list[Marker] = []
        self._yielded = 0

    async def claim_all(self, passes: TaskGroup) -> None:
        """Claim a batch from both lanes and start its passes."""
        batch = self._settings.redrive_batch
        begun = 0
        try:
            begun += await self._claim_lane(Lane.RETRIED, self._share, passes)
            begun += await self._claim_lane(Lane.NEW, batch - begun, passes)
        finally:
            for held in self._set_aside[: batch - begun]:
                passes.start_soon(self._pass, held)
            for held in self._set_aside[batch - begun :]:
                await self._yield_turn(held)

    async def _claim_lane(self, lane: Lane, most: int, passes: TaskGroup) -> int:
        """Claim up to `most` markers of a lane and start their passes; return how many."""
        begun = 0
        async with aclosing(self._leftovers.due(lane, most)) as due:
            async for operation_id in due:
                enough = begun >= most or self._yielded >= self._share
                if enough or not self._may_start():
                    break
                held = await self._leftovers.hold(operation_id)
                if held is None:
                    continue
                if self._shares[held.destination] < self._share:
                    self._shares[held.destination] += 1
                    begun += 1
                    passes.start_soon(self._pass, held)
                elif len(self._set_aside) < self._share:
                    self._set_aside.append(held)
                else:
                    self._yielded += 1
                    await self._yield_turn(held)
        return begun

    async def _yield_turn(self, held: Marker) -> None:
        """Hand back what exceeds a destination's share, so that others come before it next time."""
        await self._leftovers.hand_back(held, delay_s=self._settings.row_backoff_base_s)

    async def _pass(self, held: Marker) -> None:
        """Run the pass of one claim when there is room for it, or hand the claim back."""
        begun = False
        try:
            async with self._room_for(held.destination), self._room:
                if self._may_start() and self._lease_suffices(held):
                    begun = True
                    settled = await self._service.delivery.run_pass(held, self._pass_deadline())
                    self._report.settled[settled.value] += 1
        except Exception as error:  # noqa: BLE001  one defect must not cancel the other passes
            self._report.failed += 1
            self._service.events.emit(
                Action.REDRIVE_FAILED,
                operation_id=held.operation_id,
                reason=f"{type(error).__name__}: {error}",
            )
        finally:
            if not begun:
                await self._leftovers.hand_back(held)

    def _room_for(self, destination: str) -> anyio.CapacityLimiter:
        return self._rooms.setdefault(
            destination, anyio.CapacityLimiter(self._settings.redrive_per_destination)
        )

    def _may_start(self) -> bool:
        return self._deadline.for_work_s() >= self._settings.min_pass_s

    def _lease_suffices(self, held: Marker) -> bool:
        """Tell whether a whole attempt still fits a claim that waited for room.

        A claim that did not wait always starts: with a lease shorter than an attempt nothing ever
        would, and a pass that outlives its lease costs at most a repeat.
        """
        now_ms = self._service.clock.wall_ms()
        attempt_s = min(self._settings.attempt_limit_s, self._settings.budget_s)
        needed_s = attempt_s + self._settings.skew_margin_s
        fresh = now_ms - held.updated_at_ms <= _FRESH_CLAIM_MS
        left_ms = (held.lease_until_ms or 0) - now_ms
        return fresh or left_ms >= needed_s * 1000

    def _pass_deadline(self) -> Deadline:
        return Deadline.after(
            budget_in_force_s(self._settings.budget_s),
            clock=self._service.clock,
            reserve_s=self._settings.reserve_s,
            allowance_s=self._deadline.for_work_s(),
        )


def main() -> int:
    """Run once from the command line, for any scheduler: `python -m handler.redrive`.

    Prints the report as one JSON line. Exit code 0: the run came to its end, 1: the store could not
    be asked or a pass failed, 2: the configuration cannot be used.
    """
    try:
        report = anyio.run(run_from_environment)
    except (ConfigurationError, StoreMisconfigured) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(json.dumps(report.as_dict()) + "\n")
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
