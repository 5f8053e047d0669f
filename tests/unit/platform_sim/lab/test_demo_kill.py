"""The demo's SIGKILL stands in the recording, in the chapter of the process it met."""

from pathlib import Path

from platform_sim.lab.demo_kill import record_kill
from platform_sim.view.event import EventKind
from platform_sim.view.recording import Recording, read_recording
from platform_sim.view.timeline import as_text, chapters


def told(path: Path) -> list[str]:
    """Return the recording's timeline."""
    return list(as_text(chapters(read_recording(path).lines)))


def test_the_kill_is_the_last_of_the_process_it_met(tmp_path: Path) -> None:
    """On the same axis of time."""
    path = tmp_path / "demo.rec"
    started = {"profile": "workers", "allowance_s": 3.0, "cut": "cancel", "wall_ms": 60_000}
    with Recording(path, "web.7") as web:
        web.add(0.0, EventKind.STARTED, "", started)
    record_kill(path, 7, now_s=65.25, under_way=3)

    assert told(path) == [
        "process (web.7) from 1970-01-01 00:01:00.000 UTC",
        "  +    0.000  starts: profile workers, allowance 3 s, cut cancel",
        "  +    5.250  killed with SIGKILL by the demo, 3 deliveries were under way",
        "",
    ]


def test_a_process_that_has_recorded_nothing_is_told_of_all_the_same(tmp_path: Path) -> None:
    """By the wall clock."""
    path = tmp_path / "demo.rec"
    record_kill(path, 7, now_s=65.25, under_way=0)

    assert told(path)[0] == "process (web.7) from 1970-01-01 00:01:05.250 UTC"
