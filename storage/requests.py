"""The store's requests, as frozen data.

A request carries its condition and its changes as data; a transport renders or interprets them.
What each operation on a marker asks for is in `builders`.
"""

from dataclasses import dataclass
from typing import TypeAlias

from storage.attributes import Row
from storage.changes import Change
from storage.conditions import Condition
from storage.states import Event

__all__ = ["DueCursor", "PutMarker", "QueryDue", "ReadMarker", "Request", "UpdateMarker", "writes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PutMarker:
    """Write a whole row if the condition holds; a refusal returns the row that was there.

    `event` says what the write is for; a transport renders nothing of it.
    """

    table_name: str
    event: Event
    row: Row
    condition: Condition


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateMarker:
    """Change a row if the condition holds; returns the new row, a refusal the present one.

    `event` says what the write is for; a transport renders nothing of it.
    """

    table_name: str
    event: Event
    operation_id: str
    condition: Condition
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadMarker:
    """Read one row, consistently."""

    table_name: str
    operation_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DueCursor:
    """The last key of a page; the next page starts after it."""

    operation_id: str
    due_shard: str
    due_at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryDue:
    """List the keys of a due shard up to an instant, oldest first; the index may lag."""

    table_name: str
    due_shard: str
    until_ms: int
    limit: int
    after: DueCursor | None = None


Request: TypeAlias = PutMarker | UpdateMarker | ReadMarker | QueryDue


def writes(request: Request) -> bool:
    """Tell whether a request may change a row."""
    return isinstance(request, PutMarker | UpdateMarker)
