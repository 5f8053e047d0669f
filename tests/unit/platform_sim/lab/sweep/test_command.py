"""`outlast sweep`."""

import json
import sys
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


def lost() -> Any:
    """Make an app that knows no such path."""
    return plain_app(status=404)


def chatty() -> Any:
    """Make an app that prints, in every way there is."""
    print("made")

    async def prints(_scope: Any) -> None:
        print("working")
        sys.stdout.buffer.write("grüße\n".encode())
        sys.stdout.flush()

    return plain_app(prints)


def lossy() -> Any:
    """Make an app that posts after its answer."""
    return plain_app(lambda _: outside_world().call("post"))


def quiet() -> Any:
    """Make the same app without a word."""

    async def works(_scope: Any) -> None:
        """Do nothing."""

    return plain_app(works)


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


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_what_the_app_prints_is_on_stderr_once(more: tuple[str, ...]) -> None:
    """Stdout is the report's, and what is printed in each cut is the same again."""
    quiet, loud = sweep_app("quiet()", *more), sweep_app("chatty()", *more)

    assert loud.exit_code == 0
    assert loud.stdout == quiet.stdout.replace("quiet()", "chatty()")
    assert loud.stderr.splitlines() == ["made", "working", "grüße"]


def test_nothing_acknowledged_is_exit_code_2_unless_a_check_judges_it() -> None:
    """A mistyped path must not pass."""
    blind = sweep_app("lost()")
    judged = sweep_app("lost()", "--check", f"{HERE}:posted")
    data = json.loads(sweep_app("lost()", "--check", f"{HERE}:posted", "--json").stdout)

    assert (blind.exit_code, blind.stdout) == (2, "")
    assert blind.stderr.startswith(
        "outlast: without a cut the answer was 404, so nothing was acknowledged; "
    )
    assert "--check" in blind.stderr
    assert judged.exit_code == 0
    assert judged.stdout.splitlines()[1] == "without a cut the answer was 404"
    assert data["uncut_answers"] == [{"status": 404, "raised": None}]


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
    assert own.stdout.startswith("cut sweep of a test (seed 4)\nwithout a cut the answer was 202\n")
    assert own.stdout.endswith("PASSED\n")
    assert json.loads(other.stdout)["seed"] == 5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = [", "is not TOML"),
        ('name = "x"\nmame = 1', "mame"),
        (world(ONE).replace('"r"', '"s"', 1), ": "),
        (world(""), "sends no request"),
    ],
)
def test_a_bad_scenario_is_named(tmp_path: Path, text: str, message: str) -> None:
    """Whatever is wrong with it, its path comes first."""
    path = tmp_path / "bad.toml"
    path.write_text(text)
    result = sweep(str(path))

    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"outlast: {path}: ")
    assert message in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give either a scenario file, or --app and --request"),
        (("x.toml", "--app", "a:b"), "give either a scenario file"),
        (("x.toml", "--body", "1"), "--body goes with --app"),
        (("x.toml", "--header", "a: b"), "--header goes with --app"),
        (("x.toml",), "x.toml: cannot be read"),
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
