"""Web process: any ASGI app on a socket, living by a platform's rules.

Rules: the ready line is printed once connections are really accepted. TERM or INT: no new
connection, requests in flight and registered work get the profile's shutdown grace, what is left
then is cut, and the process exits with 0; asked twice, it cuts at once. Where a cut takes the
process along, the app runs in workers behind this process (`front`). An app that refuses to
start ends the process with uvicorn's code 3; what cannot be started at all with 2 and one sentence.

Not here: the rules of a request's life (`platform_sim.lifetime`).
"""

import argparse
import asyncio
import logging.config
import os
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing, redirect_stderr
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from platform_sim.host.app_log import AppLog, hear_app
from platform_sim.host.errors import LaunchError, explain
from platform_sim.host.front.messages import Order
from platform_sim.host.front.serve import STALL_S, serve_behind_front
from platform_sim.host.imports import load_app
from platform_sim.host.lifeline import watch_lifeline
from platform_sim.host.ready import announce
from platform_sim.host.serving import Server, bind, config_for, log_config, url_of
from platform_sim.host.signals import Stopped, stop_requests
from platform_sim.host.stall import watching_stalls
from platform_sim.lifetime.emulator import App, Emulator
from platform_sim.lifetime.errors import BadProfile
from platform_sim.lifetime.profile import PROFILES, CutMode, Profile
from platform_sim.lifetime.profile_file import resolve_profile
from platform_sim.view.cut_log import CutLog
from platform_sim.view.recorder import Observer, Tee
from platform_sim.view.recording import NotARecording, Recording

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
        stall_s: Seconds after which code that blocks the event loop is reported; None: never.
    """

    app: str
    host: str
    port: int
    profile: Profile
    record: Path | None
    access_log: bool
    stall_s: float | None = STALL_S


async def serve(
    app: App, options: ServerOptions, observer: Observer, app_log: AppLog | None = None
) -> None:
    """Serve `app` until the process is asked to stop.

    Args:
        app: The app.
        options: What the process is told.
        observer: Is told what happens.
        app_log: Hears what the app logs; None: nobody does.

    Raises:
        PortError: The address cannot be bound.
        SystemExit: The app refused to start (code 3; uvicorn has logged why).
    """
    emulator = Emulator(app, profile=options.profile, observer=observer, wall_ms=_wall_ms)
    if app_log is not None:
        app_log.heard = partial(hear_app, emulator)
    listener = bind(options.host, options.port)

    async def conduct(server: Server) -> None:
        server.listen()
        announce("web", url_of(listener))
        await stop.wait()

    with closing(listener), stop_requests() as stop, watching_stalls(options.stall_s, emulator):
        server = Server(
            config_for(emulator, access_log=options.access_log),
            emulator,
            stop,
            listener,
            grace_s=options.profile.shutdown_grace_s,
            conduct=conduct,
        )
        await server.serve()


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


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
    parser.add_argument(
        "--stall-s",
        type=_seconds,
        default=STALL_S,
        help="report code that blocks the event loop for longer; 0: never",
    )
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
        stall_s=options.stall_s or None,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve an app as a process."""
    watch_lifeline()
    try:
        options = _parse(arguments)
        if options.profile.cut is CutMode.PROCESS:
            _serve_behind_front(options)
        else:
            _serve_here(options)
    except (LaunchError, BadProfile, NotARecording) as error:
        explain(error)
        sys.exit(_CANNOT_START)
    except Stopped:
        sys.exit(0)


def _serve_here(options: ServerOptions) -> None:
    app_log = None
    with ExitStack() as open_things:
        observers: list[Observer] = [CutLog()]
        if options.record is not None:
            recording = open_things.enter_context(Recording(options.record, f"web.{os.getpid()}"))
            observers.append(recording)
            app_log = open_things.enter_context(redirect_stderr(AppLog(sys.stderr)))
        app = load_app(options.app)
        asyncio.run(serve(app, options, Tee(*observers), app_log))


def _serve_behind_front(options: ServerOptions) -> None:
    logging.config.dictConfig(log_config())
    with closing(bind(options.host, options.port)) as listener:
        order = Order(
            app=options.app,
            profile=options.profile,
            record=None if options.record is None else str(options.record),
            access_log=options.access_log,
            stall_s=options.stall_s,
        )
        up = partial(announce, "web", url_of(listener))
        asyncio.run(serve_behind_front(order, listener, up))


if __name__ == "__main__":
    main()
