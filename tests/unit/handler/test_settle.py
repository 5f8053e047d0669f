"""Settling: the right write, shielded, inside what the deadline leaves, and told."""

from collections.abc import Callable
from functools import partial
from typing import Any

import anyio
import pytest

from handler.attempt import Attempt
from handler.budget import Deadline
from handler.events import Action, Events
from handler.outcome import Outcome
from handler.settings import Settings
from handler.settle import Settled, Settler
from handler.verdict import PassLog, Verdict, VerdictKind
from storage.marker import Claim, Draft, Marker, Settlement
from storage.requests import Request
from storage.states import State
from storage.store import Store
from tests.support.apps import no_jitter
from tests.support.clock import EPOCH_MS, LoopClock
from tests.support.transports import Fate, FaultyTransport, down, lost_reply, slow, target
from tests.support.virtual import run_virtual

DRAFT = Draft(operation_id="op", accept_id="x", destination="a", payload=b"{}", fingerprint="f")


class Scene:
    """A claim held on virtual time, about to be settled."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.clock = LoopClock()
        self.transport = FaultyTransport()
        self.store = Store(self.transport, now_ms=self.clock.wall_ms)
        self.told = list[tuple[Action, dict[str, Any]]]()
        self.settler = Settler(
            store=self.store,
            settings=settings or no_jitter(),
            uniform=lambda: 0.5,
            events=Events(lambda action, fields: self.told.append((action, dict(fields)))),
        )

    async def held(self) -> Marker:
        """Accept an operation under a claim."""
        claim = Claim(claim_id="c", lease_s=45.0)
        return (await self.store.accept(DRAFT, claim=claim, within_s=1)).marker

    async def settle(
        self,
        kind: VerdictKind,
        *,
        unknown: bool = False,
        left_s: float = 10.0,
        retry_after_s: float | None = None,
        fault: Callable[[Request], Fate | None] | None = None,
        meanwhile: Callable[[Marker], Any] | None = None,
    ) -> Settled:
        """Settle with a verdict after one attempt."""
        held = await self.held()
        if meanwhile is not None:
            await meanwhile(held)
        self.transport.fault = fault
        log = PassLog(attempts_before=0, unknown=unknown)
        log.ended(
            Attempt(
                number=1,
                started_at_ms=EPOCH_MS,
                ended_at_ms=EPOCH_MS,
                outcome=Outcome.UNDELIVERED,
                status=503,
                retry_after_s=retry_after_s,
            )
        )
        verdict = Verdict(kind=kind, reason="because")
        deadline = Deadline.after(left_s, clock=self.clock, reserve_s=1.0)
        settled = await self.settler.settle(held, verdict, log, deadline)
        self.transport.fault = None
        return settled

    async def found(self) -> Marker:
        """Return the marker."""
        marker = await self.store.read("op", within_s=1)
        assert marker is not None
        return marker


@pytest.mark.parametrize(
    ("kind", "unknown", "settled", "state"),
    [
        (VerdictKind.CONFIRM, False, Settled.DELIVERED, State.DELIVERED),
        (VerdictKind.REJECT, False, Settled.REJECTED, State.REJECTED),
        (VerdictKind.PARK, True, Settled.PARKED, State.PARKED),
        (VerdictKind.RELEASE, False, Settled.UNDELIVERED, State.UNDELIVERED),
        (VerdictKind.RELEASE, True, Settled.UNCERTAIN, State.UNCERTAIN),
    ],
)
def test_each_verdict_has_its_write(
    kind: VerdictKind, *, unknown: bool, settled: Settled, state: State
) -> None:
    """The row says the state, what was tried and why it stands there."""
    scene = Scene()

    async def main() -> tuple[Settled, Marker]:
        return await scene.settle(kind, unknown=unknown), await scene.found()

    how, marker = run_virtual(main)
    ((action, fields),) = scene.told

    assert (settled, state) == (how, marker.state)
    assert (marker.attempts, marker.last_outcome, marker.last_status) == (1, "undelivered", 503)
    assert (action, fields["state"], fields["reason"]) == (Action.SETTLED, settled, "because")


@pytest.mark.parametrize(
    ("retry_after_s", "expected_s"), [(None, 10.0), (3600.0, 3600.0), (0.0, 0.0)]
)
def test_a_release_is_due_by_backoff_or_as_the_receiver_asked(
    retry_after_s: float | None, expected_s: float
) -> None:
    """Retry-After sets the next due time, also when it is past the budget."""
    scene = Scene()

    async def main() -> Marker:
        await scene.settle(VerdictKind.RELEASE, retry_after_s=retry_after_s)
        return await scene.found()

    assert EPOCH_MS + round(expected_s * 1000) == run_virtual(main).due_at_ms


def test_waiting_beyond_the_age_limit_parks_instead() -> None:
    """A Retry-After beyond a marker's age limit would wait for ever."""
    scene = Scene(no_jitter(max_age_s=3600.0))

    async def main() -> Marker:
        await scene.settle(VerdictKind.RELEASE, retry_after_s=3601.0)
        return await scene.found()

    marker = run_virtual(main)

    assert (marker.state, marker.reason) == (
        State.PARKED,
        "older than 3600 s without a result: because",
    )


@pytest.mark.parametrize("kind", [VerdictKind.REJECT, VerdictKind.PARK, VerdictKind.RELEASE])
def test_o19_without_the_own_claim_nothing_but_a_confirmation_is_written(kind: VerdictKind) -> None:
    """Being refused is normal, returned and told; `delivered` is never touched."""
    scene = Scene()

    async def meanwhile(held: Marker) -> None:
        await scene.store.confirm(held.operation_id, Settlement(), within_s=1)

    async def main() -> tuple[Settled, State]:
        return await scene.settle(kind, meanwhile=meanwhile), (await scene.found()).state

    assert run_virtual(main) == (Settled.REFUSED, State.DELIVERED)
    assert scene.told[0][0] is Action.WRITE_REFUSED


def test_a_confirmation_counts_from_a_claim_that_was_lost() -> None:
    """First one home counts: identity is enough, somebody else's claim or not."""
    scene = Scene()

    async def meanwhile(held: Marker) -> None:
        await scene.store.park(held, unknown=False, reason="r", settlement=Settlement(), within_s=1)

    async def main() -> tuple[Settled, State]:
        how = await scene.settle(VerdictKind.CONFIRM, meanwhile=meanwhile)
        return how, (await scene.found()).state

    assert run_virtual(main) == (Settled.DELIVERED, State.DELIVERED)


def test_a_confirmation_of_nothing_creates_nothing() -> None:
    """A marker that is gone stays gone."""
    scene = Scene()

    async def meanwhile(_held: Marker) -> None:
        scene.store = Store(FaultyTransport(), now_ms=scene.clock.wall_ms)
        scene.settler = Settler(
            store=scene.store,
            settings=no_jitter(),
            uniform=lambda: 0.5,
            events=scene.settler.events,
        )

    async def main() -> tuple[Settled, Marker | None]:
        how = await scene.settle(VerdictKind.CONFIRM, meanwhile=meanwhile)
        return how, await scene.store.read("op", within_s=1)

    assert run_virtual(main) == (Settled.REFUSED, None)


@pytest.mark.parametrize("kind", VerdictKind)
def test_a_lost_reply_is_repeated_and_known_as_ones_own(kind: VerdictKind) -> None:
    """The write landed, its reply was lost: the second try counts as done, nothing twice."""
    scene = Scene()
    lost = iter([lost_reply()])

    async def main() -> tuple[Settled, Marker]:
        how = await scene.settle(kind, fault=lambda _: next(lost, None))
        return how, await scene.found()

    how, marker = run_virtual(main)

    assert how not in {Settled.REFUSED, Settled.UNWRITTEN}
    assert (marker.attempts, marker.state is State.CLAIMED) == (1, False)


@pytest.mark.parametrize("kind", VerdictKind)
def test_a_store_that_stays_away_leaves_the_claim_to_its_lease(kind: VerdictKind) -> None:
    """Insisted on until the deadline and no longer; the failure is told, not raised."""
    scene = Scene()

    async def main() -> tuple[Settled, float, State]:
        how = await scene.settle(kind, left_s=3.0, fault=down)
        return how, anyio.current_time(), (await scene.found()).state

    how, ended_s, state = run_virtual(main)
    ((action, fields),) = scene.told

    assert (how, state) == (Settled.UNWRITTEN, State.CLAIMED)
    assert 2.0 < ended_s <= 3.0
    assert (action, fields["reason"]) == (Action.SETTLE_FAILED, "the store is down")


def test_a_hanging_write_is_given_up_at_the_deadline() -> None:
    """Cleanup is shielded, and bounded all the same."""
    scene = Scene()

    async def main() -> tuple[Settled, float]:
        how = await scene.settle(VerdictKind.RELEASE, left_s=1.0, fault=lambda _: slow(60))
        return how, anyio.current_time()

    assert run_virtual(main) == (Settled.UNWRITTEN, 1.0)


@pytest.mark.parametrize("left_s", [0.0, -280.0])
def test_o09_after_the_deadline_only_a_confirmation_is_still_written(left_s: float) -> None:
    """A thawed pass judges no result by the clock: it is worth one more reserve, nothing else."""

    async def settle(kind: VerdictKind) -> Settled:
        return await Scene().settle(kind, left_s=left_s)

    found = {kind: run_virtual(partial(settle, kind)) for kind in VerdictKind}

    assert found == {
        VerdictKind.CONFIRM: Settled.DELIVERED,
        VerdictKind.REJECT: Settled.UNWRITTEN,
        VerdictKind.PARK: Settled.UNWRITTEN,
        VerdictKind.RELEASE: Settled.UNWRITTEN,
    }


def test_a_transport_that_overstays_is_cut_at_the_deadline() -> None:
    """The bound does not hang on a transport that keeps its own time."""
    scene = Scene()

    async def main() -> tuple[Settled, float]:
        fate = Fate(delay_s=60.0, deaf=True)
        how = await scene.settle(VerdictKind.RELEASE, left_s=1.0, fault=lambda _: fate)
        return how, anyio.current_time()

    assert run_virtual(main) == (Settled.UNWRITTEN, 1.0)
    assert scene.told[0][1]["reason"] == "no time was left for the write"


def test_a_late_confirmation_is_bounded_by_the_reserve() -> None:
    """Worth one more reserve, not an endless wait."""
    scene = Scene()

    async def main() -> tuple[Settled, float]:
        how = await scene.settle(VerdictKind.CONFIRM, left_s=-5.0, fault=lambda _: slow(60))
        return how, anyio.current_time()

    assert run_virtual(main) == (Settled.UNWRITTEN, 1.0)


def test_a_scopes_cancellation_waits_for_the_write() -> None:
    """The write is shielded: a cut lets it end, then goes on."""
    scene = Scene()

    async def main() -> State:
        with anyio.move_on_after(0.1):
            await scene.settle(
                VerdictKind.RELEASE, fault=lambda request: slow(0.5) if target(request) else None
            )
        return (await scene.found()).state

    assert run_virtual(main) is State.UNDELIVERED
