"""From a request to its acknowledgement: what is written, and what is owed."""

import asyncio
from typing import Any

import pytest

from storage.requests import PutMarker
from storage.states import State
from tests.support.apps import Answer, Platform, no_jitter
from tests.support.transports import Fate, down, lost_reply, slow
from tests.support.virtual import run_virtual
from tests.support.world import World, answers


def test_the_happy_path_is_two_writes_and_no_read_one_of_them_before_the_202() -> None:
    """Accept and confirm; no lookup, no heartbeat, no write per attempt."""
    world = World(steps=(answers(after_s=3.0),))
    setting = world.setting

    async def main() -> tuple[Answer, int]:
        answer = await setting.post(setting.app())
        before = setting.transport.writes
        await setting.platform.settled()
        return answer, before

    answer, before = run_virtual(main)

    assert (answer.status, before) == (202, 1)
    assert (setting.transport.writes, setting.transport.reads) == (2, 0)
    assert setting.marker().state is State.DELIVERED


@pytest.mark.parametrize("fault", [down, lambda _: slow(60)], ids=["down", "silent"])
def test_without_a_confirmed_write_nothing_is_owed(fault: Any) -> None:
    """503, no background work, nothing on the wire, nothing for redrive to find."""
    world = World()
    setting = world.setting
    setting.transport.fault = fault

    async def main() -> Answer:
        answer = await setting.post(setting.app())
        setting.transport.fault = None
        await setting.redrive()
        return answer

    answer = run_virtual(main)

    assert (answer.status, answer.headers["retry-after"]) == (503, "1")
    assert (setting.platform.tasks, setting.markers(), world.wire) == ([], [], 0)


@pytest.mark.parametrize("fate", [lost_reply(), down()], ids=["landed", "not-landed"])
def test_o10_a_first_write_that_was_reset_makes_one_marker(fate: Fate) -> None:
    """The write landed or not; the second try with the same token knows."""
    world = World()
    setting, fates = world.setting, iter([fate])
    setting.transport.fault = lambda _: next(fates, None)

    async def main() -> Answer:
        answer = await setting.post(setting.app())
        await setting.platform.settled()
        return answer

    assert run_virtual(main).status == 202
    assert (len(setting.markers()), world.wire) == (1, 1)


def test_the_same_key_and_body_is_acknowledged_again_with_the_same_id() -> None:
    """Also long after it was delivered; nothing is sent again."""
    world = World()
    setting = world.setting

    async def main() -> list[Answer]:
        app = setting.app()
        first = await setting.post(app, payload={"n": 1}, key="order-1")
        await setting.platform.settled()
        await world.until(3600.0)
        return [first, await setting.post(app, payload={"n": 1}, key="order-1")]

    first, again = run_virtual(main)

    assert (first.status, again.status) == (202, 202)
    assert (first.json["id"], again.json["state"]) == (again.json["id"], "delivered")
    assert (len(setting.markers()), world.wire) == (1, 1)


def test_a_key_is_free_again_when_its_marker_has_expired() -> None:
    """The retention is stated; after it the operation is a new one."""
    world = World(settings=no_jitter(retention_s=100.0))
    setting = world.setting

    async def main() -> list[Answer]:
        app = setting.app()
        first = await setting.post(app, payload=1, key="k")
        await setting.platform.settled()
        await world.until(200.0)
        second = await setting.post(app, payload=2, key="k")
        await setting.platform.settled()
        return [first, second]

    first, second = run_virtual(main)

    assert (first.status, second.status) == (202, 202)
    assert world.wire == 2


@pytest.mark.parametrize("gap_s", [0.0, 0.002])
def test_o17_two_identical_posts_make_one_operation(gap_s: float) -> None:
    """One create wins; both callers get 202 with the same id: 1 marker, wire 1, effects 1."""
    world = World(steps=(answers(after_s=1.0),))
    setting = world.setting
    setting.transport.fault = lambda call: slow(0.01) if isinstance(call, PutMarker) else None

    async def main() -> list[Answer]:
        first, second = setting.app(), setting.app()

        async def later() -> Answer:
            await asyncio.sleep(gap_s)
            return await setting.post(second, payload=1, key="k")

        answers_ = await asyncio.gather(setting.post(first, payload=1, key="k"), later())
        await setting.platform.settled()
        return list(answers_)

    first, second = run_virtual(main)
    marker = setting.marker()

    assert (first.status, second.status) == (202, 202)
    assert first.json["id"] == second.json["id"] == marker.operation_id
    assert (world.wire, world.effects) == (1, {marker.operation_id: 1})


def test_o17_the_same_key_with_another_body_is_refused_and_not_sent() -> None:
    """The variant: 202 and 422, whichever comes first, and nothing is sent for the second."""
    world = World(steps=(answers(after_s=1.0),))
    setting = world.setting

    async def main() -> list[Answer]:
        first, second = setting.app(), setting.app()
        both = await asyncio.gather(
            setting.post(first, payload=1, key="k"), setting.post(second, payload=2, key="k")
        )
        await setting.platform.settled()
        return list(both)

    both = run_virtual(main)

    assert sorted(answer.status for answer in both) == [202, 422]
    assert (world.wire, len(setting.markers())) == (1, 1)


def test_o08_frozen_at_the_answer_redrive_delivers() -> None:
    """A platform that grants nothing: accepted as undelivered, attempts 1 by redrive, effects 1."""
    world = World()
    setting = world.setting
    setting.platform = Platform(allowance_s=0.0)

    async def main() -> Answer:
        answer = await setting.post(setting.app())
        assert setting.platform.tasks == []
        assert (world.wire, setting.marker().attempts) == (0, 0)
        await world.redrive_to_rest()
        return answer

    answer = run_virtual(main)
    marker = setting.marker()

    assert (answer.status, answer.json["state"]) == (202, "undelivered")
    assert (marker.state, marker.attempts) == (State.DELIVERED, 1)
    assert world.effects == {marker.operation_id: 1}


def test_o03_without_a_lifetime_redrive_delivers() -> None:
    """Lenient mode: never started here, attempts 1, effects 1."""
    world = World(settings=no_jitter(lifetime="lenient"))
    setting = world.setting

    class NoLifetime(Platform):
        """A server that supplies none."""

        def extensions(self) -> dict[str, Any]:
            """Return nothing."""
            return {}

    async def main() -> Answer:
        answer = await setting.post(setting.app(), platform=NoLifetime())
        await world.redrive_to_rest()
        return answer

    answer = run_virtual(main)
    marker = setting.marker()

    assert (answer.status, marker.state, marker.attempts) == (202, State.DELIVERED, 1)
    assert world.effects == {marker.operation_id: 1}


def test_o05_a_client_that_hangs_up_costs_nothing() -> None:
    """It has the 202 or half of it; the pass begins all the same, and nothing is cancelled."""
    world = World(steps=(answers(after_s=2.0),))
    setting = world.setting

    async def send(_message: Any) -> None:
        raise OSError("the client is gone")

    async def main() -> None:
        with pytest.raises(OSError, match="gone"):
            await setting.post(setting.app(), send=send)
        await setting.platform.settled()

    run_virtual(main)
    marker = setting.marker()

    assert (marker.state, marker.attempts) == (State.DELIVERED, 1)
    assert world.effects == {marker.operation_id: 1}


def test_what_a_client_left_before_the_write_was_confirmed_is_delivered_once() -> None:
    """Some servers cancel the request: the write may land, so it is made sure of, and redriven."""
    world = World()
    setting = world.setting
    setting.transport.fault = lambda call: (
        Fate(delay_s=0.5) if isinstance(call, PutMarker) else None
    )

    async def main() -> None:
        app = setting.app()
        for cut_s in (0.2, 0.8):
            task = asyncio.ensure_future(setting.post(app, payload=cut_s))
            await asyncio.sleep(cut_s)
            task.cancel()
            await asyncio.wait([task])
        await setting.platform.settled()
        await world.redrive_to_rest()

    run_virtual(main)

    assert [marker.state for marker in setting.markers()] == [State.DELIVERED] * 2
    assert list(world.effects.values()) == [1, 1]
