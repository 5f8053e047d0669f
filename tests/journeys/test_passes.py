"""Passes under a budget, cut and uncut, and what redrive makes of them: cases by number."""

import asyncio
from typing import Any

import anyio
import pytest

from handler.events import Action
from platform_sim.world.script import Commit
from storage.requests import Request
from storage.states import State
from tests.support.apps import no_jitter
from tests.support.transports import Fate, slow, target
from tests.support.virtual import run_virtual
from tests.support.world import World, answers, kill, silent


async def deliver(world: World) -> float:
    """Post one operation and wait for its inline pass; return when that ended."""
    await world.setting.post(world.setting.app())
    await world.setting.platform.settled()
    return round(anyio.current_time(), 3)


def test_o11_do_not_sleep_into_the_limit() -> None:
    """Attempts at 0, 1 and 3; it stops at 3.0 at once, with a due time for redrive."""
    world = World(
        steps=(answers(503),),
        settings=no_jitter(budget_s=5.0, reserve_s=0.0, backoff_base_s=1.0, min_pass_s=1.0),
    )
    ended_s = run_virtual(lambda: deliver(world))
    marker = world.setting.marker()

    assert (world.arrivals_s, ended_s) == ([0.0, 1.0, 3.0], 3.0)
    assert (marker.state, marker.attempts) == (State.UNDELIVERED, 3)
    assert marker.due_at_ms is not None


def test_o12_every_wire_request_is_counted() -> None:
    """0.0-3.0, 3.5-6.5, 7.5-9.0; the marker's attempts equal the receiver's log."""
    world = World(steps=(silent(),), settings=no_jitter(budget_s=10.0, attempt_limit_s=3.0))
    ended_s = run_virtual(lambda: deliver(world))
    marker = world.setting.marker()

    assert (world.arrivals_s, ended_s) == ([0.0, 3.5, 7.5], 9.0)
    assert (marker.state, marker.attempts, world.wire) == (State.UNCERTAIN, 3, 3)


def test_o15_killed_while_in_flight_then_repeated() -> None:
    """The repeat gets the same operation and sends nothing; redrive takes over, effects 1."""
    world = World(steps=(silent(Commit.BEFORE), answers()), settings=no_jitter(lease_s=45.0))
    setting = world.setting

    async def main() -> tuple[Any, Any, int]:
        app = setting.app()
        first = await setting.post(app, payload=1, key="k")
        await world.until(15.0)
        kill(world)
        await world.until(35.0)
        setting.transport.fault = None
        repeat = await setting.post(setting.app(), payload=1, key="k")
        wire = world.wire
        await world.redrive_to_rest()
        return first, repeat, wire

    first, repeat, wire = run_virtual(main)
    marker = setting.marker()

    assert (repeat.status, repeat.json) == (202, {"id": first.json["id"], "state": "claimed"})
    assert wire == 1
    assert (marker.state, marker.attempts, marker.settled_at_ms) == (
        State.DELIVERED,
        2,
        marker.created_at_ms + 60_000,
    )
    assert world.effects == {marker.operation_id: 1}


def test_o28_a_timeout_shorter_than_the_receiver() -> None:
    """Unknown at 2.0, 409 at 2.5, a 200 replay at 3.5: delivered, attempts 3, effects 1."""
    world = World(
        steps=(answers(after_s=3.0),),
        settings=no_jitter(budget_s=10.0, attempt_limit_s=2.0),
    )
    run_virtual(lambda: deliver(world))
    marker = world.setting.marker()
    outcomes = [told["outcome"] for told in world.setting.events.of(Action.ATTEMPT_ENDED)]

    assert world.arrivals_s == [0.0, 2.5, 3.5]
    assert outcomes == ["uncertain", "in_progress", "delivered"]
    assert (marker.state, marker.attempts) == (State.DELIVERED, 3)
    assert world.effects == {marker.operation_id: 1}


def test_o29_409_is_not_a_refusal() -> None:
    """Cut at 2.0, 409 at 2.5 and 3.5, the next would be at 5.5: uncertain, then a replay."""
    world = World(
        steps=(answers(after_s=30.0),),
        settings=no_jitter(budget_s=6.0, attempt_limit_s=2.0),
    )

    async def main() -> tuple[float, State]:
        ended_s = await deliver(world)
        state = world.setting.marker().state
        await world.redrive_to_rest()
        return ended_s, state

    ended_s, state = run_virtual(main)
    marker = world.setting.marker()

    assert (world.arrivals_s[:3], ended_s, state) == ([0.0, 2.5, 3.5], 3.5, State.UNCERTAIN)
    assert (marker.state, marker.attempts) == (State.DELIVERED, 4)
    assert world.effects == {marker.operation_id: 1}


def test_o29_422_is_one() -> None:
    """The variant: rejected after that one answer, no retry."""
    world = World(steps=(answers(422),))
    run_virtual(lambda: deliver(world))
    marker = world.setting.marker()

    assert (marker.state, marker.attempts, world.effects) == (State.REJECTED, 1, {})


def settles(call: Request) -> bool:
    """Tell whether a call is a pass's last write."""
    return target(call) in set(State) - {State.CLAIMED}


def test_o32_the_last_write_runs_inside_its_reserve() -> None:
    """Cut at 29.0, stored at 29.2, nothing after 30.0."""
    world = World(steps=(silent(),), settings=no_jitter(budget_s=30.0, attempt_limit_s=60.0))
    world.setting.transport.fault = lambda call: slow(0.2) if settles(call) else None
    ended_s = run_virtual(lambda: deliver(world))
    marker = world.setting.marker()

    assert (marker.state, marker.attempts, ended_s) == (State.UNCERTAIN, 1, 29.2)


def test_o32_a_last_write_that_hangs_is_given_up() -> None:
    """The variant: given up at 30.0; the marker stays claimed, redrive takes over, effects 1."""
    world = World(
        steps=(silent(Commit.BEFORE), answers()),
        settings=no_jitter(budget_s=30.0, attempt_limit_s=60.0),
    )
    setting = world.setting
    setting.transport.fault = lambda call: slow(60) if settles(call) else None

    async def main() -> tuple[float, State]:
        ended_s = await deliver(world)
        setting.transport.fault = None
        state = setting.marker().state
        await world.redrive_to_rest()
        return ended_s, state

    ended_s, state = run_virtual(main)
    marker = setting.marker()

    assert (ended_s, state) == (30.0, State.CLAIMED)
    assert (marker.state, marker.attempts) == (State.DELIVERED, 2)
    assert world.effects == {marker.operation_id: 1}


def test_o31_sent_but_the_marker_could_not_be_updated() -> None:
    """No second send in process; it stays claimed, never rejected; redrive gets the replay."""
    world = World(steps=(answers(after_s=2.0),))
    setting = world.setting

    def throttled(call: Request) -> Fate | None:
        return slow(60) if settles(call) and anyio.current_time() < 40 else None

    setting.transport.fault = throttled

    async def main() -> tuple[int, State]:
        await deliver(world)
        wire, state = world.wire, setting.marker().state
        await world.redrive_to_rest()
        return wire, state

    assert run_virtual(main) == (1, State.CLAIMED)
    marker = setting.marker()
    assert (marker.state, marker.attempts, world.wire) == (State.DELIVERED, 2, 2)
    assert world.effects == {marker.operation_id: 1}


def test_o02_a_late_pass_gets_only_what_is_left() -> None:
    """The receiver commits after the cut; the redrive's repeat is a replay: effects 1."""
    world = World(
        steps=(answers(after_s=9.0),),
        settings=no_jitter(budget_s=7.0, lease_s=20.0, attempt_limit_s=20.0),
    )
    setting = world.setting

    async def main() -> tuple[float, State]:
        ended_s = await deliver(world)
        state = setting.marker().state
        await world.redrive_to_rest()
        return ended_s, state

    ended_s, state = run_virtual(main)
    marker = setting.marker()

    assert (ended_s, state) == (6.0, State.UNCERTAIN)
    assert (marker.state, marker.attempts, world.wire) == (State.DELIVERED, 2, 2)
    assert world.effects == {marker.operation_id: 1}


def test_o09_a_zombie_that_thaws_sends_nothing_and_its_confirmation_counts() -> None:
    """Frozen with attempt 1 on the wire; the answer it finds on waking is written all the same."""
    world = World(steps=(answers(after_s=3.0),), idempotent=False, dedupe=False)
    setting = world.setting

    async def main() -> None:
        posting = asyncio.ensure_future(deliver(world))
        await world.until(1.0)
        setting.clock.wall_ahead_s = 40.0
        await posting

    run_virtual(main)
    marker = setting.marker()

    assert (marker.state, world.wire) == (State.DELIVERED, 1)
    assert world.effects == {marker.operation_id: 1}


def test_o19_a_late_confirmation_counts_and_a_late_refusal_does_not() -> None:
    """W1's lease is over and W2 has taken over: W1's 204 settles, W1's 422 is refused."""
    for first, state in ((204, State.DELIVERED), (422, State.DELIVERED)):
        world = World(
            steps=(answers(first, after_s=18.0), answers(204, after_s=5.0)),
            settings=no_jitter(lease_s=5.0, skew_margin_s=5.0, heartbeat_every_s=1000.0),
            dedupe=False,
        )
        setting = world.setting

        async def main(world: World = world, setting: Any = setting) -> None:
            posting = asyncio.ensure_future(deliver(world))
            await world.until(15.0)
            await setting.redrive()
            await posting

        run_virtual(main)
        refused = setting.events.of(Action.WRITE_REFUSED)

        assert state is setting.marker().state
        assert [told["verdict"] for told in refused] == ([] if first == 204 else ["reject"])


def test_a_lease_of_zero_costs_at_most_a_repeat() -> None:
    """Redrive fires while the inline pass is at work: the receiver's dedupe has the last word."""
    world = World(
        steps=(answers(after_s=10.0),), settings=no_jitter(lease_s=0.0, skew_margin_s=1.0)
    )
    setting = world.setting

    async def main() -> None:
        posting = asyncio.ensure_future(deliver(world))
        await world.until(5.0)
        await setting.redrive()
        await posting

    run_virtual(main)
    marker = setting.marker()

    assert marker.state is State.DELIVERED
    assert world.effects == {marker.operation_id: 1}


@pytest.mark.parametrize("cut_s", [0.0, 0.01, 0.02, 0.5, 1.0, 1.2, 1.5, 2.0, 2.5, 2.51, 2.54, 3.0])
def test_a_cut_at_every_phase_is_settled_raised_and_finished_by_redrive(cut_s: float) -> None:
    """Before the answer, sending, waiting, sending again, settling: nothing lost, effects 1."""
    world = World(
        steps=(answers(503, after_s=1.0), answers(after_s=1.0)),
        settings=no_jitter(backoff_base_s=0.5),
    )
    setting = world.setting
    setting.transport.fault = lambda call: slow(0.05) if target(call) else None

    async def main() -> list[Any]:
        await setting.post(setting.app())
        await anyio.sleep(cut_s)
        ended = await setting.platform.cut()
        if setting.marker().settled_at_ms is None:
            await world.redrive_to_rest()
        return ended

    ended = run_virtual(main)
    marker = setting.marker()

    assert (marker.state, world.effects) == (State.DELIVERED, {marker.operation_id: 1})
    assert isinstance(ended[0], asyncio.CancelledError) is (cut_s < 2.55)


def test_o16_a_repeat_at_any_time_makes_no_second_key() -> None:
    """Killed after its bytes left; repeats at 32 and 3600 return the first operation."""
    world = World(steps=(silent(Commit.AFTER, after_s=16.0), answers()))
    setting = world.setting

    async def main() -> list[str]:
        first = await setting.post(setting.app(), payload=1, key="k")
        await world.until(15.0)
        kill(world)
        await world.until(41.0)
        setting.transport.fault = None
        second = await setting.post(setting.app(), payload=1, key="k")
        await world.redrive_to_rest()
        await world.until(3600.0)
        third = await setting.post(setting.app(), payload=1, key="k")
        return [answer.json["id"] for answer in (first, second, third)]

    ids = run_virtual(main)
    marker = setting.marker()

    assert set(ids) == {marker.operation_id}
    assert {request.key for request in world.receiver.ledger.requests} == {marker.operation_id}
    assert world.effects == {marker.operation_id: 1}


def test_an_operation_nobody_can_deliver_is_parked_for_a_person() -> None:
    """503 for ever: after its passes it stops, visibly, with the last status."""
    world = World(steps=(answers(503),), settings=no_jitter(max_passes=4))
    run_virtual(lambda: _to_rest(world))
    marker = world.setting.marker()

    assert (marker.state, marker.last_status, marker.unknown) == (State.PARKED, 503, False)
    assert marker.reason == "4 passes without a result: the budget was spent"


async def _to_rest(world: World) -> None:
    await deliver(world)
    await world.redrive_to_rest()
