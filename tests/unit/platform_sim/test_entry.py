"""The console script's entry."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from platform_sim.entry import main

ROOT = Path(__file__).parents[3]
START = "from platform_sim.entry import main; main()"


def test_without_the_extra_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In one sentence, and no traceback."""
    monkeypatch.delitem(sys.modules, "platform_sim.cli", raising=False)
    monkeypatch.setitem(sys.modules, "typer", None)
    with pytest.raises(SystemExit) as ended:
        main()
    out, err = capsys.readouterr()

    assert (ended.value.code, out) == (2, "")
    assert err == (
        "outlast: the command line needs the sim extra (there is no typer): "
        "install outlast[sim], in a clone with: pip install -c constraints.txt '.[sim]'\n"
    )


def test_another_module_that_is_missing_is_a_fault_and_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is no missing extra."""
    monkeypatch.setitem(sys.modules, "platform_sim.cli", None)

    with pytest.raises(ModuleNotFoundError, match=r"platform_sim\.cli"):
        main()


def test_with_the_extra_it_is_the_command_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All of it."""
    monkeypatch.setattr(sys, "argv", ["outlast", "--help"])
    with pytest.raises(SystemExit) as ended:
        main()

    assert ended.value.code == 0
    assert "sweep" in capsys.readouterr().out


def test_nothing_is_imported_before_its_absence_can_be_told() -> None:
    """In a Python of its own, where nothing is loaded yet."""
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.modules['typer'] = None; {START}", "--help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 2
    assert done.stderr.startswith("outlast: ")


def test_the_console_script_starts_there() -> None:
    """The package says so."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))

    assert project["project"]["scripts"] == {"outlast": "platform_sim.entry:main"}
