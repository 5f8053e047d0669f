"""Recordings: one file for many processes, read back line by line, whatever became of them."""

import json
import multiprocessing
from pathlib import Path

import pytest

from platform_sim.view.event import Event, EventKind
from platform_sim.view.recording import (
    VERSION,
    NotARecording,
    Recorded,
    Recording,
    read_recording,
)


def event(at_s: float = 1.0, **fields: object) -> Event:
    """Return some event."""
    return Event(at_s=at_s, kind=EventKind.REQUEST, invocation_id="7", fields=fields)


def test_what_is_recorded_is_read_back(tmp_path: Path) -> None:
    """With the process that told it."""
    path = tmp_path / "run.jsonl"
    with Recording(path, "web-1") as recording:
        recording.observe(event(name="GET /"))
        recording.add(2.0, "custom", "", {"path": path})

    reading = read_recording(path)

    assert reading.lines == (
        Recorded(
            origin="web-1", at_s=1.0, kind="request", invocation_id="7", fields={"name": "GET /"}
        ),
        Recorded(origin="web-1", at_s=2.0, kind="custom", fields={"path": str(path)}),
    )
    assert reading.notes == ()
    assert list(tmp_path.iterdir()) == [path]


def append(path: Path, origin: str) -> None:
    """Record a hundred events."""
    with Recording(path, origin) as recording:
        for number in range(100):
            recording.observe(event(number, name="x" * 500))


def test_processes_share_a_file_and_no_line_is_mixed_with_another(tmp_path: Path) -> None:
    """Each line is one append; whoever comes first makes the file, with one header."""
    path = tmp_path / "run.jsonl"
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=append, args=(path, f"web-{n}")) for n in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()

    reading = read_recording(path)

    assert [writer.exitcode for writer in writers] == [0] * 4
    assert reading.notes == ()
    times = {f"web-{n}": [float(at_s) for at_s in range(100)] for n in range(4)}
    assert {
        origin: [line.at_s for line in reading.lines if line.origin == origin] for origin in times
    } == times


def test_another_run_is_added_to_a_recording(tmp_path: Path) -> None:
    """Under the header that is there."""
    path = tmp_path / "run.jsonl"
    append(path, "first")
    append(path, "second")

    lines = path.read_text().splitlines()

    assert [json.loads(line)["kind"] for line in lines].count("recording") == 1
    assert len(lines) == 201


def test_an_empty_file_becomes_a_recording(tmp_path: Path) -> None:
    """Somebody has made a place for it."""
    path = tmp_path / "run.jsonl"
    path.touch()

    append(path, "web")

    assert len(read_recording(path).lines) == 100


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"hello\n", "is no recording: its first line"),
        (b'{"kind": "request", "version": 1}\n', "is no recording"),
        (b'{"at_s": 1}\n', "is no recording"),
        (b"\xff\x00", "is no recording"),
        (b'{"kind": "recording", "version": 99}\n', "of version 99; this program knows versions"),
    ],
)
def test_a_file_that_is_something_else_is_left_alone(
    tmp_path: Path, content: bytes, message: str
) -> None:
    """For writing and for reading."""
    path = tmp_path / "run.jsonl"
    path.write_bytes(content)

    with pytest.raises(NotARecording, match=message):
        Recording(path, "web")
    with pytest.raises(NotARecording, match=message):
        read_recording(path)

    assert path.read_bytes() == content


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """A missing one, and a directory."""
    with pytest.raises(NotARecording, match=r"none\.jsonl cannot be read: No such file"):
        read_recording(tmp_path / "none.jsonl")
    with pytest.raises(NotARecording, match="cannot be read: Is a directory"):
        read_recording(tmp_path)
    with pytest.raises(OSError, match="Is a directory"):
        Recording(tmp_path, "web")


def test_broken_lines_are_passed_over_with_a_note(tmp_path: Path) -> None:
    """A disk that was full, a process that was killed while it wrote."""
    path = tmp_path / "run.jsonl"
    with Recording(path, "web") as recording:
        recording.observe(event(name="a"))
    with path.open("ab") as file:
        file.write(b'{"origin": "web", "at_s": "soon"}\n\n{"origin": "web", "at_')

    reading = read_recording(path)

    assert VERSION == 1
    assert [line.fields for line in reading.lines] == [{"name": "a"}]
    assert [note.partition(" and")[0] for note in reading.notes] == [
        "line 3 is broken",
        "line 5 is broken",
    ]
