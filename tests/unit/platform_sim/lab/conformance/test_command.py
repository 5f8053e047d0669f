"""The command: what it takes, what it prints, how it exits."""

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from platform_sim.host.errors import LaunchError
from platform_sim.lab.conformance.command import conformance
from platform_sim.lab.conformance.scenarios import recorded
from tests.support.traces import lines

app = typer.Typer()
app.command()(conformance)

MINE = "tests.support.traced:app"
TRACE = lines(
    (0.0, "client", "request:sent", {"path": "/"}),
    (0.01, "worker", "handler:start"),
    (0.01, "client", "response:headers", {"status": 200}),
    (0.01, "client", "response:end", {"body": "ok"}),
    (1.01, "worker", "work:done"),
    (1.01, "tail", "invocation:reported", {"outcome": "ok", "status": 200}),
    (3.0, "driver", "observation:end"),
)
SCHEDULED = lines(
    (0.0, "driver", "sched:dispatched"),
    (0.01, "worker", "handler:start"),
    (1.01, "worker", "work:done"),
    (1.01, "tail", "invocation:reported", {"outcome": "ok", "status": None}),
    (1.01, "driver", "sched:result", {"result": {"outcome": "ok", "noRetry": False}}),
    (3.0, "driver", "observation:end"),
)


def invoke(*arguments: str) -> tuple[int, Any]:
    """Run the command with --json; return exit code and object."""
    result = CliRunner().invoke(app, [*arguments, "--json"])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, json.loads(result.output)


@pytest.fixture
def written(tmp_path: Path) -> Any:
    """Return a function that writes a trace to a file and returns its path."""

    def write(content: bytes, name: str = "mine.jsonl") -> str:
        path = tmp_path / name
        path.write_bytes(content)
        return str(path)

    return write


def test_a_trace_and_an_app_of_ones_own(written: Any) -> None:
    """The app logs with what it finds in its scope."""
    code, table = invoke("--trace", written(TRACE), "--app", MINE)

    assert (code, table["agree"], table["disagree"]) == (0, 1, 0)


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_the_method_of_a_request_is_taken_over(method: str, written: Any) -> None:
    """As the path is."""
    content = TRACE.replace(b'"path": "/"', b'"path": "/", "method": "%s"' % method.encode())
    code, table = invoke("--trace", written(content), "--app", MINE)

    assert (code, table["scenarios"][0]["first_difference"]) == (0, None)


def test_the_schedule_of_a_run_is_taken_over(written: Any) -> None:
    """The handler finds it in its scope."""
    content = SCHEDULED.replace(b'"sched:dispatched"', b'"sched:dispatched", "cron": "0 * * * *"')
    code, _ = invoke("--trace", written(content), "--app", "tests.support.traced:scheduled")

    assert code == 0


def test_several_traces_are_told_one_by_one_and_one_that_disagrees_decides(written: Any) -> None:
    """Exit code 1."""
    other = written(TRACE.replace(b"1.01", b"1.5"), "other.jsonl")

    code, table = invoke("--trace", written(TRACE), "--trace", other, "--app", MINE)

    assert (code, table["agree"], table["disagree"]) == (1, 1, 1)
    assert table["scenarios"][1]["first_difference"] == (
        "worker work:done: recorded at 1.50 s, emulated at 1.01 s"
    )


def test_a_scheduled_trace_takes_a_handler_of_one_scope(written: Any) -> None:
    """The handler is no ASGI app."""
    code, table = invoke("--trace", written(SCHEDULED), "--app", "tests.support.traced:scheduled")

    assert (code, table["agree"]) == (0, 1)
    with pytest.raises(LaunchError, match="is no scheduled handler"):
        invoke("--trace", written(SCHEDULED), "--app", "tests.support.traced:NOTHING")


def test_a_variant_of_a_built_in_scenario_needs_no_app(written: Any) -> None:
    """Its path names the app, which runs in the trace's own time."""
    (read,) = [each for each in recorded() if each.scenario == "s01_wait_after_response"]
    events = [(e.at_s + (e.at_s > 1), str(e.source), e.name, e.fields) for e in read.events]

    code, table = invoke("--trace", written(lines(*events, scenario="longer")))

    assert (code, table["agree"]) == (0, 1)
    assert table["scenarios"][0]["notes"] == [
        "the app's timing is the trace's: bg:start to bg:done 3 s"
    ]


def test_a_trace_that_is_not_claimed_is_listed_with_its_reason(written: Any) -> None:
    """Unless an app of one's own is to play it."""
    half = TRACE.replace(b'"path": "/"', b'"path": "/s18_floating"') + lines(
        (2.0, "client", "half-close (FIN, still reading)")
    )

    code, table = invoke("--trace", written(half))

    assert (code, table["not_claimed"]) == (0, 1)
    assert invoke("--trace", written(half), "--app", MINE)[1]["not_claimed"] == 0


def test_a_ceiling_is_handed_on(written: Any) -> None:
    """In seconds."""
    code, table = invoke("--trace", written(TRACE), "--app", MINE, "--ceiling-s", "0.5")

    assert (code, table["scenarios"][0]["notes"]) == (1, ["ceiling 0.5 s, as asked"])


def test_bad_input_is_one_sentence(written: Any, tmp_path: Path) -> None:
    """What the command line turns into exit code 2."""
    with pytest.raises(LaunchError, match="--app: there is no trace for it to play"):
        invoke("--app", MINE)
    with pytest.raises(LaunchError, match="missing cannot be read"):
        invoke("--trace", str(tmp_path / "missing"))
    with pytest.raises(LaunchError, match="line 1, t: is missing"):
        invoke("--trace", written(b'{"scenario": "s", "src": "worker", "event": "a"}'))
    with pytest.raises(LaunchError, match=r"mine.jsonl, line 1, headers: is no field of client"):
        invoke("--trace", written(TRACE.replace(b'"path"', b'"headers": {}, "path"')))
    with pytest.raises(LaunchError, match="names a built-in app"):
        invoke("--trace", written(TRACE))
    with pytest.raises(LaunchError, match="there is no 'ap'"):
        invoke("--trace", written(TRACE), "--app", "tests.support.traced:ap")


def test_as_text_it_is_a_table(written: Any) -> None:
    """For people."""
    result = CliRunner().invoke(app, ["--trace", written(TRACE), "--app", MINE])

    assert result.output.splitlines()[:2] == [
        "scenario  agrees  first difference",
        "mine      yes     -",
    ]


def test_without_a_trace_all_that_come_along_are_played() -> None:
    """Everything that is claimed agrees."""
    code, table = invoke()

    assert (code, len(table["scenarios"]), table["disagree"]) == (0, len(recorded()), 0)
