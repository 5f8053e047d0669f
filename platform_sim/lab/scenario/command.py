"""`outlast scenario`: plays scenario files and says which of them hold.

Rules: every file is read and checked before anything is played; a bad one stops the command with
exit code 2 and one message for each bad file. Exit code 1 when a scenario did not pass. What is
printed on stdout depends only on the files and the seed; progress goes to stderr.

Not here: which product they are played against (the caller passes it).
"""

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
import typer

from platform_sim.host.front.command import try_record
from platform_sim.lab.scenario.errors import BadScenario
from platform_sim.lab.scenario.file import Scenario
from platform_sim.lab.scenario.product import Product
from platform_sim.lab.scenario.reading import read_scenario
from platform_sim.lab.scenario.record import record_played
from platform_sim.lab.scenario.run import check
from platform_sim.lab.scenario.verdict import Verdict, judged, timeline

__all__ = ["scenario_command"]

_DID_NOT_PASS: Final = 1
_BAD_FILE: Final = 2
_PROGRESS_EVERY_S: Final = 2.0
_HELP: Final = (
    "Play scenarios against the real handler, store and redrive, on virtual time.\n\n"
    "A scenario is a TOML file that describes a world (platform, receivers, requests, faults, "
    "redrive runs) and what must come of it; docs/scenarios.md lists every key.\n\n"
    "Exit code 0: all passed, 1: one did not, 2: a file is no scenario, and then none is played."
)


def scenario_command(open_product: Callable[[], Product]) -> Callable[..., None]:
    """Return the command, for a command line to register.

    Args:
        open_product: Makes the product that scenarios are played against, when one is played.
    """

    def scenario(
        *,
        files: Annotated[
            list[Path],
            typer.Argument(
                metavar="FILE...", help="Scenario files; a directory stands for its *.toml files."
            ),
        ],
        as_json: Annotated[
            bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else.")
        ] = False,
        trace: Annotated[
            bool, typer.Option("--trace", help="Print what happened, one line an event.")
        ] = False,
        seed: Annotated[
            int | None,
            typer.Option(
                help="Seed of every random choice, in place of the files' own.",
                show_default="the file's",
            ),
        ] = None,
        record: Annotated[
            Path | None,
            typer.Option(help="File to which everything is added, for `outlast replay`."),
        ] = None,
    ) -> None:
        recorded = try_record(record)
        product = open_product()
        worlds = _read(files, product, seed)
        verdicts = list(_play(worlds, product))
        if recorded is not None:
            for _, verdict in verdicts:
                if verdict.played is not None:
                    record_played(verdict.played, recorded)
        if as_json:
            print(json.dumps({"scenarios": [_data(*each, trace=trace) for each in verdicts]}))
        else:
            for line in _report(verdicts, trace=trace):
                print(line)
        raise typer.Exit(0 if all(verdict.passed for _, verdict in verdicts) else _DID_NOT_PASS)

    scenario.__doc__ = _HELP
    return scenario


def _read(given: Sequence[Path], product: Product, seed: int | None) -> list[tuple[Path, Scenario]]:
    """Read and check every file.

    Raises:
        typer.Exit: One is bad; each that is has been named on stderr.
    """
    found: list[tuple[Path, Scenario]] = []
    bad = False
    for path in _files(given):
        try:
            scenario = read_scenario(path)
            if seed is not None:
                scenario = msgspec.structs.replace(scenario, seed=seed)
            check(scenario, product)
            found.append((path, scenario))
        except BadScenario as error:
            bad = True
            typer.echo(f"outlast: {path}: {error}", err=True)
    if bad:
        raise typer.Exit(_BAD_FILE)
    return found


def _files(given: Sequence[Path]) -> Iterator[Path]:
    for path in given:
        if not path.is_dir():
            yield path
            continue
        inside = sorted(path.glob("*.toml"))
        if not inside:
            typer.echo(f"outlast: {path}: there is no *.toml file in it", err=True)
            raise typer.Exit(_BAD_FILE)
        yield from inside


def _play(
    worlds: Sequence[tuple[Path, Scenario]], product: Product
) -> Iterator[tuple[str, Verdict]]:
    for number, (path, scenario) in enumerate(worlds, start=1):
        with _progress(f"playing {number} of {len(worlds)}: {path}"):
            verdict = judged(scenario, product)
        yield str(path), verdict


@contextmanager
def _progress(text: str) -> Iterator[None]:
    """Say on stderr what goes on, as long as it goes on, if that is long."""
    over = threading.Event()
    started = time.monotonic()

    def tell() -> None:
        while not over.wait(_PROGRESS_EVERY_S):
            print(f"{time.monotonic() - started:5.1f} s  {text}", file=sys.stderr, flush=True)

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        over.set()
        teller.join()


def _data(file: str, verdict: Verdict, *, trace: bool) -> dict[str, Any]:
    data = verdict.as_dict(file)
    if trace and verdict.played is not None:
        data["trace"] = list(timeline(verdict.played))
    return data


def _report(verdicts: Sequence[tuple[str, Verdict]], *, trace: bool) -> Iterator[str]:
    for file, verdict in verdicts:
        if trace and verdict.played is not None:
            yield from timeline(verdict.played)
        word = "passed" if verdict.passed else "FAILED"
        yield f"{word}  {file}  {verdict.scenario.name}"
        for failure in verdict.failures:
            yield f"          {failure}"
        for promise, broken in verdict.invariants.items():
            for text in broken:
                yield f"          promise {promise}: {text}"
        if not verdict.passed:
            yield f"          (seed {verdict.scenario.seed})"
    passed = sum(verdict.passed for _, verdict in verdicts)
    failed = len(verdicts) - passed
    noun = "scenario" if len(verdicts) == 1 else "scenarios"
    yield f"{len(verdicts)} {noun}: {passed} passed" + (f", {failed} FAILED" if failed else "")
