"""A request budget is not durable execution: the four proofs, through the whole handler.

App, marker store, redrive and a deduplicating receiver, on virtual time.
"""

import anyio
import pytest

from handler.events import Action
from platform_sim.world.script import Commit, Step
from storage.states import State
from tests.support.apps import no_jitter
from tests.support.virtual import run_virtual
from tests.support.world import World, answers, kill, silent


def test_three_slow_attempts_share_one_budget() -> None:
    """Three attempts of 20 s and 6 s of delays want 66 s; one budget of 25 s is what they get."""
    world = World(
        steps=(answers(500, after_s=20.0),),
        settings=no_jitter(backoff_base_s=2.0, lease_s=90.0),
    )
    ended_s = list[float]()

    async def main() -> None:
        await world.setting.post(world.setting.app())
        await world.setting.platform.settled()
        ended_s.append(anyio.current_time())

    run_virtual(main)
    marker = world.setting.marker()

    assert world.arrivals_s == [0.0, 20.0 + 2.0]
    assert ended_s == [24.0]
    assert (marker.state, marker.attempts) == (State.UNCERTAIN, 2)


def test_a_cut_leaves_the_marker_discoverable() -> None:
    """The request ends, its background work is cancelled, and the operation is still owed."""
    world = World(steps=(silent(), answers()))

    async def main() -> tuple[State, int | None]:
        await world.setting.post(world.setting.app())
        await world.until(3.0)
        await world.setting.platform.cut()
        owed = world.setting.marker()
        await world.redrive_to_rest()
        return owed.state, owed.due_at_ms

    state, due_at_ms = run_virtual(main)

    assert (state, due_at_ms is not None) == (State.UNCERTAIN, True)
    assert world.setting.marker().state is State.DELIVERED


def test_a_kill_leaves_the_marker_discoverable() -> None:
    """No line runs after the kill; the claim's lease is what brings the operation back."""
    world = World(steps=(silent(), answers()))

    async def main() -> State:
        await world.setting.post(world.setting.app())
        await world.until(3.0)
        kill(world)
        await world.until(40.0)
        world.setting.transport.fault = None
        owed = world.setting.marker().state
        await world.redrive_to_rest()
        return owed

    assert run_virtual(main) is State.CLAIMED
    assert (world.setting.marker().state, world.setting.marker().attempts) == (State.DELIVERED, 2)


def test_redrive_keeps_the_identity_and_the_receiver_dedupes_until_confirmed() -> None:
    """Same key, same bytes; one effect; the marker moves on the receiver's confirmation only."""
    world = World(steps=(silent(Commit.BEFORE), answers(503)))

    async def main() -> list[State]:
        await world.setting.post(world.setting.app(), payload={"n": 1})
        await world.until(3.0)
        await world.setting.platform.cut()
        states = [world.setting.marker().state]
        world.receiver.down = True
        await world.until(60.0)
        await world.setting.redrive()
        states.append(world.setting.marker().state)
        world.receiver.down = False
        await world.redrive_to_rest()
        states.append(world.setting.marker().state)
        return states

    states = run_virtual(main)
    operation_id = world.setting.marker().operation_id
    requests = world.receiver.ledger.requests

    assert states == [State.UNCERTAIN, State.UNCERTAIN, State.DELIVERED]
    assert {request.key for request in requests} == {operation_id}
    assert len({request.body_sha256 for request in requests}) == 1
    assert world.effects == {operation_id: 1}


@pytest.mark.parametrize("idempotent", [True, False])
@pytest.mark.parametrize(
    ("step", "state", "unknown"),
    [
        (silent(Commit.BEFORE), State.UNCERTAIN, True),
        (silent(Commit.NEVER), State.UNCERTAIN, True),
        (answers(503), State.UNDELIVERED, False),
        (answers(429), State.UNDELIVERED, False),
    ],
)
def test_uncertain_is_told_apart_from_confirmed_non_delivery(
    step: Step, state: State, *, unknown: bool, idempotent: bool
) -> None:
    """No answer is not "not delivered", and "not now" is not unknown."""
    world = World(steps=(step,), idempotent=idempotent)

    async def main() -> None:
        await world.setting.post(world.setting.app())
        await world.until(0.2)
        await world.setting.platform.cut()

    run_virtual(main)
    marker = world.setting.marker()

    assert (state, unknown, 1) == (marker.state, marker.unknown, marker.attempts)


def test_uncertain_at_a_receiver_that_promises_nothing_is_never_sent_twice() -> None:
    """A person decides; until then the effect may have happened once and not twice."""
    world = World(steps=(silent(Commit.BEFORE), answers()), idempotent=False, dedupe=False)

    async def main() -> None:
        await world.setting.post(world.setting.app())
        await world.until(3.0)
        await world.setting.platform.cut()
        await world.redrive_to_rest()

    run_virtual(main)
    marker = world.setting.marker()

    assert (marker.state, marker.unknown, world.wire) == (State.PARKED, True, 1)
    assert "may have been delivered" in (marker.reason or "")
    assert world.effects == {marker.operation_id: 1}


def test_confirmed_non_delivery_is_sent_again_even_there() -> None:
    """A 503 leaves no doubt, so repeating is safe without any promise."""
    world = World(steps=(answers(503), answers()), idempotent=False, dedupe=False)

    async def main() -> None:
        await world.setting.post(world.setting.app())
        await world.setting.platform.settled()

    run_virtual(main)
    marker = world.setting.marker()

    assert (marker.state, marker.attempts) == (State.DELIVERED, 2)
    assert world.effects == {marker.operation_id: 1}
    assert Action.SETTLED in world.setting.events.actions()
