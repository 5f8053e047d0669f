"""`outlast scenario`: what it prints, and what it exits with."""

import json
import sys
import threading
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from platform_sim.lab.scenario import command
from platform_sim.lab.scenario.command import scenario_command
from platform_sim.wiring.lab import OutlastProduct
from tests.support.scenarios import ONE, world

GOOD = world(ONE, "[[expect]]\noperation = 'a'\nstate = 'delivered'")
WRONG = world(ONE, "[[expect]]\noperation = 'a'\nstate = 'parked'")
BAD = world(ONE, "[[expect]]\noperation = 'b'")
APP = typer.Typer()
APP.command("scenario")(scenario_command(OutlastProduct))


def run(*arguments: str | Path) -> tuple[int, str, str]:
    """Run the command; return its exit code, stdout and stderr."""
    result = CliRunner().invoke(APP, [str(argument) for argument in arguments])
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a good, a wrong and a bad file."""
    for name, text in (("good", GOOD), ("wrong", WRONG), ("bad", BAD)):
        (tmp_path / f"{name}.toml").write_text(text, encoding="utf-8")
    return tmp_path


def test_scenarios_that_hold_exit_with_0(folder: Path) -> None:
    """One line each, and a sum."""
    path = folder / "good.toml"

    assert run(path, path) == (
        0,
        f"passed  {path}  a test\npassed  {path}  a test\n2 scenarios: 2 passed\n",
        "",
    )


def test_one_that_does_not_hold_exits_with_1_and_says_why(folder: Path) -> None:
    """Expected against seen, and the seed that replays it."""
    path = folder / "wrong.toml"

    assert run(path) == (
        1,
        (
            f"FAILED  {path}  a test\n"
            "          a: state: expected parked, seen delivered\n"
            "          (seed 1)\n"
            "1 scenario: 0 passed, 1 FAILED\n"
        ),
        "",
    )


def test_a_bad_file_exits_with_2_and_nothing_is_played(folder: Path) -> None:
    """Each bad file is named with its key, on stderr only."""
    code, out, err = run(folder / "good.toml", folder / "bad.toml", folder / "none.toml")

    assert (code, out) == (2, "")
    assert err == (
        f"outlast: {folder}/bad.toml: expect[0].operation: no request is named 'b'; there are: a\n"
        f"outlast: {folder}/none.toml: cannot be read: No such file or directory\n"
    )


def test_a_folder_stands_for_its_files_in_order(folder: Path) -> None:
    """By name; one without any is a mistake."""
    (folder / "bad.toml").unlink()
    (folder / "empty").mkdir()

    code, out, _ = run(folder)
    assert (code, [line.split()[0] for line in out.splitlines()[:2]]) == (1, ["passed", "FAILED"])
    assert run(folder / "empty") == (
        2,
        "",
        f"outlast: {folder}/empty: there is no *.toml file in it\n",
    )


def test_json_is_one_object_and_the_same_each_time(folder: Path) -> None:
    """With everything that was seen of each operation."""
    first, second = (run("--json", folder / "good.toml", folder / "wrong.toml") for _ in range(2))
    scenarios = json.loads(first[1])["scenarios"]

    assert first == second
    assert first[0] == 1
    assert [set(each) for each in scenarios] == 2 * [
        {"file", "name", "seed", "passed", "failures", "operations", "invariants"}
    ]
    assert [each["passed"] for each in scenarios] == [True, False]
    assert scenarios[1]["failures"] == ["a: state: expected parked, seen delivered"]
    assert scenarios[0]["operations"][0]["history"][-1]["state"] == "delivered"
    assert len(scenarios[0]["invariants"]) == 8


def test_trace_prints_one_line_an_event(folder: Path) -> None:
    """When, who, what; under `--json` in the object."""
    path = folder / "good.toml"
    text = run("--trace", path)[1].splitlines()
    data = json.loads(run("--trace", "--json", path)[1])["scenarios"][0]

    assert text[1].split() == ["0.000", "client", "request", "request=a", "replica=web-1"]
    assert text[: len(data["trace"])] == data["trace"]


def test_a_seed_replaces_the_files_own(folder: Path) -> None:
    """To replay a failure, or to try others."""
    data = json.loads(run("--json", "--seed", "7", folder / "good.toml")[1])["scenarios"][0]

    assert data["seed"] == 7


def test_a_broken_promise_is_printed_under_its_name(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever was expected."""
    monkeypatch.setattr(
        "platform_sim.lab.scenario.verdict.broken_invariants",
        lambda _: {"7 no flicker": ["it flickered"]},
    )
    code, out, _ = run(folder / "good.toml")

    assert code == 1
    assert "          promise 7 no flicker: it flickered\n" in out


def test_a_world_that_broke_has_no_trace(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """But a verdict, like the others."""

    def breaks(*_: object) -> None:
        raise LookupError("x")

    monkeypatch.setattr("platform_sim.lab.scenario.verdict.play", breaks)
    code, out, _ = run("--trace", folder / "good.toml")
    data = json.loads(run("--json", "--trace", folder / "good.toml")[1])["scenarios"][0]

    assert code == 1
    assert "a defect of ours: LookupError: x" in out
    assert "trace" not in data


def test_what_takes_long_says_so_on_stderr(monkeypatch: pytest.MonkeyPatch) -> None:
    """Again and again, until it is over."""
    told = threading.Event()
    lines: list[str] = []

    class Ear:
        def write(self, text: str) -> None:
            lines.append(text)
            told.set()

        def flush(self) -> None:
            """Do nothing."""

    monkeypatch.setattr(command, "_PROGRESS_EVERY_S", 0.001)
    monkeypatch.setattr(sys, "stderr", Ear())
    with command._progress("playing x"):
        heard = told.wait(10.0)

    assert heard
    assert "playing x" in "".join(lines)


def test_help_says_what_a_scenario_is_and_the_exit_codes() -> None:
    """For who has never seen one."""
    code, out, _ = run("--help")

    assert code == 0
    assert "docs/scenarios.md" in out
    assert "Exit code 0" in out


def test_without_a_file_there_is_nothing_to_play() -> None:
    """That is a mistake in the command, not in a file."""
    assert run()[0] == 2
