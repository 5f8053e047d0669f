"""Accepting: one conditional write, confirmed before the answer; who follows with a pass."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import anyio
import pytest

from handler.accept import Acceptance, Acceptor
from handler.budget import budget
from handler.events import Action, Events
from handler.intake import Intake
from handler.lifetime import Lifetime
from handler.places import Places
from handler.problems import Problem
from handler.settings import Settings
from storage.errors import StoreError, StoreMisconfigured
from storage.marker import Claim
from storage.states import State
from storage.store import Store
from tests.support import apps
from tests.support.apps import no_jitter, seeded_ids
from tests.support.clock import LoopClock
from tests.support.transports import Fate, FaultyTransport, down, lost_reply, slow
from tests.support.virtual import run_virtual

INTAKE = Intake(destination="a", payload=b"{}", fingerprint="f", key="order-1")


def lifetime(remaining_s: float | None = 30.0) -> Lifetime:
    """Return a lifetime that grants so much."""
    return Lifetime(wait_until=lambda _: None, remaining=lambda: remaining_s, platform="test")


@dataclass(kw_only=True)
class Scene:
    """An acceptor on a memory store."""

    settings: Settings = field(default_factory=no_jitter)

    def __post_init__(self) -> None:
        self.clock = LoopClock()
        self.transport = FaultyTransport()
        self.events = apps.Events()
        self.places = Places(self.settings.max_inline_passes)
        self.acceptor = self.replica(1)

    def replica(self, seed: int) -> Acceptor:
        """Return one more replica on the same store."""
        return Acceptor(
            store=Store(self.transport, now_ms=self.clock.wall_ms),
            settings=self.settings,
            clock=self.clock,
            ids=seeded_ids(self.clock, seed),
            events=Events(self.events),
            places=self.places,
        )

    async def accept(
        self,
        intake: Intake = INTAKE,
        *,
        given: Lifetime | None = None,
        caller: str = "alice",
    ) -> Acceptance:
        """Accept under a lifetime of 30 s unless told otherwise."""
        return await self.acceptor.accept(intake, caller=caller, lifetime=given or lifetime())


def test_an_accepted_operation_is_claimed_with_its_deadline() -> None:
    """One write, no read; the pass's deadline is made before the answer leaves."""
    scene = Scene()

    async def main() -> tuple[Acceptance, float, int]:
        acceptance = await scene.accept()
        assert acceptance.deadline is not None
        return acceptance, acceptance.deadline.for_work_s(), scene.places.taken()

    acceptance, for_work_s, taken = run_virtual(main)

    assert (acceptance.marker.state, acceptance.marker.payload) == (State.CLAIMED, b"{}")
    assert (for_work_s, taken) == (24.0, 1)
    assert (scene.transport.writes, scene.transport.reads) == (1, 0)


@pytest.mark.parametrize(
    ("remaining_s", "expected_s"), [(None, 24.0), (30.0, 24.0), (10.0, 9.0), (1.5, 0.5)]
)
def test_the_pass_gets_the_smaller_of_budget_and_allowance(
    remaining_s: float | None, expected_s: float
) -> None:
    """What the platform grants in all is asked before the answer."""

    async def main() -> float:
        acceptance = await Scene().accept(given=lifetime(remaining_s))
        assert acceptance.deadline is not None
        return acceptance.deadline.for_work_s()

    assert expected_s == run_virtual(main)


def test_a_callers_own_budget_holds_for_its_passes() -> None:
    """`budget()` grants passes that begin inside it something else."""

    async def main() -> float:
        with budget(4.0):
            acceptance = await Scene().accept()
        assert acceptance.deadline is not None
        return acceptance.deadline.for_work_s()

    assert run_virtual(main) == 3.0


@pytest.mark.parametrize(
    ("given", "action"),
    [
        (None, Action.BACKGROUND_UNOWNED),
        (lifetime(0.0), Action.NO_ALLOWANCE),
        (lifetime(1.0), Action.NO_ALLOWANCE),
    ],
)
def test_without_time_after_the_answer_nothing_is_claimed(
    given: Lifetime | None, action: Action
) -> None:
    """The marker waits, due at once, for redrive."""
    scene = Scene()

    async def main() -> Acceptance:
        return await scene.acceptor.accept(INTAKE, caller="", lifetime=given)

    acceptance = run_virtual(main)

    assert acceptance.marker.state is State.UNDELIVERED
    assert acceptance.marker.due_at_ms == acceptance.marker.created_at_ms
    assert acceptance.deadline is None
    assert scene.events.actions() == [action, Action.ACCEPTED]


def test_o27_a_burst_does_not_pass_the_bound_on_inline_passes() -> None:
    """Each accept takes its place before its write; those turned away are left to redrive."""
    scene = Scene(settings=no_jitter(max_inline_passes=3))
    scene.transport.fault = lambda _: slow(0.5)

    async def main() -> list[State]:
        states = list[State]()

        async def one(key: str) -> None:
            intake = Intake(destination="a", payload=b"{}", fingerprint="f", key=key)
            states.append((await scene.accept(intake)).marker.state)

        async with anyio.create_task_group() as group:
            for number in range(5):
                group.start_soon(one, f"key-{number}")
        return states

    states = run_virtual(main)

    assert sorted(states) == [State.CLAIMED] * 3 + [State.UNDELIVERED] * 2
    assert scene.events.actions().count(Action.TURNED_AWAY) == 2


def test_the_same_key_and_body_is_the_same_operation() -> None:
    """No second marker, no second pass, and no place taken for it."""
    scene = Scene()

    async def main() -> tuple[Acceptance, Acceptance, int]:
        return await scene.accept(), await scene.accept(), scene.places.taken()

    first, second, taken = run_virtual(main)

    assert first.marker == second.marker
    assert (second.deadline, taken) == (None, 1)
    assert scene.events.actions() == [Action.ACCEPTED, Action.REPLAYED]


def test_the_same_key_with_another_body_is_refused() -> None:
    """422; the first operation is untouched."""
    scene = Scene()
    other = Intake(destination="a", payload=b"[]", fingerprint="g", key="order-1")

    async def main() -> tuple[Problem, int]:
        await scene.accept()
        with pytest.raises(Problem) as caught:
            await scene.accept(other)
        return caught.value, scene.places.taken()

    problem, taken = run_virtual(main)

    assert (problem.status, problem.field) == (422, "Idempotency-Key")
    assert (taken, scene.events.actions()[-1]) == (1, Action.MISMATCHED)


def test_keys_of_different_callers_never_meet() -> None:
    """Two callers with one key have two operations."""
    scene = Scene()

    async def main() -> tuple[str, str]:
        first = await scene.accept(caller="alice")
        second = await scene.accept(caller="bob")
        return first.marker.operation_id, second.marker.operation_id

    first, second = run_virtual(main)

    assert first != second


def test_without_a_key_every_accept_is_a_new_operation() -> None:
    """Nothing tells them apart from intent but the caller."""
    scene = Scene()
    keyless = Intake(destination="a", payload=b"{}", fingerprint="f", key=None)

    async def main() -> set[str]:
        return {(await scene.accept(keyless)).marker.operation_id for _ in range(3)}

    assert len(run_virtual(main)) == 3


def fates(*given: Fate | None) -> Any:
    """Return a fault that deals these out in turn."""
    dealt: Iterator[Fate | None] = iter(given)
    return lambda _: next(dealt, None)


@pytest.mark.parametrize("fate", [down(), lost_reply()])
def test_o10_a_lost_first_try_is_made_once_more_with_the_same_token(fate: Fate) -> None:
    """202 with exactly one marker, ours, and its pass follows."""
    scene = Scene()
    scene.transport.fault = fates(fate)
    acceptance = run_virtual(scene.accept)

    assert acceptance.marker.state is State.CLAIMED
    assert acceptance.deadline is not None
    assert scene.transport.writes == 2


def test_a_write_that_came_home_late_and_was_taken_over_is_not_passed_twice() -> None:
    """The operation is ours to acknowledge; its claim is somebody else's by now."""
    scene = Scene(settings=no_jitter(lease_s=0.0, skew_margin_s=0.0))
    store = Store(scene.transport.inner, now_ms=scene.clock.wall_ms, skew_margin_s=0.0)
    scene.transport.fault = fates(lost_reply())

    async def takes_over() -> None:
        await anyio.sleep(0.02)
        (operation_id,) = scene.transport.inner.rows  # type: ignore[attr-defined]
        seen = await store.read(operation_id, within_s=1)
        assert seen is not None
        await store.takeover(seen, Claim(claim_id="other", lease_s=45.0), within_s=1)

    async def main() -> Acceptance:
        taking = asyncio.ensure_future(takes_over())
        acceptance = await scene.accept()
        await taking
        return acceptance

    acceptance = run_virtual(main)

    assert (acceptance.marker.claim_id, acceptance.deadline) == ("other", None)


@pytest.mark.parametrize(
    ("fault", "ended_s", "headers"),
    [
        (down, 0.05, {"Retry-After": "1"}),
        (lambda _: slow(60), 2.0, {"Retry-After": "1"}),
        (lambda _: Fate(error=StoreMisconfigured("no table")), 0.0, {}),
    ],
    ids=["down", "silent", "misconfigured"],
)
def test_an_unconfirmed_write_is_never_acknowledged(
    fault: Any, ended_s: float, headers: dict[str, str]
) -> None:
    """503 within the accept's own budget, no place kept, and how to repeat it."""
    scene = Scene()
    scene.transport.fault = fault

    async def main() -> float:
        with pytest.raises(Problem) as caught:
            await scene.accept()
        assert (caught.value.status, caught.value.kind) == (503, "store-unavailable")
        assert caught.value.remedy == "Repeat the request with the same Idempotency-Key"
        assert headers == caught.value.headers
        assert isinstance(caught.value.__cause__, StoreError)
        assert scene.places.taken() == 0
        return round(anyio.current_time(), 3)

    assert ended_s == run_virtual(main)
    assert scene.events.actions() == [Action.ACCEPT_FAILED]


def test_a_cancelled_accept_keeps_no_place() -> None:
    """The client left and the server cancelled: nobody will run that pass."""
    scene = Scene()
    scene.transport.fault = lambda _: slow(1.0)

    async def main() -> int:
        with anyio.move_on_after(0.5):
            await scene.accept()
        return scene.places.taken()

    assert run_virtual(main) == 0


@pytest.mark.parametrize(
    ("before_s", "after_s"), [(0.5, 0.0), (0.0, 0.5)], ids=["on its way", "reply on its way"]
)
def test_a_caller_that_leaves_during_the_write_leaves_no_claim_behind(
    before_s: float, after_s: float
) -> None:
    """No pass will follow, so the marker waits, known not delivered, with no pass used up."""
    scene = Scene()
    scene.transport.fault = fates(Fate(delay_s=before_s, reply_after_s=after_s))

    async def main() -> int:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(scene.accept)
            await anyio.sleep(0.1)
            tasks.cancel_scope.cancel()
        return scene.places.taken()

    taken = run_virtual(main)

    (row,) = scene.transport.inner.rows.values()  # type: ignore[attr-defined]
    assert (row["state"], row["unknown"], row["passes"]) == ("undelivered", False, 0)
    assert "claim_id" not in row
    assert taken == 0


def test_a_caller_that_leaves_while_the_store_is_away_is_told_to_the_log_only() -> None:
    """What may have landed has its lease; the cancellation goes through."""
    scene = Scene()
    scene.transport.fault = fates(slow(60.0), down())

    async def main() -> bool:
        with anyio.move_on_after(0.1) as scope:
            await scene.accept()
        return scope.cancelled_caught

    assert run_virtual(main)
    assert scene.events.actions() == [Action.ACCEPT_FAILED]
