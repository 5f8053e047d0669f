"""The demo's kill, as a recording tells it: nobody else can, since the process is gone.

Rules: it stands among the events of the process that was killed, on that process's own time.

Not here: the killing (`demo`), what a platform's own cut says (`platform_sim.lifetime`).
"""

from pathlib import Path

from platform_sim.view.event import EventKind
from platform_sim.view.recording import Recording, read_recording

__all__ = ["record_kill"]


def record_kill(path: Path, pid: int, *, now_s: float, under_way: int) -> None:
    """Add the kill of the web process to a recording.

    Args:
        path: The recording; made if it is not there.
        pid: The process that was killed.
        now_s: When, in epoch seconds.
        under_way: How many deliveries it was at.
    """
    origin = f"web.{pid}"
    with Recording(path, origin) as recording:
        started_s = 0.0  # what is not known to have started counts from the epoch
        for line in read_recording(path).lines:
            if line.origin == origin and line.kind == EventKind.STARTED:
                started_s = line.fields["wall_ms"] / 1000 - line.at_s
        text = f"killed with SIGKILL by the demo, {under_way} deliveries were under way"
        fields = {"shared_with": [], "text": text}
        recording.add(now_s - started_s, EventKind.PROCESS_KILLED, "", fields)
