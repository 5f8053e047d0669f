"""A recording: the file in which every process of a run writes what happened, and reading it back.

Rules: JSON lines; the first is a header with the format's version. Each process appends whole lines
with one write each (`O_APPEND`), so that processes can share a file and one that is killed leaves
whole lines behind. Another run may be added to a file that is a recording already; a file that is
anything else is left alone. Whoever reads passes over lines that are broken, and says so.

Not here: what the events mean (`event`), how they look to people (`timeline`).
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import msgspec

from platform_sim.view.event import Event

__all__ = ["VERSION", "NotARecording", "Reading", "Recorded", "Recording", "read_recording"]

VERSION: Final = 1
"""The format's version; a reader refuses one that is newer."""

_HEADER_KIND: Final = "recording"
_HEADER: Final = msgspec.json.encode({"kind": _HEADER_KIND, "version": VERSION}) + b"\n"
_LONGEST_HEADER_BYTES: Final = 4096


class NotARecording(Exception):
    """A file is no recording, or of a version this program does not know."""


class Recorded(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a recording.

    Attributes:
        origin: The process that tells it, such as `web-1`.
        at_s: Seconds since that process started to record.
        kind: Which fact: of `EventKind`, or a word of whoever records something of their own.
        invocation_id: The request or run it belongs to; empty for facts about the process.
        fields: JSON values.
    """

    origin: str
    at_s: float
    kind: str
    invocation_id: str = ""
    fields: Mapping[str, Any] = {}


class _Header(msgspec.Struct):
    kind: str
    version: int


class Recording:
    """An observer that appends events to a recording, which is made if it is not there.

    Args:
        path: The file.
        origin: What this process is called in it.

    Raises:
        NotARecording: The file is there and is something else.
        OSError: It cannot be opened.
    """

    def __init__(self, path: Path, origin: str) -> None:
        _make(path)
        self._origin = origin
        self._encoder = msgspec.json.Encoder(enc_hook=str)
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND)

    def observe(self, event: Event) -> None:
        """Append an event."""
        self.add(event.at_s, str(event.kind), event.invocation_id, event.fields)

    def add(self, at_s: float, kind: str, invocation_id: str, fields: Mapping[str, Any]) -> None:
        """Append a fact."""
        line = Recorded(
            origin=self._origin, at_s=at_s, kind=kind, invocation_id=invocation_id, fields=fields
        )
        os.write(self._fd, self._encoder.encode(line) + b"\n")

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _make(path: Path) -> None:
    """Make an empty recording, whole at once, unless somebody else has made it."""
    if not path.exists():
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        draft.write_bytes(_HEADER)
        try:
            with suppress(FileExistsError):
                os.link(draft, path)
        finally:
            draft.unlink()
    if path.is_file() and path.stat().st_size == 0:
        path.write_bytes(_HEADER)  # made by somebody as a place to record to
    with path.open("rb") as lines:
        _check_header(lines.readline(_LONGEST_HEADER_BYTES), path)


def _check_header(line: bytes, path: Path) -> None:
    try:
        header = msgspec.json.decode(line, type=_Header)
    except msgspec.MsgspecError:
        header = None
    if header is None or header.kind != _HEADER_KIND:
        raise NotARecording(f"{path} is no recording: its first line is not a recording's header")
    if header.version > VERSION:
        raise NotARecording(
            f"{path} is a recording of version {header.version}; this program knows versions up to "
            f"{VERSION}: use the program that made it, or a newer one"
        )


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """What a recording says.

    Attributes:
        lines: In the order in which they were written.
        notes: What could not be read, for people.
    """

    lines: tuple[Recorded, ...]
    notes: tuple[str, ...]


def read_recording(path: Path) -> Reading:
    """Read a recording.

    Raises:
        NotARecording: The file is none, or cannot be read.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise NotARecording(f"{path} cannot be read: {error.strerror or error}") from error
    header, _, rest = content.partition(b"\n")
    _check_header(header, path)
    decoder = msgspec.json.Decoder(Recorded)
    lines, notes = [], []
    numbered = enumerate(rest.split(b"\n"), start=2)
    for number, line in numbered:
        if not line.strip():
            continue
        try:
            lines.append(decoder.decode(line))
        except msgspec.MsgspecError as error:
            notes.append(f"line {number} is broken and was passed over ({error})")
    return Reading(lines=tuple(lines), notes=tuple(notes))
