"""The store of a world: the product's requests, on which troubles strike."""

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import Context
from typing import Any

import pytest

from platform_sim.lab.scenario.faults import StoreFailure
from platform_sim.lab.scenario.product import StoreTrouble, WorldParts
from platform_sim.wiring.lab_store import WorldTable, WorldTransport
from platform_sim.world.clocks import WorldClock
from platform_sim.world.network import Network
from storage.errors import StoreUnavailable
from storage.marker import Claim, Draft, Marker, Settlement
from storage.replies import Refused
from storage.store import Store
from tests.support.virtual import run_virtual

DRAFT = Draft(operation_id="op", accept_id="x", destination="r", payload=b"{}", fingerprint="f")

DELIVERED = Settlement(attempts=1, last_outcome="delivered", last_status=200)


class Scene:
    """A table in a world, and a store on it."""

    def __init__(self, how: StoreFailure | None = None, by_s: float = 0.0) -> None:
        loop = asyncio.get_running_loop()
        self.told: list[dict[str, Any]] = []
        self.trouble = None if how is None else StoreTrouble(how=how, by_s=by_s)
        self.lag_s = 0.0
        self.tasks: list[asyncio.Task[None]] = []
        clock = WorldClock(loop, loop.time())
        world = WorldParts(
            clock=clock,
            network=Network({}, Context()),
            tell=self.tell,
            meet=lambda *_: self.trouble,
            index_lag_s=lambda: self.lag_s,
            later=self.later,
        )
        self.table = WorldTable(world, "outlast")
        self.store = Store(
            WorldTransport(self.table, "web-1"), now_ms=clock.wall_ms, retention_s=10, shard_count=1
        )

    def tell(self, source: str, kind: str, **fields: Any) -> None:
        """Keep what is told."""
        self.told.append({"source": source, "kind": kind, **fields})

    def later(self, act: Callable[[], Awaitable[None]]) -> None:
        """Run something in the world."""

        async def run() -> None:
            await act()

        self.tasks.append(asyncio.get_running_loop().create_task(run()))

    async def accept(self, within_s: float = 1.0, claim: Claim | None = None) -> str:
        """Accept; return what came of it and when."""
        try:
            await self.store.accept(DRAFT, claim=claim, within_s=within_s)
            what = "accepted"
        except StoreUnavailable as error:
            what = f"{type(error).__name__}, may have written: {error.may_have_written}"
        return f"{asyncio.get_running_loop().time():g} s: {what}"

    def rows(self) -> int:
        """Return how many rows there are."""
        return len(self.table.memory.rows)


@pytest.mark.parametrize(
    ("how", "by_s", "said", "rows_then", "rows_later"),
    [
        (StoreFailure.THROTTLED, 0.0, "0 s: StoreThrottled, may have written: False", 0, 0),
        (StoreFailure.UNREACHABLE, 0.0, "0 s: StoreUnavailable, may have written: False", 0, 0),
        (StoreFailure.REPLY_LOST, 0.0, "0 s: StoreUnavailable, may have written: True", 1, 1),
        (StoreFailure.NOT_APPLIED, 0.0, "0 s: StoreUnavailable, may have written: True", 0, 0),
        (StoreFailure.HANGS, 0.0, "1 s: StoreUnavailable, may have written: True", 0, 0),
        (StoreFailure.SLOW, 0.5, "0.5 s: accepted", 1, 1),
        (StoreFailure.SLOW, 1.5, "1 s: StoreUnavailable, may have written: True", 1, 1),
        (StoreFailure.LATE, 0.5, "0.5 s: accepted", 1, 1),
        (StoreFailure.LATE, 1.5, "1 s: StoreUnavailable, may have written: True", 0, 1),
    ],
)
def test_a_call_fails_as_the_trouble_says(
    how: StoreFailure, by_s: float, said: str, rows_then: int, rows_later: int
) -> None:
    """What is told to the caller, what is stored by then, and what is stored at last."""

    async def main() -> tuple[str, int, int]:
        scene = Scene(how, by_s)
        answer, then = await scene.accept(), scene.rows()
        await asyncio.sleep(5.0)
        return answer, then, scene.rows()

    assert run_virtual(main) == (said, rows_then, rows_later)


def test_a_read_that_fails_wrote_nothing() -> None:
    """Whatever became of it."""

    async def main() -> bool:
        with pytest.raises(StoreUnavailable) as caught:
            await Scene(StoreFailure.REPLY_LOST).store.read("op", within_s=1.0)
        return caught.value.may_have_written

    assert run_virtual(main) is False


def test_every_write_is_told_landed_or_refused() -> None:
    """With the states and claims before and after, and the claim its condition demands."""

    async def main() -> list[dict[str, Any]]:
        scene = Scene()
        accepted = await scene.store.accept(
            DRAFT, claim=Claim(claim_id="c1", lease_s=5.0), within_s=1.0
        )
        held: Marker = accepted.marker
        await scene.store.confirm("op", DELIVERED, within_s=1.0)
        assert isinstance(await scene.store.heartbeat(held, lease_s=9.0, within_s=1.0), Refused)
        return scene.told

    keys = ("event", "refused", "before", "after", "claim_before", "claim_after", "by_claim")

    assert [tuple(event[key] for key in keys) for event in run_virtual(main)] == [
        ("accept", False, None, "claimed", None, "c1", None),
        ("confirm", False, "claimed", "delivered", "c1", None, None),
        ("heartbeat", True, "delivered", "delivered", None, None, "c1"),
    ]


def test_a_row_whose_retention_is_over_counts_as_absent() -> None:
    """A key may begin again; that is no move from `delivered`."""

    async def main() -> list[Any]:
        scene = Scene()
        await scene.accept()
        await scene.store.confirm("op", DELIVERED, within_s=1.0)
        await asyncio.sleep(20.0)
        await scene.accept()
        return [event["before"] for event in scene.told]

    assert run_virtual(main) == [None, "undelivered", None]


def test_the_due_index_shows_what_was_so_long_ago() -> None:
    """The rows themselves are as they are."""

    async def main() -> list[int]:
        scene = Scene()
        scene.lag_s = 3.0
        await scene.accept()
        seen = []
        for _ in range(3):
            await asyncio.sleep(2.0)
            (shard,) = [shard for shard in scene.store.shards() if shard.startswith("n")]
            page = await scene.store.due(
                shard, until_ms=scene.table.world.clock.wall_ms(), limit=9, within_s=1.0
            )
            seen.append(len(page.operation_ids))
        return seen

    assert run_virtual(main) == [0, 1, 1]
