"""Evidence is read as it is, also when it is damaged."""

from pathlib import Path

from platform_sim.lab.evidence import read_record


def test_a_line_that_a_killed_process_left_half_written_is_no_event(tmp_path: Path) -> None:
    """The events around it stand."""
    record = tmp_path / "web.jsonl"
    record.write_bytes(b'{"kind": "request"}\n{"kind": "respo\xff\n\n{"kind": "started"}\n')

    assert [event["kind"] for event in read_record(record)] == ["request", "started"]
