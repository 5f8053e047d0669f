"""The command line: options, their variables, what is printed, and exit codes."""

import json
import os
import shlex
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from platform_sim import cli
from platform_sim.host.errors import LaunchError
from platform_sim.host.processes import Say
from platform_sim.host.signals import Stopped
from platform_sim.host.topology import Topology
from platform_sim.lab.demo import Outcome, Tell
from platform_sim.lab.verdict import Answer, Evidence, Row

FREE_PORTS = ["--web-port", "0", "--store-port", "0", "--receiver-port", "0"]


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the developer's own settings out."""
    for name in list(os.environ):
        if name.startswith("OUTLAST_") or name == "AWS_ENDPOINT_URL_DYNAMODB":
            monkeypatch.delenv(name)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Topology]:
    """Stand in for the processes: what would be started is noted, and stopped at once."""
    topologies: list[Topology] = []

    async def run(topology: Topology, say: Say, up: Callable[[], None]) -> str:
        topologies.append(topology)
        say("store", "ready")
        up()
        return "SIGINT"

    monkeypatch.setattr(cli, "run_until_stopped", run)
    return topologies


def invoke(*arguments: str, **environment: str) -> tuple[int, str]:
    """Run the command line; return exit code and output."""
    result = CliRunner().invoke(cli.app, arguments, env=environment)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


def test_up_prints_addresses_and_one_line_to_paste(started: list[Topology]) -> None:
    """The curl line is one line, whole, and names the web process's address."""
    code, output = invoke("up", *FREE_PORTS)

    (topology,) = started
    curls = [line for line in output.splitlines() if line.startswith("curl")]
    words = shlex.split(curls[0])
    assert (code, len(curls)) == (0, 1)
    assert words[:3] == ["curl", "-i", f"{topology.web_url}/operations"]
    assert json.loads(words[-1])["destination"] == "receiver"
    for url in (topology.web_url, topology.receiver_url, topology.store_url):
        assert url in output
    assert "store   | ready\n" in output
    assert output.startswith("starting store, receiver, web, redrive ...\n")
    assert output.endswith("SIGINT: everything is stopped\n")
    assert not Path(topology.environment["OUTLAST_DESTINATIONS"]).exists()


def test_every_option_reaches_the_processes(started: list[Topology]) -> None:
    """What is typed is what is run."""
    invoke(
        *("up", *FREE_PORTS, "--ceiling-s", "3", "--budget-s", "2", "--redrive-every-s", "4"),
        *("--cut", "kill", "--app", "mine:app", "--store", "http://127.0.0.1:9"),
        *("--profile", "generic"),
    )

    (topology,) = started
    assert (topology.ceiling_s, topology.redrive_every_s, topology.cut) == (3.0, 4.0, "kill")
    assert (topology.profile, topology.programs.app) == ("generic", "mine:app")
    assert (topology.store_url, topology.store_port) == ("http://127.0.0.1:9", None)
    assert topology.environment["OUTLAST_BUDGET_S"] == "2"


def test_options_are_variables_too_and_an_option_wins(started: list[Topology]) -> None:
    """A shell can set them once."""
    variables = {
        "OUTLAST_CEILING_S": "6",
        "OUTLAST_BUDGET_S": "5",
        "OUTLAST_REDRIVE_EVERY_S": "7",
        "OUTLAST_CUT": "kill",
        "OUTLAST_APP": "mine:app",
        "OUTLAST_WEB_PORT": "0",
        "OUTLAST_STORE_PORT": "0",
        "OUTLAST_RECEIVER_PORT": "0",
    }
    invoke("up", "--budget-s", "4", **variables)

    (topology,) = started
    assert (topology.ceiling_s, topology.redrive_every_s, topology.cut) == (6.0, 7.0, "kill")
    assert topology.programs.app == "mine:app"
    assert topology.environment["OUTLAST_BUDGET_S"] == "4"


@pytest.mark.parametrize("name", ["OUTLAST_STORE", "AWS_ENDPOINT_URL_DYNAMODB"])
def test_a_store_named_in_the_environment_is_used(name: str, started: list[Topology]) -> None:
    """No store of our own is started then, and the output says whose it is."""
    _, output = invoke("up", *FREE_PORTS, **{name: "http://127.0.0.1:9"})

    assert started[0].store() is None
    assert "starting receiver, web, redrive" in output
    assert "http://127.0.0.1:9  (yours)" in output


def test_an_app_of_the_users_own_gets_a_curl_line_that_fits_any_app(
    started: list[Topology],
) -> None:
    """Only the handler has operations to post."""
    _, output = invoke("up", *FREE_PORTS, "--app", "mine:app", "--profile", "generic")

    assert f"\ncurl -i {started[0].web_url}/\n" in output
    assert "ceiling   none" in output


def test_a_budget_that_reaches_the_ceiling_is_warned_about(started: list[Topology]) -> None:
    """And run all the same."""
    code, output = invoke("up", *FREE_PORTS, "--ceiling-s", "3", "--budget-s", "5")

    assert (code, len(started)) == (0, 1)
    assert output.startswith("warning: --budget-s 5 is not below the ceiling of 3 s")


def test_help_shows_options_defaults_and_variables() -> None:
    """Nobody needs to read the source for them."""
    _, output = invoke("up", "--help", COLUMNS="200")

    for shown in ("--ceiling-s", "OUTLAST_CEILING_S", "AWS_ENDPOINT_URL_DYNAMODB", "8787"):
        assert shown in output


@pytest.mark.parametrize(
    ("raised", "code", "message"),
    [
        (LaunchError("no luck"), 2, "outlast: no luck\n"),
        (Stopped("SIGTERM"), 130, "SIGTERM: everything is stopped\n"),
    ],
)
def test_a_failure_to_start_is_one_message_and_an_exit_code(
    raised: Exception,
    code: int,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """No traceback for what people can mend."""

    def fail(*_: Any) -> None:
        raise raised

    monkeypatch.setattr(cli, "run_until_stopped", fail)
    monkeypatch.setattr(sys, "argv", ["outlast", "up", *FREE_PORTS])
    with pytest.raises(SystemExit) as ended:
        cli.main()

    assert (ended.value.code, capsys.readouterr().err) == (code, message)


def test_an_option_that_cannot_work_is_a_failure_to_start(started: list[Topology]) -> None:
    """It is refused before ports are tried."""
    with pytest.raises(LaunchError, match="--ceiling-s: 0 s cannot work"):
        invoke("up", "--ceiling-s", "0")

    assert started == []


def test_when_nobody_reads_any_more_it_asks_itself_to_stop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A closed pipe is a reason to end, not to go on unseen."""
    raised: list[int] = []
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "w") as nobody_reads:
        monkeypatch.setattr(sys, "stdout", nobody_reads)
        monkeypatch.setattr(signal, "raise_signal", raised.append)
        cli.print_line("web", "hello")
        cli.print_line("web", "goes nowhere and harms nobody")

    assert raised == [signal.SIGTERM]


def test_an_idle_schedule_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """Lines are for what happens."""
    run = {"run": 1, "ending": "completed", "took_s": 0.1, "summary": {"listed": 0}}
    cli.print_line("redrive", json.dumps(run))
    cli.print_line("web", json.dumps({"action": "accepted", "operation_id": "a"}))

    assert capsys.readouterr().out == "web     | accepted operation_id=a\n"


def outcome(seed: int) -> Outcome:
    """Return what a demo of one operation found; odd seeds have lost it."""
    answer = Answer(name="01 fast", status=202, operation_id="a", ack_ms=1.0, at_ms=0)
    effects = {} if seed % 2 else {"a": 1}
    rows = {"a": Row(state="delivered", attempts=1, passes=1)}
    evidence = Evidence(answers=[answer], effects=effects, rows=rows)
    return Outcome(seed=seed, evidence=evidence, killed_ids=frozenset(), kills=1, took_s=1)


@pytest.fixture
def demo_seeds(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Stand in for the demo: even seeds keep their promise, odd ones do not."""
    seeds: list[int] = []

    async def run(topology: Topology, seed: int, tell: Tell) -> Outcome:
        seeds.append(seed)
        assert topology.record is not None
        topology.record.write_text('{"kind": "started", "fields": {"wall_ms": 0}, "at_s": 0}\n')
        assert "OUTLAST_LEASE_S" in topology.environment
        tell("running")
        return outcome(seed)

    monkeypatch.setattr(cli, "run_demo", run)
    return seeds


@pytest.mark.parametrize(("seed", "code"), [(4, 0), (5, 1)])
def test_the_demos_exit_code_is_its_verdict(seed: int, code: int, demo_seeds: list[int]) -> None:
    """0 only when nothing was lost and nothing doubled."""
    ended, output = invoke("demo", "--seed", str(seed))

    assert (ended, demo_seeds) == (code, [seed])
    assert f"verdict: {'BROKEN' if code else 'ok'}: accepted 1" in output


def test_json_is_all_there_is_on_stdout(demo_seeds: list[int]) -> None:
    """One object, for scripts; the seed is a new one when none is given."""
    result = CliRunner().invoke(cli.app, ["demo", "--json"])

    content = json.loads(result.stdout)
    assert content["seed"] == demo_seeds[0]
    assert "running" in result.stderr
