"""The command `outlast conformance`: reads what it is given, and leaves the rest to the others.

Exit codes: 0 everything that is claimed agrees, 1 something does not, 2 bad input.
"""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from platform_sim.host.errors import LaunchError, OptionError
from platform_sim.host.imports import TargetError, load, load_app
from platform_sim.lab.conformance.pace import Pace
from platform_sim.lab.conformance.plan import plan_of
from platform_sim.lab.conformance.scenarios import APPS, app_for, reason_not_claimed, recorded
from platform_sim.lab.conformance.table import as_json, as_text
from platform_sim.lab.conformance.trace import Trace, read_trace
from platform_sim.lab.conformance.verdict import Verdict, judge, not_claimed

__all__ = ["conformance"]


def conformance(
    *,
    as_json_object: Annotated[
        bool, typer.Option("--json", help="Print one JSON object and nothing else.")
    ] = False,
    traces: Annotated[
        list[Path] | None,
        typer.Option(
            "--trace",
            help="A trace of your own, JSON lines; may be repeated.",
            show_default="all that come with the package",
        ),
    ] = None,
    app: Annotated[
        str | None,
        typer.Option(
            "--app",
            help="What plays it: an ASGI app, or a scheduled handler, module:attribute.",
            show_default="the built-in app its path or scenario names",
        ),
    ] = None,
    ceiling_s: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            help="Seconds of work allowed after the answer.",
            show_default="the profile's; none where the trace shows work beyond it",
        ),
    ] = None,
) -> None:
    """Hold the workers profile against what a real Workers runtime was seen to do."""
    if app is not None and not traces:
        raise OptionError("--app", "there is no trace for it to play", "give one with --trace FILE")
    if traces:
        verdicts = [_own(_read(path), app, ceiling_s) for path in traces]
    else:
        verdicts = [_built_in(trace, ceiling_s) for trace in recorded()]
    if as_json_object:
        print(json.dumps(as_json(verdicts)))
    else:
        print(as_text(verdicts))
    raise typer.Exit(1 if any(verdict.agrees is False for verdict in verdicts) else 0)


def _read(path: Path) -> Trace:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise OptionError(
            "--trace", f"{path} cannot be read ({error.strerror})", "give a file of JSON lines"
        ) from error
    return read_trace(content, str(path))


def _built_in(trace: Trace, ceiling_s: float | None) -> Verdict:
    reason = reason_not_claimed(trace)
    if reason is not None:
        return not_claimed(trace, reason)
    app = app_for(trace)
    assert app is not None  # a trace that comes with the package has an app or a reason
    return judge(trace, app, ceiling_s=ceiling_s)


def _own(trace: Trace, target: str | None, ceiling_s: float | None) -> Verdict:
    if target is not None:
        return judge(trace, _load(target, trace), ceiling_s=ceiling_s, pace=Pace(trace))
    reason = reason_not_claimed(trace)
    if reason is not None:
        return not_claimed(trace, reason)
    app = app_for(trace)
    if app is None:
        raise LaunchError(
            f"{trace.file}: neither its path nor its scenario {trace.scenario!r} names a built-in "
            f"app ({', '.join(APPS)}): give yours with --app module:app"
        )
    return judge(trace, app, ceiling_s=ceiling_s, pace=Pace(trace))


def _load(target: str, trace: Trace) -> Callable[..., Awaitable[Any]]:
    if plan_of(trace).requests:
        app: Callable[..., Awaitable[Any]] = load_app(target)
        return app
    handler = load(target)
    if not callable(handler):
        raise TargetError(f"{target} is no scheduled handler: write async def handler(scope)")
    return handler  # type: ignore[no-any-return]
