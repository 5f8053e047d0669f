"""Heartbeats: off for passes shorter than their lease; they extend and never revive."""

import asyncio
from typing import Any

import anyio
import pytest

from handler.budget import Deadline
from handler.events import Action, Events
from handler.heartbeat import Hold, holding, interval_s
from storage.marker import Claim, Draft, Marker, Settlement
from storage.requests import Request
from storage.store import Store
from storage.transport.base import Reply
from tests.support.clock import LoopClock
from tests.support.transports import FaultyTransport, down, target
from tests.support.virtual import run_virtual

DRAFT = Draft(operation_id="op", accept_id="x", destination="a", payload=b"{}", fingerprint="f")


@pytest.mark.parametrize(
    ("configured_s", "lease_s", "pass_s", "expected_s"),
    [
        (None, 45.0, 25.0, None),
        (None, 45.0, 45.0, 15.0),
        (None, 45.0, 300.0, 15.0),
        (None, 0.0, 25.0, None),
        (5.0, 45.0, 25.0, 5.0),
        (5.0, 0.0, 25.0, 5.0),
    ],
)
def test_only_a_pass_that_may_outlive_its_lease_beats(
    configured_s: float | None, lease_s: float, pass_s: float, expected_s: float | None
) -> None:
    """Elsewhere they would only cost writes; the operator may ask for them all the same."""
    found = interval_s(configured_s=configured_s, lease_s=lease_s, pass_s=pass_s)

    assert expected_s == found


class Scene:
    """A claim held on virtual time, with heartbeats every second on a lease of 3."""

    def __init__(self, every_s: float | None = 1.0) -> None:
        self.clock = LoopClock()
        self.transport = FaultyTransport()
        self.store = Store(self.transport, now_ms=self.clock.wall_ms)
        self.actions = list[Action]()
        self._every_s = every_s

    async def held(self) -> Marker:
        """Accept an operation under a claim."""
        claim = Claim(claim_id="c", lease_s=3.0)
        return (await self.store.accept(DRAFT, claim=claim, within_s=1)).marker

    def holding(self, held: Marker) -> Any:
        """Return the heartbeat context of this claim."""
        return holding(
            held,
            store=self.store,
            every_s=self._every_s,
            lease_s=3.0,
            deadline=Deadline.after(60.0, clock=self.clock),
            events=Events(lambda action, _fields: self.actions.append(action)),
        )

    def beats(self) -> int:
        """Return how many heartbeats were sent."""
        return sum(target(call) == "heartbeat" for call in self.transport.calls)


def test_a_held_lease_is_extended() -> None:
    """After 10 s under a lease of 3 the claim is still nobody else's to take."""
    scene = Scene()

    async def main() -> tuple[bool, int]:
        held = await scene.held()
        async with scene.holding(held) as hold:
            await anyio.sleep(10.5)
        found = await scene.store.read("op", within_s=1)
        assert found is not None
        assert found.lease_until_ms is not None
        return hold.lost, found.lease_until_ms - scene.clock.wall_ms()

    assert run_virtual(main) == (False, 2500)
    assert scene.actions == [Action.LEASE_EXTENDED] * 10


def test_without_an_interval_nothing_is_written() -> None:
    """Short passes cost no heartbeat."""
    scene = Scene(every_s=None)

    async def main() -> bool:
        async with scene.holding(await scene.held()) as hold:
            await anyio.sleep(10)
        lost: bool = hold.lost
        return lost

    assert run_virtual(main) is False
    assert scene.beats() == 0


def test_a_lost_lease_is_noticed_and_not_revived() -> None:
    """The first refusal ends the beating; the pass then starts no further attempt."""
    scene = Scene()

    async def main() -> bool:
        held = await scene.held()
        async with scene.holding(held) as hold:
            await scene.store.release(
                held, uncertain=False, due_at_ms=0, settlement=Settlement(), within_s=1
            )
            await anyio.sleep(5)
        lost: bool = hold.lost
        return lost

    assert run_virtual(main) is True
    assert (scene.beats(), scene.actions) == (1, [Action.LEASE_LOST])


def test_a_store_that_is_away_costs_beats_and_not_the_claim() -> None:
    """Silence is what the lease measures; a later beat may get through."""
    scene = Scene()
    away = iter([True, True, False, False])

    def fault(request: Request) -> Any:
        return down() if target(request) == "heartbeat" and next(away) else None

    scene.transport.fault = fault

    async def main() -> bool:
        async with scene.holding(await scene.held()) as hold:
            await anyio.sleep(4.5)
        lost: bool = hold.lost
        return lost

    assert run_virtual(main) is False
    assert scene.actions == [Action.LEASE_EXTENDED] * 2


def _raise_key_error(_hold: Hold) -> None:
    raise KeyError("x")


@pytest.mark.parametrize("every_s", [None, 1.0])
def test_what_the_body_raises_comes_out_as_it_is(every_s: float | None) -> None:
    """Whether heartbeats are on must not change what an error looks like."""
    scene = Scene(every_s=every_s)

    async def main() -> None:
        async with scene.holding(await scene.held()) as hold:
            await anyio.sleep(1.5)
            _raise_key_error(hold)

    with pytest.raises(KeyError):
        run_virtual(main)


@pytest.mark.parametrize("every_s", [None, 1.0])
def test_a_cancellation_comes_out_as_a_cancellation(every_s: float | None) -> None:
    """Not as a group: the pass has to know it when it sees it."""
    scene = Scene(every_s=every_s)

    async def body() -> None:
        async with scene.holding(await scene.held()):
            await anyio.sleep_forever()

    async def main() -> bool:
        task = asyncio.ensure_future(body())
        await anyio.sleep(1.5)
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled()

    assert run_virtual(main) is True


class BrokenHeartbeats:
    """A transport whose heartbeats have a defect."""

    def __init__(self, inner: FaultyTransport) -> None:
        self._inner = inner

    async def execute(self, request: Request, *, within_s: float) -> Reply:
        """Break on heartbeats."""
        if target(request) == "heartbeat":
            raise ZeroDivisionError
        return await self._inner.execute(request, within_s=within_s)

    async def aclose(self) -> None:
        """Do nothing."""


def test_a_defect_in_a_heartbeat_is_not_hidden() -> None:
    """It ends the pass, which settles what it knows; it does not vanish in a task."""
    scene = Scene()
    scene.store = Store(BrokenHeartbeats(scene.transport), now_ms=scene.clock.wall_ms)

    async def main() -> None:
        async with scene.holding(await scene.held()):
            await anyio.sleep_forever()

    with pytest.raises(ZeroDivisionError):
        run_virtual(main)
