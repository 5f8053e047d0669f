"""The network between senders and receivers, in process: connections that open, carry, and break.

Rules: a connection lives in the world's own context, never in the request's of a replica, so
killing a replica does not stop a receiver's work. A sender that is cancelled closes its
connection; one that is killed or leaves the machine has its connections closed by `hang_up`; one
that is frozen keeps them. The sender is told the moment before a byte leaves.

Not here: what a receiver does with a request (`receiver`), real sockets (`platform_sim.host`).
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from contextvars import Context
from dataclasses import dataclass, field
from typing import Annotated, Any
from urllib.parse import urlsplit

import msgspec

from platform_sim.world.effects import Lookup
from platform_sim.world.receiver import Arrival, Receiver, Reply
from platform_sim.world.script import Step, Then

__all__ = ["Broken", "Network", "NetworkError", "Site", "Turn", "Unreachable"]

_LOOKUPS = "effects"
_LOOKUP_STATUS: Mapping[Lookup, int] = {
    Lookup.FOUND: 200,
    Lookup.IN_PROGRESS: 409,
    Lookup.ABSENT: 404,
}


class NetworkError(Exception):
    """A request brought no reply."""


class Unreachable(NetworkError):
    """No byte of the request left."""


class Broken(NetworkError):
    """A byte may have left and no reply came."""


class Turn(Step, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A step, and what the connection does around it.

    Attributes:
        connect_s: Seconds until the connection stands.
        refuse: The connection is refused; the receiver sees nothing of it.
        drip_every_s: The reply's head comes byte by byte, this far apart.
        reset_at_byte: The connection is reset after so many bytes of the reply's head.
    """

    connect_s: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    refuse: bool = False
    drip_every_s: Annotated[float, msgspec.Meta(gt=0)] | None = None
    reset_at_byte: Annotated[int, msgspec.Meta(ge=0)] | None = None


@dataclass(slots=True, kw_only=True)
class Site:
    """One receiver as the network reaches it.

    Attributes:
        receiver: What answers.
        turns: What the n-th connection for a key meets; the last one repeats.
        lookups: Scripted answers to lookups; the truth when there are none.
        own_turns: Turns of single keys, in place of `turns`.
    """

    receiver: Receiver
    turns: tuple[Turn, ...] = (Turn(),)
    lookups: tuple[Step, ...] = ()
    own_turns: dict[str, tuple[Turn, ...]] = field(default_factory=dict)
    connections: Counter[str] = field(default_factory=Counter)
    asked: Counter[str] = field(default_factory=Counter)

    def next_turn(self, key: str) -> Turn:
        """Return what the next connection for a key meets."""
        self.connections[key] += 1
        turns = self.own_turns.get(key, self.turns)
        return turns[min(self.connections[key], len(turns)) - 1]


class Network:
    """Connections of all replicas to all sites.

    Args:
        sites: By name, which stands in the path: `/hooks/NAME`, `/effects/NAME/KEY`.
        context: The world's own context.
    """

    def __init__(self, sites: Mapping[str, Site], context: Context) -> None:
        self._sites = sites
        self._context = context
        # In order: what is closed first must not depend on addresses in memory.
        self._open: dict[str, dict[asyncio.Task[Reply | None], None]] = {}

    async def request(
        self,
        *,
        replica: str,
        method: str,
        url: str,
        key: str,
        body: bytes,
        byte_leaves: Callable[[], None],
    ) -> Reply:
        """Make one request and return its reply.

        Raises:
            Unreachable: No byte of it left.
            Broken: A byte left and no reply came.
        """
        path = urlsplit(url).path
        _, kind, name, *rest = (*path.split("/"), "", "")
        site = self._sites.get(name)
        if site is None:
            raise Unreachable(f"nobody is at {path!r}")
        if method == "GET" and kind == _LOOKUPS:
            return await self._ask(replica, site, rest[0], byte_leaves)
        return await self._carry(replica, site, Arrival(path=path, key=key, body=body), byte_leaves)

    def hang_up(self, replica: str) -> None:
        """Close every connection of a replica that is no more."""
        for connection in self._open.pop(replica, {}):
            connection.cancel()

    async def _carry(
        self, replica: str, site: Site, arrival: Arrival, byte_leaves: Callable[[], None]
    ) -> Reply:
        turn = site.next_turn(arrival.key)
        await asyncio.sleep(turn.connect_s)
        if site.receiver.down or turn.refuse:
            site.receiver.ledger.refuse()
            raise Unreachable("connection refused")
        byte_leaves()
        reply = await self._connection(replica, site.receiver.handle(arrival, step=turn))
        if reply is None:
            raise Broken("connection closed without a reply")
        head = _head(reply)
        arrived = len(head) if turn.reset_at_byte is None else min(turn.reset_at_byte, len(head))
        if turn.drip_every_s is not None:
            await asyncio.sleep(turn.drip_every_s * arrived)
        if arrived < len(head):
            raise Broken(f"connection reset at byte {arrived} of the reply")
        return reply

    async def _ask(
        self, replica: str, site: Site, key: str, byte_leaves: Callable[[], None]
    ) -> Reply:
        if site.receiver.down:
            raise Unreachable("connection refused")
        site.asked[key] += 1
        byte_leaves()
        reply = await self._connection(replica, self._looked_up(site, key, site.asked[key]))
        if reply is None:
            raise Broken("connection closed without a reply")
        return reply

    async def _looked_up(self, site: Site, key: str, number: int) -> Reply | None:
        if not site.lookups:
            await asyncio.sleep(0)
            return Reply(status=_LOOKUP_STATUS[site.receiver.effects.lookup(key)])
        step = site.lookups[min(number, len(site.lookups)) - 1]
        await asyncio.sleep(step.delay_s)
        if step.then is Then.HANG:
            await asyncio.get_running_loop().create_future()
        return None if step.then is Then.DROP else Reply(status=step.status)

    async def _connection(
        self, replica: str, exchange: Coroutine[Any, Any, Reply | None]
    ) -> Reply | None:
        connection = asyncio.get_running_loop().create_task(exchange, context=self._context.copy())
        mine = self._open.setdefault(replica, {})
        mine[connection] = None
        connection.add_done_callback(lambda done: mine.pop(done, None), context=self._context)
        return await connection


def _head(reply: Reply) -> bytes:
    """Return the reply's head as it would stand on the wire."""
    lines = [f"HTTP/1.1 {reply.status} -"]
    lines += [f"{name}: {value}" for name, value in reply.headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()
