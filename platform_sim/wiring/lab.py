"""Joining the lab to the handler and the store: the real code, with a world's network and store.

Rules: everything the product does runs as it would in production; only what it is passed is the
world's: clock, randomness, ids, the sender's network, and the store's transport.

Not here: the store under that transport (`wiring_lab_store`).
"""

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec

from handler.app import create_app
from handler.destinations import Deliver, Destination, Operation
from handler.errors import ConfigurationError, NotDelivered, Refused
from handler.events import Action, Sink
from handler.ids import Ids, operation_id_for_key
from handler.outcome import NoAnswer, NotSent, Outcome, Reply, Result
from handler.redrive import Redrive
from handler.sender import Request, Trace
from handler.service import Parts, Service
from handler.settings import Settings
from platform_sim.lab.scenario.complaints import named
from platform_sim.lab.scenario.errors import BadScenario
from platform_sim.lab.scenario.file import Receiver, Scenario
from platform_sim.lab.scenario.product import ReplicaParts, WorldParts
from platform_sim.lab.scenario.vocabulary import Words
from platform_sim.lifetime.emulator import App
from platform_sim.wiring.lab_store import WorldTable, WorldTransport
from platform_sim.world.network import Broken, Unreachable
from storage.attributes import Row
from storage.states import Event, State

__all__ = ["OutlastProduct"]

_KEY = "idempotency-key"
_CALLS = {*(event.value for event in Event), "read", "due"}
_REFUSED = 422  # the one refusal that a scripted function knows
_ABOVE_2XX = 300


class OutlastProduct:
    """The handler and the store as a product for the lab."""

    def check(self, scenario: Scenario) -> None:
        """Refuse settings that the handler would refuse.

        Raises:
            BadScenario: The message names the key.
        """
        _settings(scenario)
        for name, receiver in scenario.receivers.items():
            _destination(name, receiver, None)

    def words(self) -> Words:
        """Return the words of handler and store."""
        return Words(
            actions=frozenset(Action),
            calls=frozenset(_CALLS),
            states=frozenset(State),
            outcomes=frozenset(Outcome),
        )

    def open(self, scenario: Scenario, world: WorldParts) -> "_Opened":
        """Open the product in a world."""
        return _Opened(scenario, world)


def _settings(scenario: Scenario) -> Settings:
    try:
        return msgspec.convert(dict(scenario.handler), Settings)
    except msgspec.ValidationError as error:
        raise BadScenario(named(str(error), "handler")) from error
    except ConfigurationError as error:
        field = error.field.removeprefix("OUTLAST_").lower()
        raise BadScenario(f"handler.{field}: {error}") from error


def _destination(name: str, receiver: Receiver, deliver: Deliver | None) -> Destination:
    fields: dict[str, Any] = {
        "idempotent": receiver.idempotent,
        **{field: list(statuses) for field, statuses in receiver.statuses.items()},
    }
    if receiver.attempt_limit_s is not None:
        fields["attempt_limit_s"] = receiver.attempt_limit_s
    if receiver.lookup:
        fields["lookup_url"] = f"http://receiver/effects/{name}/{{id}}"
    if receiver.dedupe_window_s is not None:
        fields["dedupe_window_s"] = receiver.dedupe_window_s
    try:
        found = msgspec.convert({**fields, "url": _url(name)}, Destination)
    except msgspec.ValidationError as error:
        text = named(str(error), f"receivers.{name}.statuses")
        raise BadScenario(text) from error
    if receiver.function and deliver is not None:
        return msgspec.structs.replace(found, url="", deliver=deliver)
    return found


def _url(name: str) -> str:
    return f"http://receiver/hooks/{name}"


def _function(world: WorldParts, replica: str, name: str) -> Deliver:
    async def deliver(operation: Operation, _budget: object) -> Outcome:
        def byte_leaves() -> None:
            world.tell(replica, "byte_left", operation_id=operation.operation_id)

        try:
            reply = await world.network.request(
                replica=replica,
                method="POST",
                url=_url(name),
                key=operation.operation_id,
                body=operation.payload,
                byte_leaves=byte_leaves,
            )
        except Unreachable as error:
            raise NotDelivered(str(error)) from error
        if reply.status == _REFUSED:
            raise Refused(f"status {reply.status}")
        return Outcome.DELIVERED if reply.status < _ABOVE_2XX else Outcome.UNDELIVERED

    return deliver


class _Opened:
    """The product in one world."""

    def __init__(self, scenario: Scenario, world: WorldParts) -> None:
        self._scenario = scenario
        self._world = world
        self._settings = _settings(scenario)
        self._table = WorldTable(world, self._settings.table)

    def web(self, replica: ReplicaParts) -> App:
        """Return a new web replica's app."""
        parts = self._parts(replica)
        return create_app(
            parts.settings,
            destinations=parts.destinations,
            clock=parts.clock,
            ids=parts.ids,
            uniform=parts.uniform,
            open_transport=parts.open_transport,
            open_sender=parts.open_sender,
            sinks=parts.sinks,
        )

    async def redrive(self, replica: ReplicaParts) -> None:
        """Run the scheduled function once."""
        service = Service(self._parts(replica))
        try:
            await Redrive(service).run()
        finally:
            await service.aclose()

    def _parts(self, replica: ReplicaParts) -> Parts:
        world, settings = self._world, self._settings
        return Parts(
            settings=settings,
            destinations={
                name: _destination(name, receiver, _function(world, replica.name, name))
                for name, receiver in self._scenario.receivers.items()
            },
            clock=replica.clock,
            ids=Ids(
                replica_id=replica.name,
                random_bits=replica.random.getrandbits,
                wall_ms=replica.clock.wall_ms,
            ),
            uniform=replica.random.random,
            open_transport=lambda: WorldTransport(self._table, replica.name),
            open_sender=lambda: _Sender(world, replica.name, settings.max_connections),
            sinks=(self._sink(replica),),
        )

    def rows(self) -> Mapping[str, Row]:
        """Return every stored row by operation id."""
        return self._table.memory.rows

    def break_row(self, operation_id: str, attributes: Mapping[Any, str | int]) -> None:
        """Set stored attributes of a row; an empty string takes one away."""
        row = {**self._table.memory.rows[operation_id], **attributes}
        kept = {name: value for name, value in row.items() if value != ""}
        self._table.memory.put_row(kept)

    def operation_id(self, key: str) -> str:
        """Return the operation id that a key stands for."""
        return operation_id_for_key("", key)

    def _sink(self, replica: ReplicaParts) -> Sink:
        def tell(action: Action, fields: Mapping[str, Any]) -> None:
            self._world.tell(replica.name, action.value, **fields)

        return tell


class _Sender:
    """A sender into the world's network, with a pool of connections."""

    def __init__(self, world: WorldParts, replica: str, max_connections: int) -> None:
        self._world = world
        self._replica = replica
        self._pool = asyncio.Semaphore(max_connections)

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
