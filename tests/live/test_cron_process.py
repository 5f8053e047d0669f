"""The schedule as a process: ready line, one line a run, and an end on a signal."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from platform_sim.host import cron
from platform_sim.view.event import EventKind
from platform_sim.view.recording import read_recording
from tests.support.processes import module_process, poll, ready

pytestmark = pytest.mark.live

HERE = "tests.live.test_cron_process"


class Report:
    """What a scheduled function may return."""

    def as_dict(self) -> dict[str, int]:
        """Return it as JSON-able data."""
        return {"delivered": 3}


async def brief() -> Report:
    """Be done at once."""
    await asyncio.sleep(0)
    return Report()


async def odd() -> object:
    """Return what JSON has no word for, and be stopped meanwhile."""
    signal.raise_signal(signal.SIGTERM)
    return object()


async def stopping() -> Report:
    """Be stopped while running, and clean up."""
    signal.raise_signal(signal.SIGTERM)
    try:
        await asyncio.sleep(600)
    finally:
        await asyncio.sleep(0.01)
    return Report()


def lines(text: str) -> list[dict[str, Any]]:
    """Return the runs that were reported."""
    return [json.loads(line) for line in text.splitlines()]


def test_each_run_is_one_line_of_stderr_and_of_the_record(tmp_path: Path) -> None:
    """The summary is the callee's own; TERM ends the process with 0."""
    record = tmp_path / "runs.jsonl"
    options = ("--call", f"{HERE}:brief", "--every-s", "0.05", "--limit-s", "5")
    with module_process("platform_sim.host.cron", *options, "--record", str(record)) as process:
        said = ready(process)
        poll(lambda: record.exists() and record.read_text().count("run_ended") > 1)
        process.terminate()
        _, errors = process.communicate(timeout=10)

    runs = lines(errors)
    assert said == {"ready": "redrive", "pid": process.pid}
    assert process.returncode == 0
    assert [run["run"] for run in runs] == list(range(1, len(runs) + 1))
    assert runs[0]["summary"] == {"delivered": 3}
    recorded = read_recording(record).lines
    assert [line.fields["run"] for line in recorded if line.kind == EventKind.RUN_ENDED] == [
        run["run"] for run in runs
    ]
    assert [(line.kind, line.invocation_id) for line in recorded[:3]] == [
        (EventKind.STARTED, ""),
        (EventKind.RUN_STARTED, "run 1"),
        (EventKind.RUN_ENDED, "run 1"),
    ]
    assert recorded[1].fields == {"name": f"{HERE}:brief"}


def test_a_stop_signal_cancels_the_run_in_flight_and_lets_it_clean_up(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What a run holds can be given back; nothing is raised."""
    cron.main(["--call", f"{HERE}:stopping", "--every-s", "60", "--limit-s", "60"])

    output = capsys.readouterr()
    assert json.loads(output.out)["ready"] == "redrive"
    assert [(run["run"], run["ending"]) for run in lines(output.err)] == [(1, "stopped")]


def test_a_run_that_will_not_end_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its exit code says so; whoever started it starts it again."""
    codes: list[int] = []

    class Left(BaseException):
        """Stands in for the end of the process."""

    def leave(code: int) -> None:
        codes.append(code)
        raise Left

    monkeypatch.setattr(os, "_exit", leave)
    schedule = cron.Schedule(every_s=60, limit_s=0.01, grace_s=0.01)
    over = asyncio.Event()

    async def call() -> None:
        while not over.is_set():
            try:
                await over.wait()
            except asyncio.CancelledError:
                continue

    async def main() -> None:
        try:
            await cron.serve(cron.Cron(call, schedule, lambda _: None))
        finally:
            over.set()

    with pytest.raises(Left):
        asyncio.run(main())

    assert codes == [70]


@pytest.mark.parametrize("given", ["0", "-1", "inf", "nan", "soon"])
def test_seconds_that_cannot_work_are_refused(
    given: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The option is named."""
    with pytest.raises(SystemExit):
        cron.main(["--call", f"{HERE}:brief", "--every-s", given, "--limit-s", "1"])

    assert "--every-s" in capsys.readouterr().err


def test_a_function_that_does_not_exist_is_named_without_a_traceback(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Exit code 2: nothing was started."""
    with pytest.raises(SystemExit) as ended:
        cron.main(["--call", f"{HERE}:nothing", "--every-s", "1", "--limit-s", "1"])

    assert ended.value.code == 2
    assert f"{HERE}:nothing" in capsys.readouterr().err


def test_a_report_that_is_not_json_is_written_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    """The schedule goes on whatever a function returns."""
    cron.main(["--call", f"{HERE}:odd", "--every-s", "60", "--limit-s", "60"])

    (run,) = lines(capsys.readouterr().err)
    assert (run["ending"], "object" in run["summary"]) == ("completed", True)


async def telling() -> None:
    """Log an event as the product does, and end the process."""
    print(json.dumps({"action": "claimed", "operation_id": "a"}), file=sys.stderr)
    os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.sleep(60)


def test_what_a_run_logs_is_recorded_under_it(tmp_path: Path) -> None:
    """With its beginning and its end."""
    record = tmp_path / "run.jsonl"
    options = ("--every-s", "60", "--limit-s", "60", "--record", str(record))
    cron.main(["--call", f"{HERE}:telling", *options])

    lines = read_recording(record).lines
    assert [(line.kind, line.invocation_id) for line in lines] == [
        (EventKind.STARTED, ""),
        (EventKind.RUN_STARTED, "run 1"),
        (EventKind.ACTION, "run 1"),
        (EventKind.RUN_ENDED, "run 1"),
    ]
    assert lines[2].fields == {"action": "claimed", "operation_id": "a"}
    assert {line.origin for line in lines} == {f"redrive.{os.getpid()}"}


def test_a_file_that_is_no_recording_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2 before anything runs."""
    path = tmp_path / "diary"
    path.write_text("dear diary")
    options = ("--every-s", "60", "--limit-s", "60", "--record", str(path))
    with pytest.raises(SystemExit) as refused:
        cron.main(["--call", f"{HERE}:telling", *options])

    assert refused.value.code == 2
    assert "is no recording" in capsys.readouterr().err
