"""Joining the lab to the handler and the store: the real code, with a world's network and store.

Rules: everything the product does runs as it would in production; only what it is passed is the
world's: clock, randomness, ids, the sender's network, and the store's transport, on which
troubles strike. The memory under that transport is shared by all replicas, and its due index can
lag.

Not here: what troubles there are (`lab.scenario.troubles`).
"""

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec

from handler.app import create_app
from handler.destinations import Destination, Operation
from handler.errors import ConfigurationError, NotDelivered, Refused
from handler.events import Action, Sink
from handler.ids import Ids, operation_id_for_key
from handler.outcome import NoAnswer, NotSent, Outcome, Reply, Result
from handler.redrive import Redrive
from handler.sender import Request, Trace
from handler.service import Parts, Service
from handler.settings import Settings
from platform_sim.lab.scenario.file import BadScenario, Receiver, Scenario, StoreFailure
from platform_sim.lab.scenario.product import ReplicaParts, StoreTrouble, WorldParts
from platform_sim.lifetime.emulator import App
from platform_sim.world.network import Broken, Network, Unreachable
from storage.attributes import Attribute, Row
from storage.errors import StoreThrottled, StoreUnavailable
from storage.requests import PutMarker, QueryDue, ReadMarker, UpdateMarker, writes
from storage.requests import Request as StoreRequest
from storage.transport.base import NotStored, Stored
from storage.transport.base import Reply as StoreReply
from storage.transport.memory import MemoryTransport

__all__ = ["OutlastProduct"]

_KEY = "idempotency-key"


class OutlastProduct:
    """The handler and the store as a product for the lab."""

    def check(self, scenario: Scenario) -> None:
        """Refuse settings that the handler would refuse.

        Raises:
            BadScenario: The message names the key.
        """
        _settings(scenario)
        _destinations(scenario, None)

    def open(self, scenario: Scenario, world: WorldParts) -> "_Opened":
        """Open the product in a world."""
        return _Opened(scenario, world)


def _settings(scenario: Scenario) -> Settings:
    try:
        return msgspec.convert(dict(scenario.handler), Settings)
    except msgspec.ValidationError as error:
        text, _, path = str(error).partition(" - at `")
        where = path.rstrip("`").removeprefix("$")
        raise BadScenario(f"handler{where}: {text}") from error
    except ConfigurationError as error:
        raise BadScenario(
            f"handler.{error.field.removeprefix('OUTLAST_').lower()}: {error}"
        ) from error


def _destinations(
    scenario: Scenario, reach: "tuple[Network, str] | None"
) -> Mapping[str, Destination]:
    found = {}
    for name, receiver in scenario.receivers.items():
        fields: dict[str, Any] = {
            "idempotent": receiver.idempotent,
            "attempt_limit_s": receiver.attempt_limit_s,
            "lookup_url": f"http://{name}/effects/{{id}}" if receiver.lookup else None,
        }
        if receiver.dedupe_window_s is not None:
            fields["dedupe_window_s"] = receiver.dedupe_window_s
        url = f"http://{name}/hooks/{name}"
        if receiver.function:
            fields["deliver"] = _function(url, reach)
        else:
            fields["url"] = url
        try:
            found[name] = Destination(**fields, **_overrides(receiver))
        except (TypeError, ValueError) as error:
            raise BadScenario(f"receivers.{name}: {error}") from error
    return found


def _overrides(receiver: Receiver) -> Mapping[str, Any]:
    return {name: tuple(statuses) for name, statuses in receiver.statuses.items()}


def _function(url: str, reach: "tuple[Network, str] | None") -> Any:
    async def deliver(operation: Operation, _budget: object) -> Outcome:
        assert reach is not None
        network, replica = reach
        try:
            reply = await network.request(
                replica=replica,
                method="POST",
                url=url,
                key=operation.operation_id,
                body=operation.payload,
                byte_leaves=lambda: None,
            )
        except Unreachable as error:
            raise NotDelivered(str(error)) from error
        if reply.status == 422:  # noqa: PLR2004  the one refusal a scripted function knows
            raise Refused(f"status {reply.status}")
        return Outcome.DELIVERED if reply.status < 300 else Outcome.UNDELIVERED  # noqa: PLR2004  2xx

    return deliver


class _Opened:
    """The product in one world."""

    def __init__(self, scenario: Scenario, world: WorldParts) -> None:
        self._scenario = scenario
        self._world = world
        self._settings = _settings(scenario)
        self._table = _Table(world)

    def web(self, replica: ReplicaParts) -> App:
        """Return a new web replica's app."""
        return create_app(
            self._settings,
            destinations=_destinations(self._scenario, (self._world.network, replica.name)),
            clock=replica.clock,
            ids=self._ids(replica),
            uniform=replica.random.random,
            open_transport=lambda: _Transport(self._table, replica.name),
            open_sender=lambda: _Sender(self._world, replica.name, self._settings),
            sinks=(self._sink(replica),),
        )

    async def redrive(self, replica: ReplicaParts) -> None:
        """Run the scheduled function once."""
        service = Service(
            Parts(
                settings=self._settings,
                destinations=_destinations(self._scenario, (self._world.network, replica.name)),
                clock=replica.clock,
                ids=self._ids(replica),
                uniform=replica.random.random,
                open_transport=lambda: _Transport(self._table, replica.name),
                open_sender=lambda: _Sender(self._world, replica.name, self._settings),
                sinks=(self._sink(replica),),
            )
        )
        try:
            await Redrive(service).run()
        finally:
            await service.aclose()

    def rows(self) -> Mapping[str, Row]:
        """Return every stored row by operation id."""
        return self._table.memory.rows

    def break_row(self, operation_id: str, attributes: Mapping[str, str | int]) -> None:
        """Set stored attributes of a row; an empty string takes one away."""
        row = {**self._table.memory.rows[operation_id], **attributes}
        kept = {name: value for name, value in row.items() if value != ""}
        self._table.memory.put_row(kept)

    def operation_id(self, key: str) -> str:
        """Return the operation id that a key stands for."""
        return operation_id_for_key("", key)

    def _ids(self, replica: ReplicaParts) -> Ids:
        return Ids(
            replica_id=replica.name,
            random_bits=replica.random.getrandbits,
            wall_ms=replica.clock.wall_ms,
        )

    def _sink(self, replica: ReplicaParts) -> Sink:
        def tell(action: Action, fields: Mapping[str, Any]) -> None:
            self._world.tell(replica.name, action.value, **fields)

        return tell


class _Sender:
    """A sender into the world's network, with a pool of connections."""

    def __init__(self, world: WorldParts, replica: str, settings: Settings) -> None:
        self._world = world
        self._replica = replica
        self._pool = asyncio.Semaphore(settings.max_connections)

    async def send(self, request: Request, trace: Trace) -> Result:
        """Send once."""
        key = request.headers.get(_KEY, "")

        def byte_leaves() -> None:
            trace.byte_left = True
            self._world.tell(self._replica, "byte_left", operation_id=key or None)

        async with self._pool:
            try:
                reply = await self._world.network.request(
                    replica=self._replica,
                    method=request.method,
                    url=request.url,
                    key=key,
                    body=request.body or b"",
                    byte_leaves=byte_leaves,
                )
            except Unreachable as error:
                return NotSent(reason=str(error))
            except Broken as error:
                return NoAnswer(reason=str(error))
        headers = {name.lower(): value for name, value in reply.headers.items()}
        return Reply(status=reply.status, headers=headers)

    async def aclose(self) -> None:
        """Close every connection."""
        self._world.network.hang_up(self._replica)


class _Table:
    """The one table of a world, its writes told, its due index lagging when it has to."""

    def __init__(self, world: WorldParts) -> None:
        self.memory = MemoryTransport()
        self.world = world
        self._index = MemoryTransport()
        self._not_indexed: list[tuple[float, Row]] = []

    async def apply(self, request: StoreRequest, replica: str) -> StoreReply:
        """Execute a request now, telling what a write did."""
        if isinstance(request, QueryDue):
            return await self._listed(request)
        before = self._state(request)
        reply = await self.memory.execute(request, within_s=1.0)
        if isinstance(reply, Stored):
            self._not_indexed.append((self.world.clock.now_s(), reply.row))
        if isinstance(request, PutMarker | UpdateMarker):
            self._tell(request, replica, before, reply)
        return reply

    async def _listed(self, query: QueryDue) -> StoreReply:
        shown_until_s = self.world.clock.now_s() - self.world.index_lag_s()
        while self._not_indexed and self._not_indexed[0][0] <= shown_until_s:
            self._index.put_row(self._not_indexed.pop(0)[1])
        return await self._index.execute(query, within_s=1.0)

    def _state(self, request: StoreRequest) -> Row:
        return self.memory.rows.get(_operation_id(request), {})

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
            unknown=after.get(Attribute.UNKNOWN),
        )


def _operation_id(request: StoreRequest) -> str:
    match request:
        case PutMarker(row=row):
            return str(row[Attribute.OPERATION_ID])
        case UpdateMarker(operation_id=operation_id) | ReadMarker(operation_id=operation_id):
            return operation_id
        case QueryDue():
            return ""


class _Transport:
    """One replica's way to the table; troubles strike here."""

    def __init__(self, table: _Table, replica: str) -> None:
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
            case StoreFailure.SLOW | StoreFailure.LATE:
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
