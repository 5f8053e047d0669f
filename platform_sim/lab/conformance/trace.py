"""A trace: what was observed of one scenario on a real runtime, read from JSON lines.

Rules: one object a line with `scenario` (the same in all), `t` (seconds since the client's first
byte or the dispatch), `src` and `event`; every other member is a field of the event. What must be
in a line for the scenario to be played again (a path, how a client left) is checked here, and so is
that nothing stands there that would be passed over; an error names line and field.

Not here: the words (`words`), what is asked of the app again (`plan`), comparing (`compare`).
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from platform_sim.host.errors import LaunchError
from platform_sim.lab.conformance.words import FIELDS, Leaving, Source, Word

__all__ = ["BadTrace", "Leaving", "Source", "Trace", "TraceEvent", "Word", "read_trace"]

_COMMON = ("scenario", "t", "src", "event")
_METHOD = re.compile("[A-Z]+")


class BadTrace(LaunchError):
    """A file is no trace; the message names its line and field."""

    def __init__(self, file: str, line: int, member: str, problem: str) -> None:
        super().__init__(f"{file}, line {line}, {member}: {problem}")
        self.line = line
        self.member = member


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceEvent:
    """One event, recorded or emulated.

    Attributes:
        at_s: Seconds since the client's first byte, or since the dispatch.
        source: Who saw it.
        name: What it was.
        fields: What else was seen.
        line: Its line in the file; 0 when it was emulated.
    """

    at_s: float
    source: Source
    name: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    line: int = 0

    def __str__(self) -> str:
        return f"{self.source} {self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Everything observed of one scenario, in order of time.

    Attributes:
        scenario: Its name.
        file: Where it was read, for messages.
        events: The events.
    """

    scenario: str
    file: str
    events: tuple[TraceEvent, ...]

    @property
    def end_s(self) -> float:
        """When the observation ended: what did not happen by then did not happen."""
        return max(event.at_s for event in self.events)

    def of(self, source: Source, *names: str) -> tuple[TraceEvent, ...]:
        """Return the events of these names that a source saw, in order."""
        return tuple(
            event for event in self.events if event.source is source and event.name in names
        )


def read_trace(content: bytes, file: str) -> Trace:
    """Read a trace.

    Args:
        content: The file's bytes.
        file: Its name, for messages.

    Raises:
        BadTrace: A line is no event, or the file has none.
    """
    read = [_read_line(line, number, file) for number, line in _lines(content, file)]
    if not read:
        raise BadTrace(file, 1, "scenario", "the file has no event")
    scenario, _ = read[0]
    for name, event in read:
        if name != scenario:
            problem = f"{name!r}, but the first line says {scenario!r}: one file, one scenario"
            raise BadTrace(file, event.line, "scenario", problem)
    events = sorted((event for _, event in read), key=lambda event: event.at_s)
    return Trace(scenario=scenario, file=file, events=tuple(events))


def _lines(content: bytes, file: str) -> Iterator[tuple[int, str]]:
    for number, raw in enumerate(content.split(b"\n"), start=1):
        try:
            line = raw.decode()
        except UnicodeDecodeError:
            raise BadTrace(file, number, "line", "is not UTF-8") from None
        if line.strip():
            yield number, line


def _read_line(line: str, number: int, file: str) -> tuple[str, TraceEvent]:
    try:
        content = json.loads(line)
    except ValueError as error:
        raise BadTrace(file, number, "line", f"is no JSON object ({error})") from None
    if not isinstance(content, dict):
        problem = f"is no JSON object but {type(content).__name__}"
        raise BadTrace(file, number, "line", problem)
    for member, problem in _common_problems(content):
        raise BadTrace(file, number, member, problem)
    event = TraceEvent(
        at_s=float(content["t"]),
        source=Source(content["src"]),
        name=content["event"],
        fields={name: value for name, value in content.items() if name not in _COMMON},
        line=number,
    )
    for member, problem in _problems(event):
        raise BadTrace(file, number, member, problem)
    return content["scenario"], event


def _common_problems(content: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Tell what is wrong with the members that every event has."""
    for member in _COMMON:
        if member not in content:
            yield member, "is missing"
    at_s, source = content["t"], content["src"]
    for member in ("scenario", "event"):
        if not isinstance(content[member], str) or not content[member]:
            yield member, f"{content[member]!r} is no name"
    if type(at_s) not in {int, float} or not math.isfinite(at_s) or at_s < 0:
        yield "t", f"{at_s!r} is no number of seconds from 0 on"
    if not isinstance(source, str) or source not in set(Source):
        yield "src", f"{source!r} is none of {', '.join(Source)}"


def _problems(event: TraceEvent) -> Iterator[tuple[str, str]]:
    """Tell what is wrong with an event that has to be played again or compared."""
    if event.source is Source.WORKER:
        return
    words = FIELDS[event.source]
    if event.name not in words:
        yield "event", f"{event.name!r} is none of {event.source}'s: {', '.join(words)}"
        return
    known = words[Word(event.name)]
    for member, value in event.fields.items():
        if member not in known:
            there_are = f"it has {', '.join(known)}" if known else "it has none"
            yield member, f"is no field of {event}; {there_are}"
        elif member in {"exceptions", "warnings"} and not isinstance(value, list):
            yield member, f"{value!r} is no list"
        elif member == "method" and not _is_text(value, _METHOD):
            yield member, f"{value!r} is no method of a request, such as GET"
        elif member == "cron" and not isinstance(value, str):
            yield member, f"{value!r} is no text"
    path, how = event.fields.get("path"), event.fields.get("how")
    if event.name == Word.REQUEST_SENT and not (isinstance(path, str) and path.startswith("/")):
        yield "path", f"{path!r} is no path of a request"
    if event.name == Word.DISCONNECT and not (isinstance(how, str) and how in set(Leaving)):
        yield "how", f"{how!r} is none of {', '.join(Leaving)}"


def _is_text(value: object, shape: re.Pattern[str]) -> bool:
    return isinstance(value, str) and shape.fullmatch(value) is not None
