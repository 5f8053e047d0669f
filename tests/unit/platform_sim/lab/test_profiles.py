"""`outlast profiles`: the list, one explained, and both as data."""

import json

import pytest
from typer.testing import CliRunner

from platform_sim import cli
from platform_sim.host.errors import OptionError
from platform_sim.lifetime.profile import PROFILES, WORKERS, Topic


def run(*arguments: str) -> str:
    """Run the command; return what it printed."""
    result = CliRunner().invoke(cli.app, ["profiles", *arguments])
    if result.exception is not None:
        raise result.exception
    return result.output


def test_the_list_has_a_line_for_each() -> None:
    """And says how to see more."""
    lines = run().splitlines()

    assert [line.split()[0] for line in lines[: len(PROFILES)]] == list(PROFILES)
    assert "outlast profiles NAME" in lines[-1]


def test_one_is_explained_rule_by_rule_with_sources() -> None:
    """Every topic is there."""
    output = run("workers")

    assert output.startswith(f"workers: {WORKERS.summary}\n")
    assert all(f"\n{topic} " in output for topic in Topic)
    assert all(source in output for source in WORKERS.sources.values())


def test_data_is_one_json_object() -> None:
    """Of all, or of one."""
    every = json.loads(run("--json"))["profiles"]
    (one,) = json.loads(run("lambda", "--json"))["profiles"]

    assert [profile["name"] for profile in every] == list(PROFILES)
    assert one == every[1]


def test_an_unknown_name_is_answered_with_those_there_are() -> None:
    """Exit code 2, by the command line's main."""
    with pytest.raises(OptionError, match="NAME: no profile 'moon'; there are: workers"):
        run("moon")
