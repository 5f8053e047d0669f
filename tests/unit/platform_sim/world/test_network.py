"""Connections open, carry and break, and the sender learns whether a byte had left."""

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import Context
from typing import Any

import pytest

from platform_sim.world.network import Broken, Network, Site, Turn, Unreachable
from platform_sim.world.receiver import Receiver
from platform_sim.world.script import Script, Step, Then
from tests.support.virtual import run_virtual

HOOK = "http://receiver/hooks/r"
LOOKUP = "http://receiver/effects/r/k"


class Scene:
    """One receiver behind a network."""

    def __init__(self, *turns: Turn, lookups: tuple[Step, ...] = ()) -> None:
        self.left: list[float] = []
        self.receiver = Receiver(now_ms=self.now_ms)
        self.receiver.learn("r", Script(dedupe=True))
        self.site = Site(receiver=self.receiver, turns=turns or (Turn(),), lookups=lookups)
        self.network = Network({"r": self.site}, Context())

    @staticmethod
    def now_ms() -> int:
        """Return the virtual time."""
        return round(asyncio.get_running_loop().time() * 1000)

    async def request(self, url: str = HOOK, key: str = "k", replica: str = "web-1") -> int:
        """Make a request; return the status."""
        method = "GET" if "/effects/" in url else "POST"
        reply = await self.network.request(
            replica=replica,
            method=method,
            url=url,
            key=key,
            body=b"{}",
            byte_leaves=lambda: self.left.append(asyncio.get_running_loop().time()),
        )
        return reply.status

    async def said(self, **more: Any) -> tuple[float, str]:
        """Make a request; return when it ended and how."""
        try:
            what = str(await self.request(**more))
        except (Unreachable, Broken) as error:
            what = f"{type(error).__name__}: {error}"
        return round(asyncio.get_running_loop().time(), 3), what


def run(scene: Scene, main: Callable[[], Awaitable[Any]]) -> Any:
    """Run on virtual time and clear the receiver away."""

    async def whole() -> Any:
        try:
            return await main()
        finally:
            await scene.receiver.aclose()

    return run_virtual(whole)


@pytest.mark.parametrize(
    ("turn", "ended", "left"),
    [
        (Turn(delay_s=2.0, status=204), (2.0, "204"), [0.0]),
        (Turn(connect_s=1.0), (1.0, "200"), [1.0]),
        (Turn(connect_s=1.0, refuse=True), (1.0, "Unreachable: connection refused"), []),
        (Turn(then=Then.DROP), (0.0, "Broken: connection closed without a reply"), [0.0]),
        (Turn(reset_at_byte=9), (0.0, "Broken: connection reset at byte 9 of the reply"), [0.0]),
        (
            Turn(reset_at_byte=4, drip_every_s=2.0),
            (8.0, "Broken: connection reset at byte 4 of the reply"),
            [0.0],
        ),
        (Turn(status=204, drip_every_s=0.5, reset_at_byte=1000), (9.0, "204"), [0.0]),
    ],
)
def test_a_connection_does_what_its_turn_says(
    turn: Turn, ended: tuple[float, str], left: list[float]
) -> None:
    """And a byte leaves only when it stands."""
    scene = Scene(turn)

    assert run(scene, scene.said) == ended
    assert scene.left == left


def test_turns_are_counted_by_key_and_the_last_one_repeats() -> None:
    """A key may have turns of its own."""
    scene = Scene(Turn(status=503), Turn(status=204))
    scene.site.own_turns["special"] = (Turn(status=429),)

    async def main() -> list[int]:
        keys = ("a", "b", "a", "special", "special")
        return [await scene.request(key=key) for key in keys]

    assert run(scene, main) == [503, 503, 204, 429, 429]


def test_a_receiver_that_is_down_is_unreachable_and_sees_no_wire_request() -> None:
    """Also for questions; it counts the refusals."""
    scene = Scene()
    scene.receiver.down = True

    async def main() -> list[tuple[float, str]]:
        return [await scene.said(), await scene.said(url=LOOKUP)]

    assert run(scene, main) == 2 * [(0.0, "Unreachable: connection refused")]
    assert scene.left == []
    assert (scene.receiver.ledger.requests, scene.receiver.ledger.refused) == ([], 1)


@pytest.mark.parametrize("url", ["http://receiver/hooks/q", "http://receiver", "http://x/"])
def test_nobody_is_reached_where_nobody_is(url: str) -> None:
    """No byte leaves for them."""
    scene = Scene()
    _, said = run(scene, lambda: scene.said(url=url))

    assert said.startswith("Unreachable: nobody is at")


def test_a_lookup_tells_the_truth_unless_it_is_scripted() -> None:
    """Absent, in progress, found."""
    scene = Scene(Turn(delay_s=2.0))

    async def main() -> list[int]:
        seen = [await scene.request(url=LOOKUP)]
        sending = asyncio.ensure_future(scene.request())
        await asyncio.sleep(1.0)
        seen.append(await scene.request(url=LOOKUP))
        await sending
        seen.append(await scene.request(url=LOOKUP))
        return seen

    assert run(scene, main) == [404, 409, 200]
    assert len(scene.receiver.ledger.requests) == 1


def test_scripted_lookups_may_be_late_drop_and_hang() -> None:
    """The n-th for a key's n-th question; the last one repeats."""
    script = (Step(delay_s=1.0, status=500), Step(then=Then.DROP), Step(then=Then.HANG))
    scene = Scene(lookups=script)

    async def main() -> list[tuple[float, str]]:
        seen = [await scene.said(url=LOOKUP) for _ in range(2)]
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(scene.request(url=LOOKUP), 5.0)
        return seen

    assert run(scene, main) == [(1.0, "500"), (1.0, "Broken: connection closed without a reply")]


def test_a_sender_that_is_cancelled_closes_its_connection() -> None:
    """The receiver sees it leave; its work goes on."""
    scene = Scene(Turn(delay_s=2.0))

    async def main() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(scene.request(), 1.0)
        await asyncio.sleep(5.0)

    run(scene, main)

    assert [request.outcome.value for request in scene.receiver.ledger.requests] == ["left"]
    assert scene.receiver.effects.counts["k"] == 1


def test_a_replica_that_is_no_more_has_its_own_connections_closed() -> None:
    """Others keep theirs."""
    scene = Scene(Turn(delay_s=2.0))

    async def main() -> list[str]:
        mine = asyncio.ensure_future(scene.request(key="a", replica="web-1"))
        other = asyncio.ensure_future(scene.request(key="b", replica="web-2"))
        await asyncio.sleep(1.0)
        scene.network.hang_up("web-1")
        scene.network.hang_up("web-3")
        done = await asyncio.gather(mine, other, return_exceptions=True)
        return [type(each).__name__ for each in done]

    assert run(scene, main) == ["CancelledError", "int"]
    assert [request.outcome.value for request in scene.receiver.ledger.requests] == [
        "left",
        "replied",
    ]
