"""`outlast sweep`: kills a request at each of its resumptions and says what that loses.

Rules: exit code 0 when every cut survives, 1 when one does not, 2 for input that cannot be swept,
which includes an app that does not do the same twice. What is printed on stdout depends only on the
subject and the seed; progress goes to stderr, when it takes longer than a look, and so does what
the app prints.

Not here: which product a scenario is played against (the caller passes it).
"""

import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
import typer

from platform_sim.host.errors import LaunchError
from platform_sim.host.imports import load, load_app
from platform_sim.lab.scenario.errors import BadScenario
from platform_sim.lab.scenario.product import Product
from platform_sim.lab.scenario.reading import read_scenario
from platform_sim.lab.sweep.app_subject import AppSubject
from platform_sim.lab.sweep.asking import SweptRequest
from platform_sim.lab.sweep.errors import BadSweep, SweepError
from platform_sim.lab.sweep.hearing import FirstRunHeard, hearing
from platform_sim.lab.sweep.report import SweepReport
from platform_sim.lab.sweep.scenario_subject import ScenarioSubject
from platform_sim.lab.sweep.stage import DEFAULT_AFTER_S
from platform_sim.lab.sweep.sweep import DEFAULT_MOST_PAIRS, sweep
from platform_sim.lab.sweep.trial import Subject
from platform_sim.lifetime.emulator import App
from platform_sim.lifetime.errors import BadProfile
from platform_sim.lifetime.profile import GENERIC, find_profile

__all__ = ["Progress", "sweep_command"]

_CUT_HURTS: Final = 1
_BAD_INPUT: Final = 2
_QUIET_S: Final = 2.0
_HELP: Final = (
    "Kill a request at each of its awaits in turn, and say where that loses work.\n\n"
    "Give a scenario file, whose requests are swept against the real handler, store and redrive; "
    "or --app and --request for any ASGI app. Everything runs in process, on virtual time; "
    "docs/sweep.md shows how.\n\n"
    "Exit code 0: every cut survives, 1: one does not, 2: there is nothing that can be swept."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Given:
    """What was typed."""

    scenario: Path | None
    app: str | None
    request: str | None
    body: str | None
    headers: Sequence[str]
    check: str | None
    redrive: str | None
    after_s: float
    profile: str
    seed: int | None


def sweep_command(
    open_product: Callable[[], Product], *, own: frozenset[str]
) -> Callable[..., None]:
    """Return the command, for a command line to register.

    Args:
        open_product: Makes the product that a scenario is played against.
        own: Top-level modules of that product, in whose code the places are named.
    """

    def sweep_(
        *,
        scenario: Annotated[
            Path | None,
            typer.Argument(metavar="[SCENARIO]", help="A scenario file.", show_default=False),
        ] = None,
        app: Annotated[
            str | None,
            typer.Option(
                help="ASGI app, module:attribute; module:factory() makes a new one for each cut."
            ),
        ] = None,
        request: Annotated[
            str | None, typer.Option(help="The request that is cut, such as 'POST /orders'.")
        ] = None,
        body: Annotated[str | None, typer.Option(help="Its body, as JSON.")] = None,
        header: Annotated[
            list[str] | None, typer.Option(help="A header of it, 'Name: value'; repeatable.")
        ] = None,
        check: Annotated[
            str | None,
            typer.Option(
                help="module:function that is given what came of a cut, and raises "
                "AssertionError, returns False or returns text when work was lost.",
                show_default="a 2xx whose work was stopped is lost work",
            ),
        ] = None,
        redrive: Annotated[
            str | None,
            typer.Option(help="module:function that finishes what was cut; may take the app."),
        ] = None,
        after_s: Annotated[
            float,
            typer.Option(min=0.0, help="Virtual seconds from a cut to what comes next."),
        ] = DEFAULT_AFTER_S,
        profile: Annotated[
            str, typer.Option(help="Platform whose rules hold for the app.")
        ] = GENERIC.name,
        pairs: Annotated[
            bool,
            typer.Option("--pairs", help="After each cut, also cut redrive at each resumption."),
        ] = False,
        most_pairs: Annotated[
            int, typer.Option(min=1, help="Pairs that are run; of more, so many are drawn.")
        ] = DEFAULT_MOST_PAIRS,
        seed: Annotated[
            int | None,
            typer.Option(help="Seed of every random choice.", show_default="the scenario's, or 1"),
        ] = None,
        as_json: Annotated[
            bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else.")
        ] = False,
    ) -> None:
        given = _Given(
            scenario=scenario,
            app=app,
            request=request,
            body=body,
            headers=header or (),
            check=check,
            redrive=redrive,
            after_s=after_s,
            profile=profile,
            seed=seed,
        )
        try:
            with hearing(sys.stderr) as heard:
                subject = FirstRunHeard(_subject(given, open_product, own), heard)
                tell = Progress(time.monotonic)
                report = sweep(subject, most_pairs=most_pairs if pairs else None, tell=tell)
        except (SweepError, BadScenario, BadProfile, LaunchError) as error:
            typer.echo(f"outlast: {error}", err=True)
            raise typer.Exit(_BAD_INPUT) from error
        print(json.dumps(report.as_dict()) if as_json else report)
        raise typer.Exit(_exit_code(report))

    sweep_.__doc__ = _HELP
    return sweep_


def _exit_code(report: SweepReport) -> int:
    if report.unrepeatable is not None:
        return _BAD_INPUT
    return 0 if report.passed else _CUT_HURTS


class Progress:
    """Tells on stderr how far a sweep is, once it takes longer than a look.

    Args:
        monotonic_s: The clock on the wall.
    """

    def __init__(self, monotonic_s: Callable[[], float]) -> None:
        self._monotonic_s = monotonic_s
        self._started_s = self._told_s = monotonic_s()

    def __call__(self, what: str, done: int, of: int) -> None:
        """Take note of so many done."""
        now_s = self._monotonic_s()
        if now_s - self._told_s >= _QUIET_S:
            self._told_s = now_s
            text = f"{now_s - self._started_s:5.1f} s  {done} of {of} {what}"
            print(text, file=sys.stderr, flush=True)


def _subject(given: _Given, open_product: Callable[[], Product], own: frozenset[str]) -> Subject:
    if (given.scenario is None) == (given.app is None):
        raise BadSweep("give either a scenario file, or --app and --request")
    if given.scenario is not None:
        named = ("request", "body", "headers", "check", "redrive")
        for name in (name for name in named if getattr(given, name)):
            raise BadSweep(f"--{name.removesuffix('s')} goes with --app; a scenario says it itself")
        try:
            return _scenario_subject(given.scenario, given.seed, open_product(), own)
        except (BadScenario, BadSweep) as error:
            raise BadSweep(f"{given.scenario}: {error}") from error
    return _app_subject(given)


def _scenario_subject(
    path: Path, seed: int | None, product: Product, own: frozenset[str]
) -> ScenarioSubject:
    scenario = read_scenario(path)
    if seed is not None:
        scenario = msgspec.structs.replace(scenario, seed=seed)
    return ScenarioSubject(scenario, product, own=own)


def _app_subject(given: _Given) -> AppSubject:
    assert given.app is not None
    if given.request is None:
        raise BadSweep("--app needs --request, such as --request 'POST /orders'")
    return AppSubject(
        title=f"{given.request} of {given.app}",
        make=_maker(given.app),
        request=_request(given, given.request),
        check=_function(given.check),
        redrive=_function(given.redrive),
        profile=find_profile(given.profile),
        after_s=given.after_s,
        seed=1 if given.seed is None else given.seed,
        own=frozenset({given.app.partition(":")[0].partition(".")[0]}),
    )


def _maker(target: str) -> Callable[[], App]:
    app = load_app(target)
    if not target.endswith("()"):
        return lambda: app
    made = [app]  # the first run's, so that nothing is made, and heard, for nothing
    make: Callable[[], App] = load(target.removesuffix("()"))
    return lambda: made.pop() if made else make()


def _request(given: _Given, line: str) -> SweptRequest:
    headers = {}
    for text in given.headers:
        name, colon, value = text.partition(":")
        if not colon or not name.strip():
            raise BadSweep(f"--header {text!r}: write it like 'Name: value'")
        headers[name.strip().lower()] = value.strip()
    if given.body is None:
        return SweptRequest.of(line, headers=headers)
    try:
        json.loads(given.body)
    except ValueError as error:
        raise BadSweep(f"--body is no JSON: {error}") from error
    headers.setdefault("content-type", "application/json")
    return SweptRequest.of(line, body=given.body.encode(), headers=headers)


def _function(target: str | None) -> Callable[..., Any] | None:
    if target is None:
        return None
    found = load(target)
    if not callable(found):
        raise BadSweep(f"{target} is no function but {type(found).__name__}")
    return found  # type: ignore[no-any-return]
