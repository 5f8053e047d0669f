"""A transport that keeps its rows in memory and interprets requests exactly.

For virtual time, sweeps and model tests: no thread, no socket, no clock, microseconds a call.
A call yields to the event loop before it acts and again after, so that a cut can fall both
where nothing was written and where the write landed but its reply is lost. Between the two
nothing yields: a call is atomic. Index lag, lost replies and slow stores are not here; a
transport that wraps this one adds them.
"""

from bisect import bisect_right, insort
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from anyio.lowlevel import checkpoint

from storage.attributes import Attribute, AttributeType, Row
from storage.changes import Change, Increase, Remove, Set, SetIfMissing
from storage.conditions import (
    AllOf,
    AnyOf,
    AtMost,
    Condition,
    Equal,
    Missing,
    Not,
    OfType,
    OneOf,
)
from storage.errors import StoreMisconfigured
from storage.requests import (
    DueCursor,
    PutMarker,
    QueryDue,
    ReadMarker,
    Request,
    UpdateMarker,
)
from storage.transport.base import FoundDue, FoundRow, NotStored, Reply, Stored

__all__ = ["MemoryTransport", "holds"]

_TYPES: Final[Mapping[AttributeType, tuple[type, ...]]] = MappingProxyType(
    {AttributeType.TEXT: (str,), AttributeType.NUMBER: (int, float)}
)


class MemoryTransport:
    """One table in memory.

    Args:
        table_name: The only table there is; a request for another is misconfigured.
    """

    def __init__(self, *, table_name: str = "outlast") -> None:
        self._table_name = table_name
        self._rows: dict[str, Row] = {}
        self._due: dict[str, list[tuple[int, str]]] = {}

    @property
    def rows(self) -> Mapping[str, Row]:
        """Every row by operation id, as it is now; for looking, not for changing."""
        return MappingProxyType(self._rows)

    def put_row(self, row: Row) -> None:
        """Write a whole row as it is, without any condition."""
        operation_id = row[Attribute.OPERATION_ID]
        assert isinstance(operation_id, str)
        self._unindex(operation_id)
        self._rows[operation_id] = MappingProxyType(dict(row))
        self._index(operation_id)

    async def execute(self, request: Request, *, within_s: float) -> Reply:  # noqa: ARG002  a call takes no time
        """Execute one request; it takes no time, whatever `within_s` allows."""
        await checkpoint()
        reply = self.answer(request)
        await checkpoint()
        return reply

    async def aclose(self) -> None:
        """Do nothing; the rows stay."""

    def answer(self, request: Request) -> Reply:
        """Execute one request at once, with no turn of the event loop before or after it."""
        if request.table_name != self._table_name:
            raise StoreMisconfigured(f"there is no table {request.table_name!r} in this memory")
        match request:
            case PutMarker():
                operation_id = str(request.row[Attribute.OPERATION_ID])
                return self._write(operation_id, request.condition, request.row)
            case UpdateMarker(operation_id=operation_id):
                before = self._rows.get(operation_id, {Attribute.OPERATION_ID.value: operation_id})
                row = _changed(before, request.changes)
                return self._write(operation_id, request.condition, row)
            case ReadMarker(operation_id=operation_id):
                return FoundRow(row=self._rows.get(operation_id))
            case QueryDue():
                return self._query(request)

    def _write(self, operation_id: str, condition: Condition, row: Row) -> Stored | NotStored:
        present = self._rows.get(operation_id)
        if not holds(condition, present):
            return NotStored(row=present)
        self.put_row(row)
        return Stored(row=self._rows[operation_id])

    def _query(self, query: QueryDue) -> FoundDue:
        entries = self._due.get(query.due_shard, [])
        after = query.after
        first = bisect_right(entries, (after.due_at_ms, after.operation_id)) if after else 0
        last = bisect_right(entries, query.until_ms, key=lambda entry: entry[0])
        page = entries[first : min(last, first + query.limit)]
        more = first + len(page) < last
        cursor = (
            DueCursor(due_shard=query.due_shard, due_at_ms=page[-1][0], operation_id=page[-1][1])
            if page and more
            else None
        )
        return FoundDue(operation_ids=tuple(entry[1] for entry in page), after=cursor)

    def _index(self, operation_id: str) -> None:
        if (key := _due_key(self._rows[operation_id])) is not None:
            shard, due_at_ms = key
            insort(self._due.setdefault(shard, []), (due_at_ms, operation_id))

    def _unindex(self, operation_id: str) -> None:
        if (key := _due_key(self._rows.get(operation_id, {}))) is not None:
            shard, due_at_ms = key
            self._due[shard].remove((due_at_ms, operation_id))


def holds(condition: Condition, row: Row | None) -> bool:
    """Tell whether a row, None being no row, satisfies a condition."""
    found: Row = {} if row is None else row
    match condition:
        case Missing(attribute):
            return attribute not in found
        case Equal(attribute, value):
            return attribute in found and found[attribute] == value
        case OneOf(attribute, values):
            return found.get(attribute) in values
        case OfType(attribute, kind):
            return _is_a(found.get(attribute), kind)
        case AtMost(attribute, bound):
            number = found.get(attribute)
            return (
                isinstance(number, int | float) and not isinstance(number, bool) and number <= bound
            )
        case Not(inner):
            return not holds(inner, row)
        case AllOf(conditions):
            return all(holds(each, row) for each in conditions)
        case AnyOf(conditions):
            return any(holds(each, row) for each in conditions)


def _is_a(value: object, kind: AttributeType) -> bool:
    return isinstance(value, _TYPES[kind]) and not isinstance(value, bool)


def _changed(row: Row, changes: tuple[Change, ...]) -> Row:
    after = dict(row)
    for change in changes:
        name = change.attribute.value
        match change:
            case Set(value=value):
                after[name] = value
            case SetIfMissing(value=value):
                after.setdefault(name, value)
            case Increase(by=by):
                present = after.get(name, 0)
                assert isinstance(present, int)
                after[name] = present + by
            case Remove():
                after.pop(name, None)
    return after


def _due_key(row: Row) -> tuple[str, int] | None:
    shard, due_at_ms = row.get(Attribute.DUE_SHARD), row.get(Attribute.DUE_AT)
    if isinstance(shard, str) and isinstance(due_at_ms, int):
        return shard, due_at_ms
    return None
