"""The emulator against the recorded runtime: every claimed scenario, and every way to differ."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from platform_sim.lab.conformance.scenarios import app_for, reason_not_claimed, recorded
from platform_sim.lab.conformance.trace import Trace, TraceEvent
from platform_sim.lab.conformance.verdict import judge

CLAIMED = [trace for trace in recorded() if reason_not_claimed(trace) is None]
CAUSES = {
    "request:sent",
    "disconnect",
    "SIGTERM sent",
    "sched:dispatched",
    "observation:end",
}


@pytest.mark.parametrize("trace", CLAIMED, ids=lambda trace: trace.scenario)
def test_a_claimed_scenario_agrees_with_its_trace(trace: Trace) -> None:
    """Order, times, fields and absences, by the app as it is written."""
    app = app_for(trace)
    assert app is not None

    verdict = judge(trace, app)

    assert [difference.text for difference in verdict.differences] == []


def changed(trace: Trace) -> Iterator[tuple[str, Trace]]:
    """Change one thing of a trace's outcome at a time: leave it out, double it, move it."""
    for number, event in enumerate(trace.events):
        if event.name in CAUSES:
            continue
        before, after = trace.events[:number], trace.events[number + 1 :]
        yield f"without {event}", _with(trace, *before, *after)
        yield f"twice {event}", _with(trace, *before, event, event, *after)
        moved = replace(event, at_s=event.at_s + 0.7)
        yield f"later {event}", _with(trace, *before, moved, *after)


def _with(trace: Trace, *events: TraceEvent) -> Trace:
    return replace(trace, events=tuple(sorted(events, key=lambda event: event.at_s)))


@pytest.mark.parametrize(
    "trace",
    [trace for trace in CLAIMED if trace.scenario != "s20_many"],
    ids=lambda trace: trace.scenario,
)
def test_no_event_of_a_trace_can_change_unseen(trace: Trace) -> None:
    """The comparison would notice any of them; 5,000 tasks once are enough."""
    app = app_for(trace)
    assert app is not None

    unseen = [what for what, other in changed(trace) if judge(other, app).agrees]

    assert unseen == []


def outlast(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the command line as a user does."""
    return subprocess.run(
        [sys.executable, "-m", "platform_sim.cli", "conformance", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


OWN_APP = """
import asyncio

async def work(log):
    log("mail:start")
    await asyncio.sleep(2.5)
    log("mail:done")

async def app(scope, receive, send):
    log = scope["extensions"]["outlast.conformance"]["log"]
    log("handler:start")
    scope["extensions"]["outlast.lifetime"]["wait_until"](work(log))
    await send({"type": "http.response.start", "status": 202, "headers": []})
    await send({"type": "http.response.body", "body": b"accepted"})
"""
OWN_TRACE: list[tuple[float, str, str, dict[str, Any]]] = [
    (0.0, "client", "request:sent", {"path": "/mails"}),
    (0.02, "worker", "handler:start", {}),
    (0.02, "worker", "mail:start", {}),
    (0.02, "client", "response:headers", {"status": 202}),
    (0.02, "client", "response:end", {"body": "accepted"}),
    (2.53, "worker", "mail:done", {}),
    (2.53, "tail", "invocation:reported", {"outcome": "ok", "status": 202}),
    (5.0, "driver", "observation:end", {}),
]


@pytest.mark.live
def test_the_command_holds_a_trace_and_an_app_of_ones_own_against_each_other(
    tmp_path: Path,
) -> None:
    """From a project's own folder; 0 when they agree, 1 when not, 2 for what is no trace."""
    (tmp_path / "mails.py").write_text(OWN_APP)
    events = [
        {"scenario": "mails", "t": at_s, "src": source, "event": name, **fields}
        for at_s, source, name, fields in OWN_TRACE
    ]
    good = "\n".join(json.dumps(event) for event in events)
    (tmp_path / "good.jsonl").write_text(good)
    (tmp_path / "bad.jsonl").write_text(good.replace("2.53", "2.7"))
    (tmp_path / "none.jsonl").write_text(good.replace('"tail"', '"tale"'))

    runs = [
        outlast("--trace", f"{name}.jsonl", "--app", "mails:app", folder=tmp_path)
        for name in ("good", "bad", "none")
    ]

    assert [run.returncode for run in runs] == [0, 1, 2]
    assert "mails     NO      worker mail:done: recorded at 2.70 s, emulated at 2.52 s" in (
        runs[1].stdout
    )
    assert runs[2].stderr == (
        "outlast: none.jsonl, line 7, src: 'tale' is none of worker, client, tail, driver, "
        "process\n"
    )


@pytest.mark.live
def test_the_command_prints_one_object_for_the_traces_that_come_along(tmp_path: Path) -> None:
    """Exit code 0: everything that is claimed agrees."""
    run = outlast("--json", folder=tmp_path)

    table = json.loads(run.stdout)
    assert (run.returncode, run.stderr) == (0, "")
    assert (table["agree"], table["disagree"], table["not_claimed"]) == (len(CLAIMED), 0, 14)
