"""The store of a world: one table in memory, on which the world's troubles strike.

Rules: the requests are the product's own and are interpreted exactly; the memory is shared by all
replicas. Every write is told, landed or refused. The due index can lag: it is a second memory that
is shown what was written so long ago.

Not here: which trouble there is (`lab.scenario.troubles`).
"""

import asyncio
from collections.abc import Iterator

from anyio.lowlevel import checkpoint

from platform_sim.lab.scenario.faults import StoreFailure
from platform_sim.lab.scenario.product import StoreTrouble, WorldParts
from storage.attributes import Attribute, Row
from storage.conditions import AllOf, AnyOf, Condition, Equal
from storage.errors import StoreThrottled, StoreUnavailable
from storage.requests import PutMarker, QueryDue, ReadMarker, UpdateMarker, writes
from storage.requests import Request as StoreRequest
from storage.transport.base import NotStored, Stored
from storage.transport.base import Reply as StoreReply
from storage.transport.memory import MemoryTransport

__all__ = ["WorldTable", "WorldTransport"]


class WorldTable:
    """The one table of a world, its writes told, its due index lagging when it has to.

    Attributes:
        memory: What is stored.
        world: Where it stands.
    """

    def __init__(self, world: WorldParts, table_name: str) -> None:
        self.memory = MemoryTransport(table_name=table_name)
        self.world = world
        self._index = MemoryTransport(table_name=table_name)
        self._not_indexed: list[tuple[float, Row]] = []

    async def apply(self, request: StoreRequest, replica: str) -> StoreReply:
        """Execute a request now, telling what a write did.

        What is written is indexed and told in one piece: a caller that is killed while its reply
        is under way has written.
        """
        await checkpoint()
        reply = self._applied(request, replica)
        await checkpoint()
        return reply

    def _applied(self, request: StoreRequest, replica: str) -> StoreReply:
        if isinstance(request, QueryDue):
            return self._listed(request)
        before = self._state(request)
        reply = self.memory.answer(request)
        if isinstance(reply, Stored):
            self._not_indexed.append((self.world.clock.now_s(), reply.row))
        if isinstance(request, PutMarker | UpdateMarker):
            self._tell(request, replica, before, reply)
        return reply

    def _listed(self, query: QueryDue) -> StoreReply:
        shown_until_s = self.world.clock.now_s() - self.world.index_lag_s()
        while self._not_indexed and self._not_indexed[0][0] <= shown_until_s:
            self._index.put_row(self._not_indexed.pop(0)[1])
        return self._index.answer(query)

    def _state(self, request: StoreRequest) -> Row:
        """Return the row there is; one whose retention is over counts as absent."""
        row = self.memory.rows.get(_operation_id(request), {})
        expires_at_s = row.get(Attribute.EXPIRES_AT)
        expired = isinstance(expires_at_s, int) and (
            expires_at_s * 1000 <= self.world.clock.wall_ms()
        )
        return {} if expired else row

    def _tell(
        self, request: PutMarker | UpdateMarker, replica: str, before: Row, reply: StoreReply
    ) -> None:
        after = reply.row if isinstance(reply, Stored) else before
        self.world.tell(
            replica,
            "write",
            operation_id=_operation_id(request),
            event=request.event.value,
            refused=isinstance(reply, NotStored),
            before=before.get(Attribute.STATE),
            after=after.get(Attribute.STATE),
            claim_before=before.get(Attribute.CLAIM_ID),
            claim_after=after.get(Attribute.CLAIM_ID),
            by_claim=_claim_named(request),
            unknown=after.get(Attribute.UNKNOWN),
        )


def _claim_named(request: PutMarker | UpdateMarker) -> str | int | None:
    """Return the claim that a write's condition demands."""
    found = (
        demanded.value
        for demanded in _flat(request.condition)
        if isinstance(demanded, Equal) and demanded.attribute is Attribute.CLAIM_ID
    )
    return next(found, None)


def _flat(condition: Condition) -> Iterator[Condition]:
    yield condition
    if isinstance(condition, AllOf | AnyOf):
        for inner in condition.conditions:
            yield from _flat(inner)


def _operation_id(request: StoreRequest) -> str:
    match request:
        case PutMarker(row=row):
            return str(row[Attribute.OPERATION_ID])
        case UpdateMarker(operation_id=operation_id) | ReadMarker(operation_id=operation_id):
            return operation_id
        case QueryDue():
            return ""


class WorldTransport:
    """One replica's way to the table; troubles strike here."""

    def __init__(self, table: WorldTable, replica: str) -> None:
        self._table = table
        self._replica = replica

    async def execute(self, request: StoreRequest, *, within_s: float) -> StoreReply:
        """Execute one request, or fail as the world says."""
        trouble = self._table.world.meet(self._replica, _call(request))
        if trouble is None:
            return await self._table.apply(request, self._replica)
        self._table.world.tell(
            self._replica,
            "store_trouble",
            operation_id=_operation_id(request) or None,
            call=_call(request),
            how=trouble.how.value,
        )
        return await self._troubled(request, trouble, within_s)

    async def _troubled(
        self, request: StoreRequest, trouble: StoreTrouble, within_s: float
    ) -> StoreReply:
        reached = StoreUnavailable(f"store: {trouble.how.value}", may_have_written=writes(request))
        match trouble.how:
            case StoreFailure.THROTTLED:
                raise StoreThrottled("store: throttled")
            case StoreFailure.UNREACHABLE:
                raise StoreUnavailable("store: unreachable", may_have_written=False)
            case StoreFailure.REPLY_LOST:
                await self._table.apply(request, self._replica)
                raise reached
            case StoreFailure.NOT_APPLIED:
                raise reached
            case StoreFailure.HANGS:
                await asyncio.sleep(within_s)
                raise reached
            case StoreFailure.SLOW:
                reply = await self._table.apply(request, self._replica)
                await asyncio.sleep(min(trouble.by_s, within_s))
                if trouble.by_s > within_s:
                    raise reached
                return reply
            case StoreFailure.LATE:
                return await self._late(request, trouble, within_s, reached)

    async def _late(
        self,
        request: StoreRequest,
        trouble: StoreTrouble,
        within_s: float,
        reached: StoreUnavailable,
    ) -> StoreReply:
        """Let the request land late, whether its caller still waits or not."""
        landed: asyncio.Future[StoreReply] = asyncio.get_running_loop().create_future()

        async def land() -> None:
            await asyncio.sleep(trouble.by_s)
            reply = await self._table.apply(request, self._replica)
            if not landed.done():
                landed.set_result(reply)

        self._table.world.later(land)
        try:
            async with asyncio.timeout(within_s):
                return await landed
        except TimeoutError:
            raise reached from None

    async def aclose(self) -> None:
        """Do nothing; the table is the world's."""


def _call(request: StoreRequest) -> str:
    match request:
        case PutMarker(event=event) | UpdateMarker(event=event):
            return event.value
        case ReadMarker():
            return "read"
        case QueryDue():
            return "due"
