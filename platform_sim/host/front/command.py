"""`outlast serve`: any ASGI app on a socket, living by a platform's rules.

Rules: what cannot work is refused before anything is started, naming the option and what to do
instead. The app always runs in a worker process behind this one, so that it can be reloaded, killed
and replaced while the address stays.

Exit codes: 0 stopped by a signal, 2 something could not be started, 130 stopped before it was.
"""

import asyncio
import logging.config
import math
from contextlib import closing
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from platform_sim.host.errors import OptionError
from platform_sim.host.front.messages import RECYCLE_AFTER, Order
from platform_sim.host.front.serve import STALL_S, serve_behind_front
from platform_sim.host.serving import bind, log_config, url_of
from platform_sim.lifetime.errors import BadProfile
from platform_sim.lifetime.profile import PROFILES, CutMode, Profile
from platform_sim.lifetime.profile_file import resolve_profile
from platform_sim.view.recording import NotARecording, Recording

__all__ = ["Freeze", "chosen_profile", "serve", "try_record"]

_CUTS: Final = (CutMode.CANCEL, CutMode.KILL, CutMode.PROCESS)
_MAX_PORT: Final = 65_535


class Freeze(StrEnum):
    """How a profile that freezes does it here."""

    REQUESTS = "requests"  # nothing of the requests that are over is stepped
    PROCESS = "process"  # SIGSTOP of the whole worker process, threads and all


def serve(
    *,
    app: Annotated[
        str, typer.Argument(metavar="MODULE:APP", help="ASGI app, or module:factory().")
    ],
    profile: Annotated[
        str,
        typer.Option(
            envvar="OUTLAST_PROFILE",
            help=f"Platform whose rules hold: {', '.join(PROFILES)}, or a .toml file.",
        ),
    ] = "workers",
    ceiling_s: Annotated[
        float | None,
        typer.Option(
            envvar="OUTLAST_CEILING_S",
            help="Seconds of the allowance.",
            show_default="the profile's",
        ),
    ] = None,
    cut: Annotated[
        str | None,
        typer.Option(
            envvar="OUTLAST_CUT",
            help="What the ceiling does: cancel, kill, or process (SIGKILL of the worker).",
            show_default="the profile's",
        ),
    ] = None,
    freeze: Annotated[
        str,
        typer.Option(help="How a profile that freezes does it: requests, or process (SIGSTOP)."),
    ] = Freeze.REQUESTS.value,
    reload: Annotated[
        bool, typer.Option("--reload", help="Replace the worker when a file here changes.")
    ] = False,
    host: Annotated[str, typer.Option(help="Address to bind.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(envvar="OUTLAST_WEB_PORT", help="Port; 0: any free one.")
    ] = 8787,
    record: Annotated[
        Path | None,
        typer.Option(help="File to which everything is added, for `outlast replay`."),
    ] = None,
    stall_s: Annotated[
        float, typer.Option(help="Report code that blocks the event loop for longer; 0: never.")
    ] = STALL_S,
    recycle_after: Annotated[
        int,
        typer.Option(help="Replace a worker that keeps that many killed coroutines."),
    ] = RECYCLE_AFTER,
    access_log: Annotated[bool, typer.Option("--access-log", help="Log each request.")] = False,
) -> None:
    """Serve an ASGI app under a platform's request lifetime until Ctrl-C."""
    limits = chosen_profile(profile, ceiling_s=ceiling_s, cut=cut)
    _check(freeze, limits, port=port, stall_s=stall_s, recycle_after=recycle_after)
    recorded = try_record(record)
    order = Order(
        app=app,
        profile=limits,
        record=None if recorded is None else str(recorded),
        access_log=access_log,
        stall_s=stall_s or None,
        recycle_after=recycle_after,
        sleeps=freeze == Freeze.PROCESS,
    )
    logging.config.dictConfig(log_config())
    with closing(bind(host, port)) as listener:

        def up() -> None:
            typer.echo(f"{_rules(order)}\n{app} at {url_of(listener)} (Ctrl-C stops it)")

        root = Path.cwd() if reload else None
        stopped_by = asyncio.run(serve_behind_front(order, listener, up, reload_from=root))
    typer.echo(f"{stopped_by}: stopped")


def chosen_profile(name: str, *, ceiling_s: float | None, cut: str | None) -> Profile:
    """Return the profile meant, with what options override.

    Raises:
        OptionError: There is no such profile, or a value that no profile can have.
    """
    try:
        found = resolve_profile(name)
    except BadProfile as error:
        raise OptionError("--profile", str(error), "`outlast profiles` lists them") from error
    changes: dict[str, Any] = {}
    if ceiling_s is not None:
        if not 0 <= ceiling_s < math.inf:
            raise OptionError(
                "--ceiling-s", f"{ceiling_s:g} s cannot work", "Give seconds, such as 30"
            )
        changes["allowance_s"] = ceiling_s
    if cut is not None:
        if cut not in list(_CUTS):
            raise OptionError("--cut", f"there is no {cut!r}", f"Use one of {', '.join(_CUTS)}")
        changes["cut"] = CutMode(cut)
    return replace(found, **changes)


def _check(freeze: str, limits: Profile, *, port: int, stall_s: float, recycle_after: int) -> None:
    if freeze not in list(Freeze):
        raise OptionError("--freeze", f"there is no {freeze!r}", f"Use one of {', '.join(Freeze)}")
    if freeze == Freeze.PROCESS and not limits.freezes:
        raise OptionError(
            "--freeze",
            f"profile {limits.name} never freezes",
            "Leave it out, or choose one that does: --profile lambda or cloud-run",
        )
    if not 0 <= port <= _MAX_PORT:
        raise OptionError("--port", f"{port} is no port", f"Use 0 (any free one) to {_MAX_PORT}")
    if not 0 <= stall_s < math.inf:
        raise OptionError("--stall-s", f"{stall_s:g} s cannot work", "Give seconds, such as 0.1")
    if recycle_after < 1:
        raise OptionError("--recycle-after", f"{recycle_after} is too few", "Give 1 or more")


def try_record(path: Path | None) -> Path | None:
    """Make the recording that `--record` names, unless it is there; return its absolute path.

    Raises:
        OptionError: It cannot be made, or is another kind of file.
    """
    if path is None:
        return None
    try:
        Recording(path, "").close()
        return path.absolute()
    except (OSError, NotARecording) as error:
        raise OptionError("--record", str(error), "Name a new file, or a recording") from error


def _rules(order: Order) -> str:
    limits = order.profile
    allowance = "no ceiling" if limits.allowance_s is None else f"{limits.allowance_s:g} s"
    lines = [
        f"profile {limits.name}: {limits.summary}",
        f"in force: allowance {allowance}, cut {limits.cut}",
    ]
    if limits.cut is CutMode.KILL:
        lines.append(
            f"killed coroutines can be neither run nor closed: after {order.recycle_after} of them "
            "the worker process is replaced, and finishes what it has"
        )
    if order.sleeps:
        lines.append("between requests the worker is stopped (SIGSTOP); answers close connections")
    return "\n".join(lines)
