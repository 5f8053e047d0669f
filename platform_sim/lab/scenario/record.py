"""A played scenario as a recording, in the format that `outlast replay` shows.

Rules: each source of the story (a replica, a receiver, a client) is an origin; what is about an
operation belongs to the request it came from, by its name. Times count from the world's beginning.

Not here: the format (`platform_sim.view.recording`), the story (`story`).
"""

from contextlib import ExitStack
from pathlib import Path

from platform_sim.lab.scenario.played import Played
from platform_sim.view.event import EventKind
from platform_sim.view.recording import Recording
from platform_sim.world.clocks import EPOCH_MS

__all__ = ["record_played"]


def record_played(played: Played, path: Path) -> None:
    """Add a scenario's story to a recording.

    Raises:
        NotARecording: The file is there and is something else.
        OSError: It cannot be written.
    """
    names = {operation_id: name for name, operation_id in played.names.items()}
    with ExitStack() as open_recordings:
        recordings: dict[str, Recording] = {}
        for event in played.story.events:
            recording = recordings.get(event.source)
            if recording is None:
                recording = Recording(path, f"{played.scenario.name}: {event.source}")
                recordings[event.source] = open_recordings.enter_context(recording)
                recording.add(0.0, str(EventKind.STARTED), "", {"wall_ms": EPOCH_MS})
            about = {} if event.operation_id is None else {"operation_id": event.operation_id}
            request = names.get(event.operation_id or "", "")
            recording.add(event.at_s, event.kind, request, {**about, **event.fields})
