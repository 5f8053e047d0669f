"""Observers: what they keep, and what they write."""

import json
from pathlib import Path
from typing import Any

from platform_sim.view.event import Event, EventKind
from platform_sim.view.recorder import JsonLines, Recorder, Silent, Tee


def event(at_s: float, kind: EventKind = EventKind.REQUEST, **fields: Any) -> Event:
    """Return an event of request 1."""
    return Event(at_s=at_s, kind=kind, invocation_id="1", fields=fields)


def test_a_recorder_keeps_all_in_order_and_picks_by_kind() -> None:
    """The record is what tests and timelines read."""
    recorder = Recorder()
    events = [event(0.0), event(1.0, EventKind.CUT), event(2.0, EventKind.CONTEXT_END)]
    for each in events:
        recorder.observe(each)

    assert recorder.events == events
    assert recorder.of(EventKind.CUT, EventKind.CONTEXT_END) == events[1:]


def test_a_tee_tells_everybody_and_silence_tells_nobody() -> None:
    """In the order given."""
    first, second = Recorder(), Recorder()

    Tee(first, Silent(), second).observe(event(0.0))

    assert first.events == second.events == [event(0.0)]


def test_json_lines_are_whole_after_every_event(tmp_path: Path) -> None:
    """A process that is killed leaves each event it has told as one line."""
    path = tmp_path / "record.jsonl"
    with JsonLines(path.open("ab")) as lines:
        lines.observe(event(0.25, name="GET /"))
        written = path.read_text()
        lines.observe(event(1.5, EventKind.CONTEXT_END, reason="done"))

    assert json.loads(written) == {
        "at_s": 0.25,
        "kind": "request",
        "invocation_id": "1",
        "fields": {"name": "GET /"},
    }
    assert [json.loads(line)["kind"] for line in path.read_text().splitlines()] == [
        "request",
        "context_end",
    ]
