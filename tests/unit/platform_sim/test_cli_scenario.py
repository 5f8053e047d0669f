"""`outlast scenario` is part of the command line, against the real handler and store."""

from pathlib import Path

from typer.testing import CliRunner

from platform_sim.cli import app

FILE = Path(__file__).parents[2] / "scenarios" / "o11_do_not_sleep_into_the_limit.toml"


def test_outlast_scenario_plays_a_file() -> None:
    """With the product that the command line joins it to."""
    result = CliRunner().invoke(app, ["scenario", str(FILE)])

    assert (result.exit_code, result.stdout.splitlines()[-1]) == (0, "1 scenario: 1 passed")


def test_outlast_names_the_command_in_its_help() -> None:
    """Next to the others."""
    assert "scenario" in CliRunner().invoke(app, ["--help"]).stdout
