"""Serving: uvicorn with an emulated app in it, and a shutdown that knows of work after answers.

Rules: the listening socket is made before; the server closes its own hold on it in the end. Whoever
runs the server decides when it listens and when it ends (`conduct`); then requests in flight and
registered work get the profile's shutdown grace, and what is left is cut. A server that retires
takes no new connection, answers what comes on the old ones and closes each with its next answer, so
that no request is lost. stdout belongs to whoever started the process: logs go to stderr.

Not here: processes (`server`, `front`), the rules of a request's life (`platform_sim.lifetime`).
"""

import asyncio
import copy
import errno
import logging
import os
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

import uvicorn
from uvicorn.config import LOGGING_CONFIG

from platform_sim.host.errors import PortError
from platform_sim.host.segments import Segments
from platform_sim.host.signals import StopRequests
from platform_sim.lifetime.emulator import Emulator

__all__ = ["Server", "bind", "config_for", "log_config", "url_of"]

_logger = logging.getLogger("outlast.host")

_EVERY_S: Final = 0.02
_QUIET_S: Final = 7.0  # longer than uvicorn lets a connection idle after an answer
_BACKLOG: Final = 2048
_NO_ROOM: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_NO_ROOM_PAUSE_S: Final = 1.0
_CLOSE: Final = (b"connection", b"close")


class Server(uvicorn.Server):
    """uvicorn, listening when told to.

    Args:
        config: From `config_for`.
        emulator: The app in it.
        stop: Asked a second time, a shutdown cuts at once.
        listener: The bound socket.
        grace_s: The profile's shutdown grace.
        conduct: Runs while the server does; when it returns, the server ends.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        emulator: Emulator,
        stop: StopRequests,
        listener: socket.socket,
        *,
        grace_s: float,
        conduct: "Callable[[Server], Awaitable[None]]",
    ) -> None:
        super().__init__(config)
        self._emulator = emulator
        self._stop = stop
        self._listener = listener
        self._grace_s = grace_s
        self._conduct = conduct
        self._protocol_class: Any = _in_segments(config.http_protocol_class)
        self._arriving: set[asyncio.Task[Any]] = set()

    @property
    def connections(self) -> int:
        """How many connections were accepted and are open."""
        return len(self.server_state.connections) + len(self._arriving)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to `stop_requests`; uvicorn would raise them again at the end."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the app, and listen to nothing yet."""
        del sockets
        await super().startup([])

    def listen(self) -> None:
        """Accept connections from now on."""
        asyncio.get_running_loop().add_reader(self._listener, self._accept)

    def pause(self) -> None:
        """Accept no more connections; those that were are counted already."""
        asyncio.get_running_loop().remove_reader(self._listener)

    def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(_BACKLOG):
            try:
                connection, _ = self._listener.accept()
            except OSError as error:
                if error.errno in _NO_ROOM:
                    self.pause()
                    loop.call_later(_NO_ROOM_PAUSE_S, self._listen_again)
                return  # nobody is waiting, or another process was faster
            connection.settimeout(0.0)
            arriving = loop.create_task(self._receive(connection))
            self._arriving.add(arriving)
            arriving.add_done_callback(self._arriving.discard)

    def _listen_again(self) -> None:
        if not self.should_exit:
            self.listen()

    async def _receive(self, connection: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        with suppress(OSError):  # the client has gone again
            await loop.connect_accepted_socket(self._protocol, connection)

    def _protocol(self) -> asyncio.Protocol:
        made: asyncio.Protocol = self._protocol_class(
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )
        return made

    def close_connections(self) -> None:
        """Close each connection with its next answer."""
        self.config.encoded_headers.append(_CLOSE)
        self.server_state.default_headers = [*self.server_state.default_headers, _CLOSE]

    async def retire(self) -> None:
        """Accept no more connections, and return when all requests and their work are over.

        Connections that stay silent are given up after a while.
        """
        self.pause()
        self.close_connections()
        loop = asyncio.get_running_loop()
        quiet_since = loop.time()
        while not self._emulator.idle or self.connections:
            if not self._emulator.idle:
                quiet_since = loop.time()
            elif loop.time() - quiet_since > _QUIET_S:
                return
            await asyncio.sleep(_EVERY_S)

    async def main_loop(self) -> None:
        """Run until whoever conducts has returned."""
        ticking = asyncio.ensure_future(super().main_loop())
        try:
            await self._conduct(self)
        finally:
            self.should_exit = True
            await ticking

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Give requests and work their grace, cut what is left, and end the app."""
        self.pause()
        self._listener.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        if not self._emulator.idle:
            _logger.warning(
                "stopping: what is under way gets up to %g s; a second signal cuts it at once",
                self._grace_s,
            )
        draining = asyncio.ensure_future(self._emulator.drain(within_s=self._grace_s))
        hurrying = asyncio.ensure_future(self._stop.wait_again())
        await asyncio.wait({draining, hurrying}, return_when=asyncio.FIRST_COMPLETED)
        hurrying.cancel()
        draining.cancel()
        await self._emulator.drain(within_s=0)
        await super().shutdown(sockets)


def _in_segments(protocol_class: Any) -> Any:
    """Return a protocol class of uvicorn's whose connections write in segments."""

    class InSegments(protocol_class):  # type: ignore[misc]
        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(Segments(transport, asyncio.get_running_loop()))

    return InSegments


def config_for(emulator: Emulator, *, access_log: bool) -> uvicorn.Config:
    """Return uvicorn's configuration for an emulated app."""
    config = uvicorn.Config(
        emulator,
        access_log=access_log,
        log_config=log_config(),
        log_level="info" if access_log else "warning",
        timeout_graceful_shutdown=1,
    )
    config.load()
    return config


def log_config() -> dict[str, Any]:
    """Return uvicorn's log configuration with ours: everything goes to stderr."""
    config = copy.deepcopy(LOGGING_CONFIG)
    config["handlers"]["access"]["stream"] = "ext://sys.stderr"
    config["loggers"]["outlast"] = {"handlers": ["default"], "level": "INFO", "propagate": False}
    return config


def bind(host: str, port: int) -> socket.socket:
    """Return a socket at an address; clients may connect already, and wait for who accepts them.

    Args:
        host: The address.
        port: The port; 0 picks a free one.

    Raises:
        PortError: It cannot be bound.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named: asyncio sends small answers at once only where it knows it is TCP.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(_BACKLOG)
    except OSError as refused:
        listener.close()
        reason = os.strerror(refused.errno).lower() if refused.errno else str(refused)
        raise PortError("--port", port, reason) from refused
    listener.settimeout(0.0)
    return listener


def url_of(listener: socket.socket) -> str:
    """Return the address of a bound socket."""
    address, port = listener.getsockname()[:2]
    host = f"[{address}]" if ":" in address else address
    return f"http://{host}:{port}"
