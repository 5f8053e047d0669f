"""The command line: `outlast up`, `demo`, `serve`, `scenario`, `sweep` and those that show things.

Options are also environment variables, shown in `--help`; an option that is given wins. Exit codes:
0 as wished, 1 the demo's verdict is bad, 2 something could not be started, 130 interrupted.
"""

import asyncio
import json
import os
import random
import signal
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final

import typer

from platform_sim.host.errors import LaunchError
from platform_sim.host.front.command import serve, try_record
from platform_sim.host.options import DEFAULTS, LocalOptions, checked
from platform_sim.host.platform import run_until_stopped
from platform_sim.host.signals import Stopped
from platform_sim.host.topology import Topology
from platform_sim.lab.conformance.command import conformance
from platform_sim.lab.demo import run_demo
from platform_sim.lab.demo_report import DemoReport
from platform_sim.lab.evidence import read_record
from platform_sim.lab.profiles import profiles
from platform_sim.lab.replay import replay
from platform_sim.lab.scenario.command import scenario_command
from platform_sim.lab.scenario.product import Product
from platform_sim.lab.screen import progress, show
from platform_sim.lab.sweep.command import sweep_command
from platform_sim.view.log_line import readable
from platform_sim.wiring.local import DEMO_OPTIONS, HANDLER, local_topology

__all__ = ["app", "main", "print_line"]

_CANNOT_START: Final = 2
_INTERRUPTED: Final = 130
_ROLE_WIDTH: Final = 8

app = typer.Typer(
    help="Required work that outlasts its request: run it locally and watch it being cut.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback()
def outlast() -> None:
    """Required work that outlasts its request: run it locally and watch it being cut."""


@app.command()
def up(
    *,
    ceiling_s: Annotated[
        float | None,
        typer.Option(
            envvar="OUTLAST_CEILING_S",
            help="Seconds of work allowed after the response.",
            show_default="the profile's, 30",
        ),
    ] = DEFAULTS.ceiling_s,
    budget_s: Annotated[
        float | None,
        typer.Option(
            envvar="OUTLAST_BUDGET_S",
            help="Seconds granted to one pass at an operation.",
            show_default="5/6 of the ceiling, at most 25",
        ),
    ] = DEFAULTS.budget_s,
    redrive_every_s: Annotated[
        float,
        typer.Option(
            envvar="OUTLAST_REDRIVE_EVERY_S", help="Seconds from one redrive run to the next."
        ),
    ] = DEFAULTS.redrive_every_s,
    cut: Annotated[
        str,
        typer.Option(envvar="OUTLAST_CUT", help="What the ceiling does: cancel, kill or process."),
    ] = DEFAULTS.cut,
    app_string: Annotated[
        str | None,
        typer.Option(
            "--app",
            envvar="OUTLAST_APP",
            help="ASGI app to run, module:attribute or module:factory().",
            show_default=HANDLER.app,
        ),
    ] = DEFAULTS.app,
    store: Annotated[
        str | None,
        typer.Option(
            envvar=["OUTLAST_STORE", "AWS_ENDPOINT_URL_DYNAMODB"],
            help="Address of a DynamoDB that exists already.",
            show_default="a local one is started",
        ),
    ] = DEFAULTS.store,
    profile: Annotated[
        str | None,
        typer.Option(
            envvar="OUTLAST_PROFILE", help="Platform whose rules hold.", show_default="workers"
        ),
    ] = DEFAULTS.profile,
    web_port: Annotated[
        int, typer.Option(envvar="OUTLAST_WEB_PORT", help="Port of the app; 0: any free one.")
    ] = DEFAULTS.web_port,
    store_port: Annotated[
        int, typer.Option(envvar="OUTLAST_STORE_PORT", help="Port of the local store.")
    ] = DEFAULTS.store_port,
    receiver_port: Annotated[
        int, typer.Option(envvar="OUTLAST_RECEIVER_PORT", help="Port of the receiver.")
    ] = DEFAULTS.receiver_port,
    record: Annotated[
        Path | None,
        typer.Option(help="File to which everything is added, for `outlast replay`."),
    ] = None,
) -> None:
    """Run store, receiver, app and redrive on this machine until Ctrl-C."""
    options = LocalOptions(
        ceiling_s=ceiling_s,
        budget_s=budget_s,
        redrive_every_s=redrive_every_s,
        cut=cut,
        app=app_string or None,
        store=store or None,
        profile=profile or None,
        web_port=web_port,
        store_port=store_port,
        receiver_port=receiver_port,
    )
    for warning in checked(options):
        typer.echo(f"warning: {warning}", err=True)
    recorded = try_record(record)
    with tempfile.TemporaryDirectory(prefix="outlast-") as folder:
        topology = local_topology(options, os.environ, Path(folder), record=recorded)
        typer.echo("starting " + ", ".join(_roles(topology)) + " ...")

        def announce() -> None:
            typer.echo(_addresses(topology, options))

        stopped_by = asyncio.run(run_until_stopped(topology, print_line, announce))
    typer.echo(f"{stopped_by}: everything is stopped")


@app.command()
def demo(
    *,
    seed: Annotated[
        int | None,
        typer.Option(help="Replays payloads and choices.", show_default="a new one, printed"),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else.")
    ] = False,
    record: Annotated[
        Path | None,
        typer.Option(help="File to which everything is added, for `outlast replay`."),
    ] = None,
) -> None:
    """Send a dozen operations through a platform that fails, and count what became of them."""
    kept = try_record(record)
    chosen = random.SystemRandom().randrange(1_000_000) if seed is None else seed
    with tempfile.TemporaryDirectory(prefix="outlast-") as folder:
        seen = kept or Path(folder) / "demo.jsonl"
        before = len(read_record(seen)) if kept else 0
        topology = local_topology(DEMO_OPTIONS, _not_ours(os.environ), Path(folder), record=seen)
        with progress() as tell:
            outcome = asyncio.run(run_demo(topology, chosen, tell))
        events = read_record(seen)[before:]
    budget_s = DEMO_OPTIONS.budget_in_force_s
    report = DemoReport(outcome=outcome, budget_s=budget_s, events=events)
    if as_json:
        print(json.dumps(report.as_dict()))
    else:
        show(report)
    raise typer.Exit(0 if report.good else 1)


def _open_product() -> Product:
    """Load handler and store, which only who plays scenarios has to wait for."""
    from platform_sim.wiring.lab import OutlastProduct  # noqa: PLC0415  see above

    return OutlastProduct()


app.command("scenario")(scenario_command(_open_product))
app.command("sweep")(sweep_command(_open_product, own=frozenset({"handler", "storage"})))
app.command("conformance")(conformance)
app.command("serve")(serve)
app.command("profiles")(profiles)
app.command("replay")(replay)


def _not_ours(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without the user's settings: the demo's times belong together."""
    return {name: value for name, value in environ.items() if not name.startswith("OUTLAST_")}


def _roles(topology: Topology) -> list[str]:
    store = topology.store()
    return [spec.role for spec in (*((store,) if store else ()), *topology.others())]


def _addresses(topology: Topology, options: LocalOptions) -> str:
    ceiling_s = options.ceiling_in_force_s
    ceiling = "none" if ceiling_s is None else f"{ceiling_s:g} s ({options.cut})"
    whose = "yours" if topology.store_port is None else "in memory"
    limits = (
        f"ceiling   {ceiling}, budget {options.budget_in_force_s:g} s,"
        f" redrive every {options.redrive_every_s:g} s"
    )
    lines = [
        "",
        f"web       {topology.web_url}",
        f"receiver  {topology.receiver_url}  (what it saw: {topology.receiver_url}/_ledger)",
        f"store     {topology.store_url}  ({whose})",
        limits,
        "",
        "Try it (Ctrl-C stops everything):",
        _curl(topology, options),
        "",
    ]
    return "\n".join(lines)


def _curl(topology: Topology, options: LocalOptions) -> str:
    if options.app not in {None, HANDLER.app}:
        return f"curl -i {topology.web_url}/"
    body = '{"destination": "receiver", "payload": {"hello": "world"}}'
    return f"curl -i {topology.web_url}/operations -H 'Content-Type: application/json' -d '{body}'"


def print_line(role: str, line: str) -> None:
    """Print one line of what happens; when nobody reads any more, stop."""
    text = readable(line)
    if text is None:
        return
    try:
        print(f"{role:<{_ROLE_WIDTH}}| {text}", flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        signal.raise_signal(signal.SIGTERM)


def main() -> None:
    """Run the command line; a failure to start is one message and exit code 2."""
    try:
        app()
    except Stopped as stopped:
        typer.echo(f"{stopped}: everything is stopped", err=True)
        sys.exit(_INTERRUPTED)
    except LaunchError as failed:
        typer.echo(f"outlast: {failed}", err=True)
        sys.exit(_CANNOT_START)


if __name__ == "__main__":
    main()
