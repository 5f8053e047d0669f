"""A recording in words: one chapter for each request, scheduled run and process, in order.

Rules: times are on one axis: each process says when it started by the wall clock, and its events
count from there. Within a chapter they count from its first event. An operation that a request
accepted may be worked on elsewhere later; asked for that request, one sees those chapters too.

Not here: the file (`recording`), colours and pages.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from platform_sim.view.event import EventKind
from platform_sim.view.phrases import phrase
from platform_sim.view.recording import Recorded

__all__ = ["Chapter", "Entry", "as_text", "chapters", "concerning"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One event.

    Attributes:
        at_s: Epoch seconds, or seconds since its process started if that is not known.
        kind: Which fact.
        text: The fact, for people.
        operation_id: The operation it is about; None: no particular one.
    """

    at_s: float
    kind: str
    text: str
    operation_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Chapter:
    """Everything about one request, run or process.

    Attributes:
        origin: The process.
        invocation_id: The request or run; empty for the process itself.
        entries: In the order of their times.
    """

    origin: str
    invocation_id: str
    entries: tuple[Entry, ...]

    @property
    def operation_ids(self) -> frozenset[str]:
        """The operations it is about."""
        return frozenset(entry.operation_id for entry in self.entries if entry.operation_id)

    @property
    def idle(self) -> bool:
        """Whether it is a scheduled run that was completed and worked on no operation."""
        return (
            self.invocation_id.startswith("run ")
            and not self.operation_ids
            and any(entry.text == "run completed" for entry in self.entries)
        )


def chapters(lines: Iterable[Recorded]) -> list[Chapter]:
    """Return the chapters of a recording, by the time of their first event."""
    started_s: dict[str, float] = {}
    found: dict[tuple[str, str], list[Entry]] = {}
    for line in lines:
        if line.kind == EventKind.STARTED:
            started_s[line.origin] = line.fields.get("wall_ms", 0) / 1000
        entry = Entry(
            at_s=started_s.get(line.origin, 0.0) + line.at_s,
            kind=line.kind,
            text=phrase(line.kind, line.fields),
            operation_id=_operation_id(line.fields),
        )
        found.setdefault((line.origin, line.invocation_id), []).append(entry)
    made = [
        Chapter(
            origin=origin,
            invocation_id=invocation_id,
            entries=tuple(sorted(entries, key=lambda entry: entry.at_s)),
        )
        for (origin, invocation_id), entries in found.items()
    ]
    return sorted(made, key=lambda chapter: chapter.entries[0].at_s)


def _operation_id(fields: Mapping[str, Any]) -> str | None:
    operation_id = fields.get("operation_id")
    return operation_id if isinstance(operation_id, str) else None


def concerning(told: Sequence[Chapter], invocation_id: str) -> list[Chapter]:
    """Return the chapters of one request, and what else was done for its operations.

    Of other chapters only the entries about these operations are kept.
    """
    own = [chapter for chapter in told if chapter.invocation_id == invocation_id]
    operations = frozenset().union(*(chapter.operation_ids for chapter in own))
    related = []
    for chapter in told:
        if chapter in own:
            related.append(chapter)
            continue
        entries = tuple(entry for entry in chapter.entries if entry.operation_id in operations)
        if entries and operations:
            related.append(
                Chapter(
                    origin=chapter.origin,
                    invocation_id=chapter.invocation_id,
                    entries=entries,
                )
            )
    return related if own else []


def as_text(told: Iterable[Chapter]) -> Iterator[str]:
    """Yield the lines of a text timeline."""
    for chapter in told:
        first = chapter.entries[0]
        title = f"request {chapter.invocation_id}" if chapter.invocation_id else "process"
        if chapter.invocation_id.startswith("run "):
            title = chapter.invocation_id
        yield f"{title} ({chapter.origin}) from {_clock(first.at_s)}"
        for entry in chapter.entries:
            yield f"  +{entry.at_s - first.at_s:9.3f}  {entry.text}"
        yield ""


def _clock(at_s: float) -> str:
    moment = datetime.fromtimestamp(at_s, UTC)
    return moment.isoformat(sep=" ", timespec="milliseconds").replace("+00:00", " UTC")
