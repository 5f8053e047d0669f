"""App log: what the app itself logs as JSON lines is heard, and belongs to the request it is about.

Rules: a line that is a JSON object with a text `action` becomes an event; any other line is none of
our business. Every line still goes where it went. A line is heard in the context of the code that
wrote it, so it is known whose it is. Handler and redrive log like this, and any app can.

Not here: where events go (`platform_sim.view`).
"""

import io
from collections.abc import Callable, Mapping
from typing import Any, Final, TextIO

import msgspec

from platform_sim.lifetime.emulator import Emulator
from platform_sim.lifetime.wait_until import CURRENT_INVOCATION
from platform_sim.view.event import EventKind

__all__ = ["AppLog", "Heard", "hear_app"]

Heard = Callable[[Mapping[str, Any]], None]
"""Gets the fields of one line, `action` among them."""

_LOGGERS_OWN: Final = frozenset({"event", "level", "timestamp"})


class AppLog(io.TextIOBase):
    """Stands in for a text stream.

    Args:
        stream: The real one.

    Attributes:
        heard: Told of each line that is an event; nobody is while it is None.
    """

    def __init__(self, stream: TextIO) -> None:
        self.heard: Heard | None = None
        self._stream = stream
        self._begun = ""

    def write(self, text: str, /) -> int:
        """Pass text on, and hear the lines that are complete."""
        self._stream.write(text)
        *lines, self._begun = (self._begun + text).split("\n")
        for line in lines:
            self._hear(line)
        return len(text)

    def _hear(self, line: str) -> None:
        if self.heard is None or not line.startswith("{"):
            return
        try:
            content = msgspec.json.decode(line)
        except msgspec.DecodeError:
            return
        if isinstance(content.get("action"), str):
            self.heard({key: content[key] for key in content if key not in _LOGGERS_OWN})

    def flush(self) -> None:
        """Flush the real stream."""
        self._stream.flush()

    def fileno(self) -> int:
        """Return the real stream's file descriptor."""
        return self._stream.fileno()

    def isatty(self) -> bool:
        """Tell whether the real stream is a terminal."""
        return self._stream.isatty()

    def writable(self) -> bool:
        """Tell that this can be written to."""
        return True

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The real stream's encoding."""
        return self._stream.encoding


def hear_app(emulator: Emulator, fields: Mapping[str, Any]) -> None:
    """Tell an emulator's observer what its app logged, under the request it was logged for."""
    invocation = CURRENT_INVOCATION.get()
    owner = "" if invocation is None else invocation.invocation_id
    emulator.tell(EventKind.ACTION, owner, **fields)
