"""`outlast serve`: what cannot work is refused with its remedy; the rest becomes an order."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from platform_sim import cli
from platform_sim.host.errors import OptionError, PortError
from platform_sim.host.front import command
from platform_sim.host.front.messages import Order, read_order
from platform_sim.lifetime.profile import CLOUD_RUN, WORKERS, CutMode
from platform_sim.view.recording import read_recording


@pytest.fixture
def ordered(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Order, Path | None]]:
    """Collect the orders instead of serving."""
    seen: list[tuple[Order, Path | None]] = []

    async def serve(
        order: Order, listener: Any, up: Callable[[], None], *, reload_from: Path | None = None
    ) -> str:
        up()
        seen.append((order, reload_from))
        return "SIGINT"

    monkeypatch.setattr(command, "serve_behind_front", serve)
    return seen


def run(*arguments: str) -> str:
    """Run the command line; return what it printed, raising what it raised."""
    result = CliRunner().invoke(cli.app, ["serve", "main:app", "--port", "0", *arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def test_the_workers_profile_is_served_unless_told_otherwise(
    ordered: list[tuple[Order, Path | None]],
) -> None:
    """What is in force is said before the address."""
    output = run()

    ((order, reload_from),) = ordered
    assert (order.app, order.profile, order.record, order.sleeps) == (
        "main:app",
        WORKERS,
        None,
        False,
    )
    assert (order.stall_s, order.recycle_after, reload_from) == (0.1, 1000, None)
    lines = output.splitlines()
    assert lines[0] == f"profile workers: {WORKERS.summary}"
    assert lines[1] == "in force: allowance 30 s, cut cancel"
    assert lines[2].startswith("main:app at http://127.0.0.1:")
    assert lines[3] == "SIGINT: stopped"


def test_every_option_reaches_the_workers(
    ordered: list[tuple[Order, Path | None]], tmp_path: Path
) -> None:
    """And survives the way to another process."""
    record = tmp_path / "run.jsonl"
    output = run(
        *("--profile", "cloud-run", "--ceiling-s", "2", "--cut", "kill", "--freeze", "process"),
        *("--reload", "--record", str(record), "--stall-s", "0", "--recycle-after", "7"),
        "--access-log",
    )

    ((order, reload_from),) = ordered
    assert (order.profile.name, order.profile.allowance_s) == (CLOUD_RUN.name, 2.0)
    assert (order.profile.cut, order.sleeps, order.access_log) == (CutMode.KILL, True, True)
    assert (order.record, order.stall_s, order.recycle_after) == (str(record), None, 7)
    assert reload_from == Path.cwd()
    assert "after 7 of them the worker process is replaced" in output
    assert "the worker is stopped (SIGSTOP)" in output
    assert read_recording(record).lines == ()
    assert read_order(msgspec.json.encode(order).decode()) == order


def test_no_ceiling_is_said(ordered: list[tuple[Order, Path | None]]) -> None:
    """The generic profile has none."""
    assert "in force: allowance no ceiling, cut cancel" in run("--profile", "generic")
    assert len(ordered) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--profile", "moon"), "--profile: no profile 'moon'; there are: workers, .*lists them"),
        (("--profile", "none.toml"), "--profile: profile none.toml: No such file"),
        (("--ceiling-s", "-1"), "--ceiling-s: -1 s cannot work. Give seconds, such as 30."),
        (("--ceiling-s", "nan"), "--ceiling-s: nan s cannot work"),
        (("--cut", "maim"), "--cut: there is no 'maim'. Use one of cancel, kill, process."),
        (("--cut", "freeze"), "--cut: there is no 'freeze'"),
        (("--freeze", "hard"), "--freeze: there is no 'hard'. Use one of requests, process."),
        (("--freeze", "process"), "--freeze: profile workers never freezes. Leave it out, or"),
        (("--port", "70000"), "--port: 70000 is no port. Use 0 "),
        (("--stall-s", "-1"), "--stall-s: -1 s cannot work"),
        (("--recycle-after", "0"), "--recycle-after: 0 is too few. Give 1 or more."),
        (("--record", "/"), "--record: .*Name a new file, or a recording."),
    ],
)
def test_what_cannot_work_is_named_with_its_remedy(
    ordered: list[tuple[Order, Path | None]], arguments: tuple[str, ...], message: str
) -> None:
    """Before anything is started."""
    with pytest.raises(OptionError, match=message):
        run(*arguments)

    assert ordered == []


def test_a_file_that_is_no_recording_is_left_alone(
    ordered: list[tuple[Order, Path | None]], tmp_path: Path
) -> None:
    """It may be somebody's."""
    path = tmp_path / "diary.txt"
    path.write_text("dear diary\n")

    with pytest.raises(OptionError, match=r"--record: .*is no recording"):
        run("--record", str(path))

    assert (ordered, path.read_text()) == ([], "dear diary\n")


def test_an_address_of_another_machine_cannot_be_bound(
    ordered: list[tuple[Order, Path | None]],
) -> None:
    """One sentence, as for a port that is taken."""
    with pytest.raises(PortError, match="cannot be used"):
        run("--host", "192.0.2.1")

    assert ordered == []
