"""The console script's entry."""

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[3]
START = "from platform_sim.entry import main; main()"


def started(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run code in a Python of its own."""
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_without_the_extra_it_says_what_to_install() -> None:
    """In one sentence, and no traceback."""
    done = started(f"import sys; sys.modules['typer'] = None; {START}", "--help")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "outlast: the command line needs the sim extra (there is no typer): "
        "install outlast[sim], in a clone with: pip install -c constraints.txt '.[sim]'\n"
    )


def test_another_module_that_is_missing_is_a_fault_and_shown() -> None:
    """It is no missing extra."""
    done = started(f"import sys; sys.modules['msgspec'] = None; {START}", "--help")

    assert done.returncode == 1
    assert "ModuleNotFoundError: import of msgspec halted" in done.stderr
    assert "outlast[sim]" not in done.stderr


def test_with_the_extra_it_is_the_command_line() -> None:
    """All of it."""
    done = started(START, "--help")

    assert done.returncode == 0
    assert "sweep" in done.stdout


def test_the_console_script_starts_there() -> None:
    """The package says so."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))

    assert project["project"]["scripts"] == {"outlast": "platform_sim.entry:main"}
