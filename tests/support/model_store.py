"""The store of a model world: one server with troubles, and each replica's way to it.

The server is a party of its own: what has reached it is done, whatever becomes of the caller, and
every landed write is told with the row before and after it, one at a time. Its due index can lag.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from anyio.lowlevel import checkpoint

from platform_sim.lab.scenario.story import Story
from platform_sim.world.clocks import WorldClock
from storage.attributes import Attribute, Row
from storage.errors import StoreThrottled, StoreUnavailable
from storage.requests import PutMarker, QueryDue, ReadMarker, Request, UpdateMarker, writes
from storage.transport.base import NotStored, Reply, Stored
from storage.transport.memory import MemoryTransport

__all__ = ["Failure", "ModelStore", "ReplicaTransport", "Trouble"]


class Failure(StrEnum):
    """How a call fails."""

    THROTTLED = "throttled"  # refused for its rate, nothing written
    UNREACHABLE = "unreachable"  # no connection, nothing written
    REPLY_LOST = "reply_lost"  # applied, the reply is lost
    NOT_APPLIED = "not_applied"  # lost on the way, as silent as a lost reply
    HANGS = "hangs"  # never answered, not applied
    LATE = "late"  # arrives late; a caller who has given up by then is not asked


_SILENT = frozenset({Failure.NOT_APPLIED, Failure.HANGS})


@dataclass(slots=True, kw_only=True)
class Trouble:
    """How the next `count` calls fail.

    Attributes:
        how: In which way.
        count: How many calls it still meets.
        by_s: Seconds by which `late` is late.
        calls: Only these calls; all when empty.
        replica: Only calls of replicas whose name begins so; all when empty.
    """

    how: Failure
    count: int = 1
    by_s: float = 0.0
    calls: frozenset[str] = frozenset()
    replica: str = ""

    def meets(self, replica: str, call: str) -> bool:
        """Tell whether it strikes this call."""
        concerned = not self.calls or call in self.calls
        return self.count > 0 and concerned and replica.startswith(self.replica)


@dataclass(slots=True, kw_only=True)
class ModelStore:
    """The server.

    Attributes:
        story: Is told of every write.
        clock: True time.
        later: Runs a coroutine outside every replica.
        troubles: What strikes, the first that meets a call.
        lag_s: How old the due index is.
    """

    story: Story
    clock: WorldClock
    later: Callable[[Coroutine[Any, Any, None]], None]
    troubles: list[Trouble] = field(default_factory=list)
    lag_s: float = 0.0
    memory: MemoryTransport = field(default_factory=MemoryTransport)
    _index: MemoryTransport = field(default_factory=MemoryTransport)
    _not_indexed: list[tuple[float, Row]] = field(default_factory=list)
    _one_at_a_time: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def rows(self) -> Mapping[str, Row]:
        """Every row by operation id."""
        return self.memory.rows

    def meet(self, replica: str, call: str) -> Trouble | None:
        """Return what strikes a call, counting it."""
        for trouble in self.troubles:
            if trouble.meets(replica, call):
                trouble.count -= 1
                return trouble
        return None

    def submit(self, request: Request, replica: str, *, after_s: float) -> "asyncio.Future[Reply]":
        """Let a request arrive in `after_s`; it is answered whether its caller waits or not."""
        answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()

        async def serve() -> None:
            if after_s:
                await asyncio.sleep(after_s)
            async with self._one_at_a_time:
                reply = await self._apply(request, replica)
            if not answer.done():
                answer.set_result(reply)

        self.later(serve())
        return answer

    async def _apply(self, request: Request, replica: str) -> Reply:
        if isinstance(request, QueryDue):
            shown_until_s = self.clock.now_s() - self.lag_s
            while self._not_indexed and self._not_indexed[0][0] <= shown_until_s:
                self._index.put_row(self._not_indexed.pop(0)[1])
            return await self._index.execute(request, within_s=1.0)
        operation_id = _operation_id(request)
        before = self.rows.get(operation_id, {})
        reply = await self.memory.execute(request, within_s=1.0)
        if isinstance(reply, Stored):
            self._not_indexed.append((self.clock.now_s(), reply.row))
        if isinstance(request, PutMarker | UpdateMarker):
            after = reply.row if isinstance(reply, Stored) else before
            self.story.tell(
                replica,
                "write",
                operation_id=operation_id,
                event=request.event.value,
                refused=isinstance(reply, NotStored),
                before=before.get(Attribute.STATE),
                after=after.get(Attribute.STATE),
                claim_before=before.get(Attribute.CLAIM_ID),
                claim_after=after.get(Attribute.CLAIM_ID),
                row_before=before,
                row_after=after,
            )
        return reply


class ReplicaTransport:
    """One replica's way to the server; troubles strike here."""

    def __init__(self, store: ModelStore, replica: str) -> None:
        self._store = store
        self._replica = replica

    async def execute(self, request: Request, *, within_s: float) -> Reply:
        """Execute one request, or fail as the world says."""
        call = _call(request)
        trouble = self._store.meet(self._replica, call)
        if trouble is None:
            return await self._store.submit(request, self._replica, after_s=0.0)
        how = trouble.how
        self._store.story.tell(self._replica, "store_trouble", call=call, how=how.value)
        if how is Failure.THROTTLED:
            await checkpoint()
            raise StoreThrottled("store: throttled")
        if how is Failure.UNREACHABLE:
            await checkpoint()
            raise StoreUnavailable("store: unreachable", may_have_written=False)
        return await self._unanswered(request, trouble, within_s)

    async def _unanswered(self, request: Request, trouble: Trouble, within_s: float) -> Reply:
        lost = StoreUnavailable(f"store: {trouble.how}", may_have_written=writes(request))
        if trouble.how is Failure.HANGS:
            await asyncio.sleep(within_s)
        if trouble.how in _SILENT:
            await checkpoint()
            raise lost
        answer = self._store.submit(request, self._replica, after_s=trouble.by_s)
        try:
            async with asyncio.timeout(within_s):
                reply = await answer
        except TimeoutError:
            raise lost from None
        if trouble.how is Failure.REPLY_LOST:
            raise lost
        return reply

    async def aclose(self) -> None:
        """Do nothing; the server is the world's."""


def _operation_id(request: Request) -> str:
    match request:
        case PutMarker(row=row):
            return str(row[Attribute.OPERATION_ID])
        case UpdateMarker(operation_id=operation_id) | ReadMarker(operation_id=operation_id):
            return operation_id
        case QueryDue():
            return ""


def _call(request: Request) -> str:
    match request:
        case PutMarker(event=event) | UpdateMarker(event=event):
            return event.value
        case ReadMarker():
            return "read"
        case QueryDue():
            return "due"
