"""`outlast replay`: a recording as text, and what is said when it is none."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from platform_sim import cli
from platform_sim.host.errors import LaunchError, OptionError
from platform_sim.view.recording import Recording


def run(*arguments: str) -> tuple[str, str]:
    """Run the command; return what it printed and what it noted."""
    result = CliRunner().invoke(cli.app, ["replay", *arguments])
    if result.exception is not None:
        raise result.exception
    return result.stdout, result.stderr


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """Return a recording of two requests and two runs, one of which did nothing."""
    path = tmp_path / "run.jsonl"
    with Recording(path, "web") as recording:
        recording.add(0.0, "started", "", {"wall_ms": 0, "profile": "w", "cut": "kill"})
        recording.add(1.0, "request", "1", {"name": "GET /one"})
        recording.add(2.0, "request", "2", {"name": "GET /two"})
        recording.add(3.0, "run_ended", "run 1", {"ending": "completed"})
        recording.add(4.0, "run_ended", "run 2", {"ending": "failed", "error": "E"})
    return path


def test_all_is_shown_and_idle_runs_are_counted(recorded: Path) -> None:
    """They would drown the rest."""
    output, notes = run(str(recorded))

    titles = [line.split(" from ")[0] for line in output.splitlines() if " from " in line]
    assert titles == ["process (web)", "request 1 (web)", "request 2 (web)", "run 2 (web)"]
    assert "1 scheduled runs found nothing to do" in output
    assert notes == ""


def test_one_request_can_be_asked_for(recorded: Path) -> None:
    """And one that is not there is answered with those that are."""
    output, _ = run(str(recorded), "--request", "2")

    assert "GET /two" in output
    assert "GET /one" not in output
    with pytest.raises(OptionError, match=r"has no request '9'\. It has: 1, 2, run 1, run 2"):
        run(str(recorded), "--request", "9")


def test_an_empty_recording_says_so(tmp_path: Path) -> None:
    """And has no request to show."""
    path = tmp_path / "run.jsonl"
    Recording(path, "web").close()

    assert run(str(path))[0] == f"{path} is a recording in which nothing has happened yet\n"
    with pytest.raises(OptionError, match="It has none"):
        run(str(path), "--request", "1")


def test_broken_lines_are_noted_on_stderr(recorded: Path) -> None:
    """The rest is shown."""
    with recorded.open("ab") as file:
        file.write(b'{"origin": "w')

    output, notes = run(str(recorded))

    assert "GET /one" in output
    assert notes.startswith("note: line 7 is broken")


def test_what_is_no_recording_is_one_sentence(tmp_path: Path) -> None:
    """Exit code 2, by the command line's main."""
    path = tmp_path / "photo.jpg"
    path.write_bytes(b"\xff\xd8\xff")

    with pytest.raises(LaunchError, match=r"photo\.jpg is no recording"):
        run(str(path))
