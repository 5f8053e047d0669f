"""`outlast demo`: it prints what its witnesses say, and leaves nothing behind."""

import json
import os
import signal
from pathlib import Path

import pytest
from typer.testing import CliRunner

from platform_sim.cli import app
from tests.support.processes import alive, children, module_process, poll

pytestmark = pytest.mark.live

KEYS = [
    *("accepted", "delivered", "rejected", "lost", "duplicate_effects"),
    *("cut", "killed", "redriven", "seed", "operations"),
]


def test_the_demo_loses_nothing_and_doubles_nothing(tmp_path: Path) -> None:
    """One JSON object on stdout, progress on stderr, exit code 0; its recording tells the kill."""
    kept = str(tmp_path / "demo.rec")
    demo = CliRunner().invoke(app, ["demo", "--json", "--seed", "11", "--record", kept])

    result = json.loads(demo.stdout)
    keys = list(result)
    operations = result.pop("operations")
    redriven, cut = result.pop("redriven"), result.pop("cut")
    assert keys == KEYS
    assert result == {
        "accepted": 14,
        "delivered": 13,
        "rejected": 1,
        "lost": 0,
        "duplicate_effects": 0,
        "killed": 1,
        "seed": 11,
    }
    assert (demo.exit_code, len(operations)) == (0, 14)
    assert min(redriven, cut) > 1
    assert [one["effects"] for one in operations if one["state"] == "delivered"] == [1] * 13
    assert {one["cut"] for one in operations if "killed" in one["operation"]} == {"killed"}
    assert "sending 14 operations (seed 11)" in demo.stderr
    assert "killed with SIGKILL by the demo" in CliRunner().invoke(app, ["replay", kept]).stdout


def test_ctrl_c_ends_the_demo_and_every_process() -> None:
    """Interrupted in the middle: one line, exit code 130, nobody left."""
    with module_process("platform_sim.cli", "demo") as process:
        assert process.stderr is not None
        under_way = any("settled" in line for line in process.stderr)
        started = children(process.pid)
        os.kill(process.pid, signal.SIGINT)
        output, errors = process.communicate(timeout=30)

    assert under_way
    assert (process.returncode, output, len(started)) == (130, "", 4)
    assert errors.endswith("SIGINT: everything is stopped\n")
    assert poll(lambda: not any(alive(child) for child in started))
