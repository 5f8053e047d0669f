"""The service: the parts that accept, deliver and redrive share, opened once and closed once.

Clients are opened on first use, inside the event loop that will use them, or passed in; importing
the handler opens nothing. One sender and one store client serve the life of the process.
"""

import logging
import os
import random
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Self, cast

import anyio
import structlog

from handler.budget import Clock, SystemClock
from handler.delivery import Delivery
from handler.destinations import Destination, destinations_from
from handler.events import Counts, Events, Sink, log_sink
from handler.ids import Ids
from handler.sender import HttpSender, Sender
from handler.settings import Settings, settings_from
from storage.store import Store
from storage.transport.base import Transport
from storage.transport.boto import BotoTransport, make_client

__all__ = ["Parts", "Service", "standard_sinks"]

_CLOSE_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a service is made of. Everything but the first two has a default for production.

    Attributes:
        settings: Limits and durations.
        destinations: By name.
        clock: Where time is read.
        ids: Where identifiers come from; None makes them from this clock.
        uniform: Draws evenly from [0, 1) for jitter.
        open_transport: Opens the store's transport on first use.
        open_sender: Opens the sender on first use.
        sinks: Told of every event, besides the counters.
    """

    settings: Settings
    destinations: Mapping[str, Destination]
    clock: Clock = field(default_factory=SystemClock)
    ids: Ids | None = None
    uniform: Callable[[], float] = random.random
    open_transport: Callable[[], Transport] | None = None
    open_sender: Callable[[], Sender] | None = None
    sinks: tuple[Sink, ...] = ()

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Self:
        """Read settings and destinations from environment variables; log to standard error.

        Raises:
            ConfigurationError: A value is unusable.
        """
        given = os.environ if environment is None else environment
        return cls(
            settings=settings_from(given),
            destinations=destinations_from(given),
            sinks=standard_sinks(),
        )


def standard_sinks() -> tuple[Sink, ...]:
    """Return the sinks of production: one JSON line an event on standard error."""
    return (log_sink(_logger()),)


class Service:
    """The opened parts."""

    def __init__(self, parts: Parts) -> None:
        self.settings = parts.settings
        self.destinations = parts.destinations
        self.clock = parts.clock
        self.ids = parts.ids or Ids(wall_ms=parts.clock.wall_ms)
        self.counts = Counts()
        self.events = Events(self.counts, *parts.sinks)
        self._parts = parts
        self._transport = (parts.open_transport or self._boto_transport)()
        self._sender = (parts.open_sender or self._http_sender)()
        self.store = Store(
            self._transport,
            table_name=self.settings.table,
            shard_count=self.settings.shard_count,
            retention_s=round(self.settings.retention_s),
            skew_margin_s=self.settings.skew_margin_s,
            now_ms=self.clock.wall_ms,
        )
        self.delivery = Delivery(
            store=self.store,
            sender=self._sender,
            destinations=self.destinations,
            settings=self.settings,
            uniform=parts.uniform,
            events=self.events,
        )

    def _boto_transport(self) -> Transport:
        threads = self.settings.store_threads
        client = make_client(max_pool=threads)
        return BotoTransport(client, max_threads=threads)

    def _http_sender(self) -> Sender:
        return HttpSender.open(max_connections=self.settings.max_connections)

    async def aclose(self) -> None:
        """Close every connection, also while being cancelled; what threads still do may land."""
        with anyio.move_on_after(_CLOSE_S, shield=True):
            try:
                await self._sender.aclose()
            finally:
                await self._transport.aclose()


def _logger() -> structlog.typing.FilteringBoundLogger:
    """Return the program's own logger, or one that writes JSON lines to standard error."""
    if structlog.is_configured():
        return cast("structlog.typing.FilteringBoundLogger", structlog.get_logger())
    logger: structlog.typing.FilteringBoundLogger = structlog.wrap_logger(
        structlog.PrintLogger(sys.stderr),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.JSONRenderer(default=str),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
    )
    return logger
