"""Store transports for tests: the memory transport, counted, delayed and made to fail."""

from collections.abc import Callable
from dataclasses import dataclass, field

import anyio

from storage.attributes import Attribute
from storage.changes import Set
from storage.errors import StoreError, StoreUnavailable
from storage.requests import PutMarker, QueryDue, ReadMarker, Request, UpdateMarker, writes
from storage.states import State
from storage.transport.base import Reply, Transport
from storage.transport.memory import MemoryTransport

__all__ = ["Fate", "FaultyTransport", "down", "lost_reply", "slow", "target"]

Fault = Callable[[Request], "Fate | None"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """What happens to one call.

    Attributes:
        delay_s: Seconds before the write lands; forever hangs there.
        error: Raised in place of a reply.
        lands: Whether the write lands although the error is raised.
        reply_after_s: Seconds between the landing and its reply.
        deaf: The call takes its time whatever it was given.
    """

    delay_s: float = 0.0
    reply_after_s: float = 0.0
    deaf: bool = False
    error: StoreError | None = None
    lands: bool = False


def down(_request: Request | None = None) -> Fate:
    """The store cannot be reached."""
    return Fate(error=StoreUnavailable("the store is down", may_have_written=False))


def lost_reply(_request: Request | None = None) -> Fate:
    """The write lands and its reply is lost."""
    return Fate(error=StoreUnavailable("reset", may_have_written=True), lands=True)


def slow(seconds: float) -> Fate:
    """The call takes its time and counts."""
    return Fate(delay_s=seconds)


def target(request: Request) -> State | str | None:
    """Return the state a write leads to; `heartbeat` for what changes none; None for a read."""
    if isinstance(request, PutMarker):
        return State(str(request.row[Attribute.STATE]))
    if isinstance(request, UpdateMarker):
        for change in request.changes:
            if isinstance(change, Set) and change.attribute is Attribute.STATE:
                return State(str(change.value))
        return "heartbeat"
    return None


@dataclass(slots=True)
class FaultyTransport:
    """Passes calls on, keeps a list of them, and does to each what `fault` says."""

    inner: Transport = field(default_factory=MemoryTransport)
    fault: Fault | None = None
    calls: list[Request] = field(default_factory=list)
    closed: int = 0

    @property
    def writes(self) -> int:
        """Return how many calls were writes."""
        return sum(writes(call) for call in self.calls)

    @property
    def reads(self) -> int:
        """Return how many calls only read."""
        return sum(isinstance(call, ReadMarker | QueryDue) for call in self.calls)

    async def execute(self, request: Request, *, within_s: float) -> Reply:
        """Execute a call and let its fate happen, never longer than `within_s`."""
        self.calls.append(request)
        fate = (self.fault and self.fault(request)) or Fate()
        late = StoreUnavailable("no answer in time", may_have_written=writes(request))
        if fate.delay_s >= within_s and not fate.deaf:
            await anyio.sleep(within_s)
            raise late
        if fate.delay_s:
            await anyio.sleep(fate.delay_s)
        if fate.error is not None:
            if fate.lands:
                await self.inner.execute(request, within_s=within_s)
            raise fate.error
        reply = await self.inner.execute(request, within_s=within_s)
        await anyio.sleep(fate.reply_after_s)
        return reply

    async def aclose(self) -> None:
        """Count the close."""
        self.closed += 1
        await self.inner.aclose()
