"""The store as a whole: what the happy path costs, and whose clock it goes by."""

import time
from collections import Counter
from dataclasses import replace

import pytest
from freezegun import freeze_time

from storage.lease import lease_over
from storage.marker import Claim, Draft, Settlement
from storage.replies import Confirmed, Refused, Replayed, Written
from storage.requests import PutMarker, Request, UpdateMarker
from storage.store import DEFAULT_RETENTION_S, Store
from storage.transport.base import Reply, Transport
from tests.support.stores import Backend, WallClock

pytestmark = pytest.mark.anyio

WITHIN_S = 10.0
DRAFT = Draft(
    operation_id="op", accept_id="accept", destination="d", payload=b"body", fingerprint="f"
)
OWN = Claim(claim_id="own", lease_s=45.0)
NEXT = Claim(claim_id="next", lease_s=45.0)


class Counting:
    """Counts the requests on their way to another transport."""

    def __init__(self, inner: Transport) -> None:
        self.counts: Counter[type] = Counter()
        self._inner = inner

    async def execute(self, request: Request, *, within_s: float) -> Reply:
        """Count and pass on."""
        self.counts[type(request)] += 1
        return await self._inner.execute(request, within_s=within_s)

    async def aclose(self) -> None:
        """Do nothing."""


async def test_the_happy_path_is_two_writes_and_no_read(backend: Backend, wall: WallClock) -> None:
    """Accept and confirm; the claim comes with the one, identity is all the other needs."""
    counting = Counting(backend.transport)
    store = Store(counting, table_name=backend.table_name, now_ms=wall)

    await store.accept(DRAFT, claim=OWN, within_s=WITHIN_S)
    reply = await store.confirm("op", Settlement(attempts=1), within_s=WITHIN_S)

    assert Confirmed(first=True) == reply
    assert counting.counts == {PutMarker: 1, UpdateMarker: 1}


def wall_ms() -> int:
    """Return the process's wall clock, as a deployed store is given it."""
    return time.time_ns() // 1_000_000


async def test_leases_and_retention_go_by_the_wall_clock(backend: Backend) -> None:
    """A lease bounds the claim to the second; days later the marker answers no more.

    The clock is frozen where the code reads it, signing and all; the event loop's runs on.
    """
    with freeze_time("2031-07-01 12:00:00", real_asyncio=True) as frozen:
        store = Store(backend.transport, table_name=backend.table_name, now_ms=wall_ms)
        accepted = await store.accept(DRAFT, claim=OWN, within_s=WITHIN_S)
        frozen.tick(49.999)
        early = await store.takeover(accepted.marker, NEXT, within_s=WITHIN_S)
        early_over = lease_over(accepted.marker, wall_ms(), 5.0)
        frozen.tick(0.001)
        over = lease_over(accepted.marker, wall_ms(), 5.0)
        taken = await store.takeover(accepted.marker, NEXT, within_s=WITHIN_S)
        await store.confirm("op", Settlement(), within_s=WITHIN_S)
        frozen.tick(DEFAULT_RETENTION_S - 1)
        again = replace(DRAFT, accept_id="again")
        kept = await store.accept(again, claim=None, within_s=WITHIN_S)
        frozen.tick(1)
        expired = await store.read("op", within_s=WITHIN_S)

    assert isinstance(early, Refused)
    assert (early_over, over) == (False, True)
    assert isinstance(taken, Written)
    assert taken.marker.created_at_ms == 1_940_673_600_000
    assert isinstance(kept, Replayed)
    assert expired is None


async def test_a_lease_of_no_length_is_taken_over_at_once(
    backend: Backend, wall: WallClock
) -> None:
    """Each pass loses its claim to the next, and the first confirmation still counts."""
    store = Store(backend.transport, table_name=backend.table_name, skew_margin_s=0.0, now_ms=wall)
    marker = (
        await store.accept(DRAFT, claim=Claim(claim_id="0", lease_s=0.0), within_s=WITHIN_S)
    ).marker

    for number in range(1, 4):
        claim = Claim(claim_id=str(number), lease_s=0.0)
        taken = await store.takeover(marker, claim, within_s=WITHIN_S)
        assert isinstance(taken, Written)
        marker = taken.marker

    assert (marker.passes, marker.attempts, marker.unknown) == (4, 3, True)
    assert Confirmed(first=True) == await store.confirm("op", Settlement(), within_s=WITHIN_S)
