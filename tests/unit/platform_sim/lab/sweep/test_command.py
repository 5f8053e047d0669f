"""`outlast sweep`."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from platform_sim.cli import app as cli
from platform_sim.lab.sweep.command import Progress
from platform_sim.lab.sweep.outside import outside_world
from platform_sim.lab.sweep.stage import Aftermath
from tests.support.scenarios import ONE, world
from tests.support.swept import plain_app

HERE = "tests.unit.platform_sim.lab.sweep.test_command"
counter = iter(range(1_000_000))
heard: list[dict[str, Any]] = []


def lossy() -> Any:
    """Make an app that posts after its answer."""
    return plain_app(lambda _: outside_world().call("post"))


def moody() -> Any:
    """Make an app that does one thing more each time."""
    more = next(counter)

    async def mood(_scope: Any) -> None:
        for _ in range(more):
            await outside_world().call("post")

    return plain_app(mood)


async def listening(scope: Any, receive: Any, send: Any) -> None:
    """Note what the app hears."""
    if scope["type"] == "http":
        heard.append({"headers": dict(scope["headers"]), "message": await receive()})
    await plain_app()(scope, receive, send)


def posted(seen: Aftermath) -> None:
    """Require the post."""
    assert not seen.acknowledged or seen.outside.payloads("post"), "no post"


async def post_again() -> None:
    """Post, whatever happened."""
    await outside_world().call("post")


not_callable = 3


def sweep(*arguments: str) -> Result:
    """Run the command."""
    return CliRunner().invoke(cli, ["sweep", *arguments])


def sweep_app(name: str, *more: str) -> Result:
    """Sweep an app of this module."""
    return sweep("--app", f"{HERE}:{name}", "--request", "POST /orders", *more)


def test_a_cut_that_loses_work_is_exit_code_1() -> None:
    """The report is on stdout, with file, line and task."""
    result = sweep_app("lossy()")

    assert result.exit_code == 1
    assert result.stdout.startswith(f"cut sweep of POST /orders of {HERE}:lossy() (seed 1)\n")
    assert "the app call  lost" in result.stdout
    assert result.stdout.endswith("FAILED\n")
    assert result.stderr == ""


def test_an_app_that_survives_is_exit_code_0() -> None:
    """With a check of one's own, and a redrive, which may be cut too."""
    arguments = ("--check", f"{HERE}:posted", "--redrive", f"{HERE}:post_again", "--pairs")
    result = sweep_app("lossy()", *arguments, "--most-pairs", "3", "--seed", "9", "--after-s", "5")

    assert result.exit_code == 0
    assert "3 drawn with seed 9 run: 0 of 3 fail" in result.stdout


def test_the_report_can_be_had_as_data() -> None:
    """One JSON object and nothing else."""
    data = json.loads(sweep_app("lossy()", "--json").stdout)

    assert (data["passed"], data["pairs"]) == (False, None)
    assert data["lines"][0]["kinds"] == ["lost"]


def test_body_and_headers_reach_the_app() -> None:
    """JSON says so in its content type, unless that is given."""
    heard.clear()
    result = sweep_app("listening", "--body", '{"a": 1}', "--header", "X-Key:  b: c ")

    assert result.exit_code == 0
    assert heard[0]["message"]["body"] == b'{"a": 1}'
    assert heard[0]["headers"][b"x-key"] == b"b: c"
    assert heard[0]["headers"][b"content-type"] == b"application/json"


def test_an_app_that_does_not_repeat_itself_is_exit_code_2() -> None:
    """It says so in place of a report."""
    result = sweep_app("moody()")

    assert result.exit_code == 2
    assert "not repeatable, so nothing is reported" in result.stdout


def test_a_scenario_is_swept_against_the_real_product(tmp_path: Path) -> None:
    """Under its own seed, or another."""
    path = tmp_path / "one.toml"
    path.write_text(world(ONE, seed=4))
    own, other = sweep(str(path)), sweep(str(path), "--seed", "5", "--json")

    assert (own.exit_code, other.exit_code) == (0, 0)
    assert own.stdout.startswith("cut sweep of a test (seed 4)\n")
    assert own.stdout.endswith("PASSED\n")
    assert json.loads(other.stdout)["seed"] == 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give either a scenario file, or --app and --request"),
        (("x.toml", "--app", "a:b"), "give either a scenario file"),
        (("x.toml", "--body", "1"), "--body goes with --app"),
        (("x.toml", "--header", "a: b"), "--header goes with --app"),
        (("x.toml",), "cannot be read"),
        (("--app", f"{HERE}:lossy()"), "--app needs --request"),
        (("--app", f"{HERE}:nothing", "--request", "GET /"), "there is no 'nothing' in it"),
        (("--app", f"{HERE}:lossy()", "--request", "orders"), "is no request"),
        (("--app", f"{HERE}:lossy()", "--request", "GET /", "--body", "{"), "--body is no JSON"),
        (("--app", f"{HERE}:lossy()", "--request", "GET /", "--header", "a"), "--header 'a'"),
        (("--app", f"{HERE}:lossy()", "--request", "GET /", "--profile", "x"), "no profile 'x'"),
        (("--app", f"{HERE}:lossy()", "--request", "GET /", "--pairs"), "there is none: name one"),
        (
            ("--app", f"{HERE}:lossy()", "--request", "GET /", "--check", f"{HERE}:not_callable"),
            "is no function but int",
        ),
    ],
)
def test_what_cannot_be_swept_is_one_message_and_exit_code_2(
    arguments: tuple[str, ...], message: str
) -> None:
    """It says what to give."""
    result = sweep(*arguments)

    assert result.exit_code == 2
    assert result.stderr.startswith("outlast: ")
    assert message in result.stderr
    assert result.stdout == ""


def test_progress_is_told_only_when_it_takes_long(capsys: pytest.CaptureFixture[str]) -> None:
    """On stderr, every two seconds at the most."""
    instants = iter([0.0, 1.9, 2.0, 3.9, 4.5])
    progress = Progress(lambda: next(instants))
    for done in range(1, 5):
        progress("cuts", done, 9)
    out, err = capsys.readouterr()

    assert out == ""
    assert err.splitlines() == ["  2.0 s  2 of 9 cuts", "  4.5 s  4 of 9 cuts"]


def test_help_says_what_the_exit_codes_mean() -> None:
    """Where people look first."""
    result = CliRunner().invoke(cli, ["sweep", "--help"], terminal_width=200)

    assert result.exit_code == 0
    assert "Exit code 0: every cut survives" in result.stdout
