"""What `docs/sweep.md` shows is what really comes out."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from platform_sim.cli import app

DOCUMENT = (Path(__file__).parents[2] / "docs" / "sweep.md").read_text("utf-8")
RUNS = {
    name: (command, output)
    for name, command, output in re.findall(
        r"<!-- run: (\w+) -->\n```console\n\$ \.venv/bin/outlast (.*?)\n(.*?)```",
        DOCUMENT,
        re.DOTALL,
    )
}
EXIT_CODES = {"background_task": 1, "wait_until": 1, "outbox": 0}


@pytest.mark.parametrize("name", EXIT_CODES)
def test_the_report_of_an_example_is_the_one_in_the_document(name: str) -> None:
    """To the letter: an app that loses work is shown losing it."""
    command, shown = RUNS[name]
    result = CliRunner().invoke(app, shlex.split(command))

    assert result.stdout == shown
    assert result.exit_code == EXIT_CODES[name]


def test_no_run_in_the_document_is_left_out() -> None:
    """A new one needs its exit code here."""
    assert set(EXIT_CODES) == set(RUNS)


def _block(mark: str) -> str:
    found = re.search(rf"<!-- {re.escape(mark)} -->\n```\w+\n(.*?)```", DOCUMENT, re.DOTALL)
    assert found is not None
    return found[1]


def test_the_tests_in_the_document_run_and_say_what_is_shown(tmp_path: Path) -> None:
    """In a project of their own, with nothing but outlast installed beside pytest."""
    (tmp_path / "test_orders.py").write_text(_block("test: test_orders.py"))
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-W", "error"),
            # broken where pytest-asyncio is not installed
            *("-p", "no:looptime_plugin"),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert "2 failed" in done.stdout
    assert _block("output: test_orders.py") in done.stdout
