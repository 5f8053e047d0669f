"""The marker store: what the handler and redrive can do to a marker, one awaited call each.

Each method is one request, one try, within the seconds its caller has left. A lost race is a
return value (`replies`), a broken expectation raises (`errors`), cancellation passes
through. There is no loop, no retry and no read-before-write here: accept and confirm are the
happy path's 2 writes and 0 reads.
"""

from collections.abc import Callable
from typing import Final

from storage import replies
from storage.builders import RequestBuilder
from storage.errors import StoreUnavailable
from storage.marker import Claim, Draft, Marker, Settlement
from storage.replies import (
    Accepted,
    AcceptReply,
    Confirmed,
    ConfirmReply,
    DuePage,
    Gone,
    Mismatched,
    Refused,
    Replayed,
    WriteReply,
    Written,
)
from storage.requests import DueCursor, Request
from storage.shards import Lane, shards_of
from storage.states import State
from storage.transport.base import Reply, Transport

__all__ = [
    "DEFAULT_RETENTION_S",
    "Accepted",
    "Confirmed",
    "DuePage",
    "Gone",
    "Lane",
    "Mismatched",
    "Refused",
    "Replayed",
    "Store",
    "Written",
]

DEFAULT_RETENTION_S: Final = 14 * 24 * 3600


class Store:
    """Markers in one table, reached through one transport.

    Every method takes `within_s`: the seconds this call may take, computed by the caller from
    its one deadline. Every method raises `StoreUnavailable` when there is no usable answer in
    that time (at 0 or less without a call), and `StoreMisconfigured` when there never will be.

    Args:
        transport: Executes the requests.
        table_name: Table that holds the markers.
        shard_count: Numbers in each lane of the due index; the same for all who use the table.
        retention_s: Seconds a delivered or rejected marker keeps answering replays and reads.
        skew_margin_s: Seconds a lease must be over before others judge the pass lost.
        now_ms: Wall clock, epoch milliseconds.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        table_name: str = "outlast",
        shard_count: int = 4,
        retention_s: int = DEFAULT_RETENTION_S,
        skew_margin_s: float = 5.0,
        now_ms: Callable[[], int],
    ) -> None:
        self._transport = transport
        self._now_ms = now_ms
        self._shard_count = shard_count
        self._builder = RequestBuilder(
            table_name=table_name,
            shard_count=shard_count,
            retention_s=retention_s,
            skew_margin_s=skew_margin_s,
        )

    def shards(self, lane: Lane | None = None) -> tuple[str, ...]:
        """Return the due shards of a lane, or of both, never tried first."""
        lanes = tuple(Lane) if lane is None else (lane,)
        return tuple(shard for each in lanes for shard in shards_of(each, self._shard_count))

    async def accept(
        self,
        draft: Draft,
        *,
        claim: Claim | None,
        due_at_ms: int | None = None,
        within_s: float,
    ) -> AcceptReply:
        """Make an operation owed: held by `claim`, or waiting (due now unless told) without.

        An expired marker counts as absent and is replaced.
        """
        request = self._builder.accept(draft, claim, due_at_ms=due_at_ms, now_ms=self._now_ms())
        return replies.read_accept(await self._execute(request, within_s), draft)

    async def claim(self, operation_id: str, claim: Claim, *, within_s: float) -> WriteReply:
        """Begin a pass on a waiting marker that is due."""
        request = self._builder.claim(operation_id, claim, now_ms=self._now_ms())
        return replies.read_pass_hold(await self._execute(request, within_s), claim.claim_id)

    async def takeover(self, seen: Marker, claim: Claim, *, within_s: float) -> WriteReply:
        """Rewrite exactly the claim that was seen, its lease being over, into `claim`."""
        request = self._builder.takeover(seen, claim, now_ms=self._now_ms())
        return replies.read_pass_hold(await self._execute(request, within_s), claim.claim_id)

    async def heartbeat(self, held: Marker, *, lease_s: float, within_s: float) -> WriteReply:
        """Extend one's own lease to `lease_s` from now; never shortens it, revives none."""
        request = self._builder.heartbeat(held, lease_s, now_ms=self._now_ms())
        return replies.read_pass_hold(await self._execute(request, within_s), held.claim_id)

    async def confirm(
        self, operation_id: str, settlement: Settlement, *, within_s: float
    ) -> ConfirmReply:
        """Record the receiver's confirmation, by identity: no claim is asked for."""
        request = self._builder.confirm(operation_id, settlement, now_ms=self._now_ms())
        return replies.read_confirm(await self._execute(request, within_s))

    async def release(
        self,
        held: Marker,
        *,
        uncertain: bool,
        due_at_ms: int,
        settlement: Settlement,
        within_s: float,
    ) -> WriteReply:
        """Hand one's own claim back, to be tried again at `due_at_ms`."""
        request = self._builder.release(
            held, settlement, uncertain=uncertain, due_at_ms=due_at_ms, now_ms=self._now_ms()
        )
        target = State.UNCERTAIN if uncertain else State.UNDELIVERED
        return replies.read_pass_end(await self._execute(request, within_s), held.claim_id, target)

    async def reject(
        self, held: Marker, *, settlement: Settlement, reason: str, within_s: float
    ) -> WriteReply:
        """Settle one's own claim: the receiver refused for good."""
        request = self._builder.reject(held, settlement, reason=reason, now_ms=self._now_ms())
        return replies.read_pass_end(
            await self._execute(request, within_s), held.claim_id, State.REJECTED
        )

    async def park(
        self,
        held: Marker,
        *,
        unknown: bool,
        settlement: Settlement,
        reason: str,
        within_s: float,
    ) -> WriteReply:
        """Settle one's own claim: a person has to decide, and is told whether it is unknown."""
        request = self._builder.park(
            held, settlement, unknown=unknown, reason=reason, now_ms=self._now_ms()
        )
        return replies.read_pass_end(
            await self._execute(request, within_s), held.claim_id, State.PARKED
        )

    async def requeue(self, seen: Marker, *, within_s: float) -> WriteReply:
        """Make an operation due again, a person having seen it as `seen`."""
        request = self._builder.requeue(seen, now_ms=self._now_ms())
        return replies.read_write(await self._execute(request, within_s))

    async def resolve(self, seen: Marker, *, within_s: float) -> WriteReply:
        """Settle an operation as delivered, a person having seen it as `seen`."""
        request = self._builder.resolve(seen, now_ms=self._now_ms())
        return replies.read_write(await self._execute(request, within_s))

    async def read(self, operation_id: str, *, within_s: float) -> Marker | None:
        """Read a marker, consistently; an expired one is absent."""
        reply = await self._execute(self._builder.read(operation_id), within_s)
        return replies.read_found(reply, self._now_ms())

    async def due(
        self,
        shard: str,
        *,
        until_ms: int,
        limit: int,
        within_s: float,
        after: DueCursor | None = None,
    ) -> DuePage:
        """List up to `limit` operations of a shard due by `until_ms`, oldest first.

        The index may lag behind: what a claim's condition finds decides, always.
        """
        request = self._builder.due(shard, until_ms=until_ms, limit=limit, after=after)
        return replies.read_due(await self._execute(request, within_s))

    async def _execute(self, request: Request, within_s: float) -> Reply:
        if within_s <= 0:
            raise StoreUnavailable("no time left for a store call", may_have_written=False)
        return await self._transport.execute(request, within_s=within_s)
