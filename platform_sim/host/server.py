"""Web process: any ASGI app on a socket, living by a platform's rules.

Rules: the ready line is printed once connections are really accepted. TERM or INT: no new
connection, requests in flight and registered work get the profile's shutdown grace, what is left
then is cut, and the process exits with 0; asked twice, it cuts at once. An app that refuses to
start ends the process with uvicorn's code 3; what cannot be started at all with 2 and one sentence.

Not here: the rules of a request's life (`platform_sim.lifetime`).
"""

import argparse
import asyncio
import copy
import os
import socket
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.config import LOGGING_CONFIG

from platform_sim.host.errors import LaunchError, PortError
from platform_sim.host.imports import load_app
from platform_sim.host.lifeline import watch_lifeline
from platform_sim.host.ready import announce
from platform_sim.host.signals import StopRequests, stop_requests
from platform_sim.lifetime.emulator import App, Emulator
from platform_sim.lifetime.errors import BadProfile
from platform_sim.lifetime.profile import PROFILES, CutMode, Profile
from platform_sim.lifetime.profile_file import resolve_profile
from platform_sim.view.cut_log import CutLog
from platform_sim.view.recorder import JsonLines, Observer, Tee

__all__ = ["ServerOptions", "main", "serve"]

_CANNOT_START = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """What the process is told.

    Attributes:
        app: Import string.
        host: Address to bind.
        port: Port to bind; 0 picks a free one.
        profile: The limits, with the overrides applied.
        record: Where events are added as JSON lines; None: nowhere.
        access_log: Whether each request is logged, to stderr.
    """

    app: str
    host: str
    port: int
    profile: Profile
    record: Path | None
    access_log: bool


class _Server(uvicorn.Server):
    """uvicorn, with its ready line and a shutdown that knows of work after the response."""

    def __init__(
        self, config: uvicorn.Config, emulator: Emulator, stop: StopRequests, *, grace_s: float
    ) -> None:
        super().__init__(config)
        self._emulator = emulator
        self._stop = stop
        self._grace_s = grace_s

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        # The signals are taken by `stop_requests`; uvicorn would raise them again at the end.
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        address, port = self.servers[0].sockets[0].getsockname()[:2]
        host = f"[{address}]" if ":" in address else address
        announce("web", f"http://{host}:{port}")

    async def main_loop(self) -> None:
        ticking = asyncio.ensure_future(super().main_loop())
        await self._stop.wait()
        self.should_exit = True
        await ticking

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        draining = asyncio.ensure_future(self._emulator.drain(within_s=self._grace_s))
        hurrying = asyncio.ensure_future(self._stop.wait_again())
        await asyncio.wait({draining, hurrying}, return_when=asyncio.FIRST_COMPLETED)
        hurrying.cancel()
        draining.cancel()
        await self._emulator.drain(within_s=0)
        await super().shutdown(sockets)


async def serve(app: App, options: ServerOptions, observer: Observer) -> None:
    """Serve `app` until the process is asked to stop.

    Raises:
        PortError: The address cannot be bound.
        SystemExit: The app refused to start (code 3; uvicorn has logged why).
    """
    emulator = Emulator(app, profile=options.profile, observer=observer, wall_ms=_wall_ms)
    config = uvicorn.Config(
        emulator,
        access_log=options.access_log,
        log_config=_log_config(),
        log_level="info" if options.access_log else "warning",
        timeout_graceful_shutdown=1,
    )
    listener = _bind(options.host, options.port)
    with stop_requests() as stop:
        server = _Server(config, emulator, stop, grace_s=options.profile.shutdown_grace_s)
        try:
            await server.serve(sockets=[listener])
        except OSError as refused:
            raise PortError("--port", options.port, _why(refused)) from refused
        finally:
            listener.close()


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as refused:
        listener.close()
        raise PortError("--port", port, _why(refused)) from refused
    return listener


def _why(refused: OSError) -> str:
    return os.strerror(refused.errno).lower() if refused.errno else str(refused)


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


def _log_config() -> dict[str, Any]:
    # stdout carries the ready line and nothing else.
    config = copy.deepcopy(LOGGING_CONFIG)
    config["handlers"]["access"]["stream"] = "ext://sys.stderr"
    config["loggers"]["outlast"] = {"handlers": ["default"], "level": "INFO", "propagate": False}
    return config


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 <= value < float("inf"):
        message = f"{text} is not a number of seconds"
        raise argparse.ArgumentTypeError(message)
    return value


def _parse(arguments: Sequence[str] | None) -> ServerOptions:
    parser = argparse.ArgumentParser(
        prog="server", description="Serves an ASGI app under a platform's request lifetime."
    )
    parser.add_argument("--app", required=True, help="module:attribute or module:factory()")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8787, help="0 picks a free one")
    parser.add_argument("--profile", default="workers", help=f"one of {', '.join(PROFILES)}")
    parser.add_argument("--ceiling-s", type=_seconds, help="allowance (default: the profile's)")
    parser.add_argument("--cut", type=CutMode, choices=list(CutMode), help="what a cut is")
    parser.add_argument("--cancel-grace-s", type=_seconds, help="from cancel to kill")
    parser.add_argument("--shutdown-grace-s", type=_seconds, help="from TERM to the cut")
    parser.add_argument("--record", type=Path, help="file to which events are added, JSON lines")
    parser.add_argument("--access-log", action="store_true", help="log each request to stderr")
    options = parser.parse_args(arguments)
    overrides = {
        "allowance_s": options.ceiling_s,
        "cut": options.cut,
        "cancel_grace_s": options.cancel_grace_s,
        "shutdown_grace_s": options.shutdown_grace_s,
    }
    given = {name: value for name, value in overrides.items() if value is not None}
    return ServerOptions(
        app=options.app,
        host=options.host,
        port=options.port,
        profile=replace(resolve_profile(options.profile), **given),
        record=options.record,
        access_log=options.access_log,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve an app as a process."""
    watch_lifeline()
    try:
        options = _parse(arguments)
        app = load_app(options.app)
        with ExitStack() as open_files:
            observers: list[Observer] = [CutLog()]
            if options.record is not None:
                stream = open_files.enter_context(options.record.open("ab"))
                observers.append(JsonLines(stream))
            asyncio.run(serve(app, options, Tee(*observers)))
    except (LaunchError, BadProfile) as error:
        if error.__cause__ is not None and not isinstance(error.__cause__, OSError):
            traceback.print_exception(error.__cause__)
        print(f"outlast: {error}", file=sys.stderr)
        sys.exit(_CANNOT_START)


if __name__ == "__main__":
    main()
