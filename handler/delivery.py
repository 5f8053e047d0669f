"""A pass: one bounded try at finishing an operation, inline after the response or in redrive.

Data flows one way: the marker under this pass's claim -> attempts -> verdict -> settle. Attempts,
waits, lookups and the last write all spend the pass's one deadline. The verdict is known at every
await, so a pass that is cancelled still settles what it knows, shielded and bounded by what the
deadline leaves, and then lets the cancellation through. A pass that is killed or frozen writes
nothing: its claim ends by its lease, and "may have been sent" is what a taken-over claim means.

Not here: who starts a pass (`accept`, `redrive`), what may follow an unknown (`reconcile`), what a
verdict is (`verdict`), and how it is written (`settle`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import anyio

from handler.attempt import Attempt, attempt
from handler.budget import Deadline
from handler.destinations import Destination, Operation
from handler.events import Action, Events
from handler.heartbeat import Hold, holding, interval_s
from handler.lifetime import never
from handler.outcome import Outcome
from handler.reconcile import Finding, Permit, look_up, permit
from handler.retry import Backoff
from handler.sender import Sender, Trace
from handler.settings import Settings
from handler.settle import Settled, Settler
from handler.verdict import PassLog, Verdict, VerdictKind
from storage.marker import Marker
from storage.store import Store

__all__ = ["Delivery"]

_PARK_UNKNOWN = (
    "may have been delivered, and the destination can neither be asked nor sent the key again"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """Runs passes.

    Attributes:
        store: Where the outcome is written.
        sender: Carries requests.
        destinations: By name.
        settings: Limits and durations.
        uniform: Draws evenly from [0, 1) for jitter.
        events: Told of everything.
    """

    store: Store
    sender: Sender
    destinations: Mapping[str, Destination]
    settings: Settings
    uniform: Callable[[], float]
    events: Events

    async def run_pass(
        self,
        held: Marker,
        deadline: Deadline,
        *,
        after: anyio.Event | None = None,
        stopping: Callable[[], bool] = never,
    ) -> Settled:
        """Try to finish the operation whose claim is `held`, and settle it.

        Args:
            held: The marker as this pass's own claim left it.
            deadline: The pass's one deadline.
            after: What the first attempt waits for; a cut before it gives the claim back.
            stopping: Tells whether the process is about to end: then no attempt is begun.

        Returns:
            How the claim was settled.

        Raises:
            Exception: A defect; what is known has been settled.
        """
        log = PassLog(attempts_before=held.attempts, unknown=held.unknown)
        settler = Settler(
            store=self.store, settings=self.settings, uniform=self.uniform, events=self.events
        )
        self._tell(Action.PASS_STARTED, held, passes=held.passes, unknown=held.unknown)
        try:
            if after is not None:
                await after.wait()
            log.verdict = await self._work(held, deadline, log, stopping)
            return await settler.settle(held, log.verdict, log, deadline)
        except anyio.get_cancelled_exc_class():
            # A native cancel reaches into the shield of a settle under way: the write is made
            # again, and knows its own first try if that one landed.
            self._tell(Action.PASS_CUT, held, attempts=log.made())
            await settler.settle(held, log.when_cut(), log, deadline)
            raise
        except Exception as error:
            self._tell(Action.PASS_FAILED, held, reason=f"{type(error).__name__}: {error}")
            await settler.settle(held, log.when_cut("the pass failed"), log, deadline)
            raise

    async def _work(
        self, held: Marker, deadline: Deadline, log: PassLog, stopping: Callable[[], bool]
    ) -> Verdict:
        destination = self.destinations.get(held.destination)
        if destination is None:
            return Verdict(
                kind=VerdictKind.RELEASE,
                reason=f"no destination {held.destination!r} is configured",
            )
        if held.passes > self.settings.max_passes:
            return Verdict(kind=VerdictKind.PARK, reason=f"more than {held.passes - 1} passes")
        lease_s = self.settings.lease_in_force_s
        every_s = interval_s(
            configured_s=self.settings.heartbeat_every_s,
            lease_s=lease_s,
            pass_s=deadline.remaining_s(),
        )
        async with holding(
            held,
            store=self.store,
            every_s=every_s,
            lease_s=lease_s,
            deadline=deadline,
            events=self.events,
        ) as hold:
            # Noted inside: the heartbeats' end awaits, and a cut there must not cost the verdict.
            log.verdict = await self._attempts(held, destination, deadline, log, hold, stopping)
        return log.verdict

    async def _attempts(
        self,
        held: Marker,
        destination: Destination,
        deadline: Deadline,
        log: PassLog,
        hold: Hold,
        stopping: Callable[[], bool],
    ) -> Verdict:
        backoff = Backoff(
            base_s=self.settings.backoff_base_s,
            cap_s=self.settings.backoff_cap_s,
            jitter=self.settings.backoff_jitter,
            uniform=self.uniform,
        )
        rounds = 0
        while True:
            rounds += 1
            if hold.lost:
                return Verdict(kind=VerdictKind.RELEASE, reason="the lease was lost")
            if stopping():
                if not log.attempts:
                    self._tell(Action.TURNED_AWAY, held)
                return Verdict(kind=VerdictKind.RELEASE, reason="the platform is stopping")
            verdict, asked_s = await self._round(held, destination, deadline, log)
            if verdict is not None:
                return verdict
            if self._permit(held, destination, log, deadline) is Permit.PARK:
                return log.parked(_PARK_UNKNOWN)
            wait_s = backoff.wait_s(rounds, asked_s)
            if wait_s >= deadline.for_work_s():
                return Verdict(kind=VerdictKind.RELEASE, reason="the budget was spent")
            await anyio.sleep(wait_s)

    async def _round(
        self, held: Marker, destination: Destination, deadline: Deadline, log: PassLog
    ) -> tuple[Verdict | None, float | None]:
        """Ask if need be, send if allowed; return a verdict, or None and the wait asked for."""
        match self._permit(held, destination, log, deadline):
            case Permit.PARK:
                return log.parked(_PARK_UNKNOWN), None
            case Permit.ASK:
                finding = await look_up(
                    destination,
                    held.operation_id,
                    sender=self.sender,
                    deadline=deadline,
                    limit_s=self.settings.attempt_limit_s,
                    emit=lambda **fields: self.events.emit(Action.LOOKED_UP, **fields),
                )
                if finding is Finding.FOUND:
                    return Verdict(kind=VerdictKind.CONFIRM, reason="the receiver was asked"), None
                if finding is Finding.SILENT:
                    return None, None
                log.is_absent()
            case Permit.SEND:
                pass
        made = await self._attempt(held, destination, deadline, log)
        if made is None:
            return Verdict(kind=VerdictKind.RELEASE, reason="the budget was spent"), None
        if made.outcome is Outcome.DELIVERED:
            return Verdict(kind=VerdictKind.CONFIRM, reason=made.detail), None
        if made.outcome is Outcome.REJECTED:
            return log.refused(idempotent=destination.idempotent), None
        return None, made.retry_after_s

    def _permit(
        self, held: Marker, destination: Destination, log: PassLog, deadline: Deadline
    ) -> Permit:
        if log.is_in_progress_only(inherited_unknown=held.unknown):
            return Permit.SEND
        return permit(
            destination,
            unknown=log.unknown,
            created_at_ms=held.created_at_ms,
            now_ms=deadline.clock.wall_ms(),
            margin_s=self.settings.dedupe_margin_s,
        )

    async def _attempt(
        self, held: Marker, destination: Destination, deadline: Deadline, log: PassLog
    ) -> Attempt | None:
        number = log.attempts_before + len(log.attempts) + 1
        operation = Operation(
            operation_id=held.operation_id,
            destination=held.destination,
            payload=held.payload,
            attempt=number,
            timestamp_s=deadline.clock.wall_ms() // 1000,
        )

        def on_start(trace: Trace) -> None:
            log.started(trace)
            self._tell(Action.ATTEMPT_STARTED, held, attempt=number)

        made = await attempt(
            operation,
            destination,
            sender=self.sender,
            deadline=deadline,
            limit_s=self.settings.attempt_limit_s,
            max_retry_after_s=self.settings.max_retry_after_s,
            on_start=on_start,
        )
        if made is not None:
            log.ended(made)
            self._tell(
                Action.ATTEMPT_ENDED,
                held,
                attempt=number,
                outcome=made.outcome.value,
                status=made.status,
                detail=made.detail,
            )
        return made

    def _tell(self, action: Action, held: Marker, **fields: object) -> None:
        self.events.emit(
            action,
            operation_id=held.operation_id,
            claim_id=held.claim_id,
            destination=held.destination,
            **fields,
        )
