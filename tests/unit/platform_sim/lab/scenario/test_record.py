"""A played scenario can be replayed like any run."""

from pathlib import Path

from typer.testing import CliRunner

from platform_sim import cli
from platform_sim.view.recording import read_recording
from platform_sim.view.timeline import as_text, chapters, concerning

SCENARIO = Path(__file__).parents[5] / "tests/scenarios/o11_do_not_sleep_into_the_limit.toml"


def test_a_scenario_is_recorded_with_what_each_part_did(tmp_path: Path) -> None:
    """Sources are origins, operations belong to the request they came from."""
    record = tmp_path / "run.jsonl"
    result = CliRunner().invoke(cli.app, ["scenario", str(SCENARIO), "--record", str(record)])

    assert result.exit_code == 0, result.output
    reading = read_recording(record)
    assert reading.notes == ()
    requests = {line.invocation_id for line in reading.lines} - {""}
    assert len(requests) >= 1
    told = concerning(chapters(reading.lines), min(requests))
    text = "\n".join(as_text(told))
    assert "attempt_started" in text
    assert " from 2026-01-01 00:00:00.000 UTC" in text
