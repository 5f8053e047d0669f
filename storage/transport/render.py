"""DynamoDB's low-level parameters from a request, and a reply from its low-level answer.

Pure: no client, no socket, so that every transport that speaks to DynamoDB shares it.
Every attribute name goes through a `#name` placeholder (`state` is a reserved word) and
every value through `:v0`, `:v1`. How errors are classified is in `transport.failures`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from storage.attributes import Attribute, Row, Value
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
from storage.requests import DueCursor, PutMarker, QueryDue, ReadMarker, Request, UpdateMarker
from storage.transport.base import FoundDue, FoundRow, NotStored, Reply, Stored

__all__ = ["DUE_INDEX", "Call", "read_answer", "read_refusal", "render"]

DUE_INDEX = "due"

Item: TypeAlias = Mapping[str, Mapping[str, Any]]
"""A row in DynamoDB's typed form, for example `{"attempts": {"N": "2"}}`."""


@dataclass(frozen=True, slots=True)
class Call:
    """One DynamoDB API call: the operation's name (`PutItem`) and its parameters."""

    operation: str
    parameters: Mapping[str, Any]


def render(request: Request) -> Call:
    """Return the call that a request stands for."""
    match request:
        case PutMarker():
            return Call("PutItem", _put(request))
        case UpdateMarker():
            return Call("UpdateItem", _update(request))
        case ReadMarker(table_name=table_name, operation_id=operation_id):
            key = _key(operation_id)
            return Call("GetItem", {"TableName": table_name, "Key": key, "ConsistentRead": True})
        case QueryDue():
            return Call("Query", _query(request))


def read_answer(request: Request, answer: Mapping[str, Any]) -> Reply:
    """Return the reply that a successful call's answer stands for."""
    match request:
        case PutMarker(row=row):
            return Stored(row=row)
        case UpdateMarker():
            return Stored(row=_row(answer["Attributes"]))
        case ReadMarker():
            return FoundRow(row=_row_or_none(answer))
        case QueryDue(due_shard=shard):
            return FoundDue(
                operation_ids=tuple(_row(item)["operation_id"] for item in answer["Items"]),
                after=_cursor(shard, answer.get("LastEvaluatedKey")),
            )


def read_refusal(answer: Mapping[str, Any]) -> NotStored:
    """Return the reply that a failed condition's answer stands for."""
    return NotStored(row=_row_or_none(answer))


class _Placeholders:
    """Collects the names and values that one call's expressions refer to."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.values: dict[str, Mapping[str, Any]] = {}

    def name(self, attribute: Attribute) -> str:
        placeholder = f"#{attribute.value}"
        self.names[placeholder] = attribute.value
        return placeholder

    def value(self, value: Value) -> str:
        placeholder = f":v{len(self.values)}"
        self.values[placeholder] = _typed(value)
        return placeholder

    def parameters(self) -> dict[str, Any]:
        parameters: dict[str, Any] = {"ExpressionAttributeNames": self.names}
        if self.values:
            parameters["ExpressionAttributeValues"] = self.values
        return parameters

    def condition(self, condition: Condition) -> str:
        """Return the condition as an expression."""
        match condition:
            case Missing(attribute):
                return f"attribute_not_exists({self.name(attribute)})"
            case Equal(attribute, value):
                return f"{self.name(attribute)} = {self.value(value)}"
            case OneOf(attribute, values):
                listed = ", ".join(self.value(value) for value in values)
                return f"{self.name(attribute)} IN ({listed})"
            case OfType(attribute, kind):
                return f"attribute_type({self.name(attribute)}, {self.value(kind.value)})"
            case AtMost(attribute, bound):
                name = self.name(attribute)
                is_number = f"attribute_type({name}, {self.value('N')})"
                return f"({is_number} AND {name} <= {self.value(bound)})"
            case Not(inner):
                return f"(NOT {self.condition(inner)})"
            case AllOf(conditions):
                return self._joined(" AND ", conditions)
            case AnyOf(conditions):
                return self._joined(" OR ", conditions)

    def update(self, changes: Sequence[Change]) -> str:
        """Return the changes as an update expression."""
        clauses: dict[str, list[str]] = {}
        for change in changes:
            name = self.name(change.attribute)
            match change:
                case Set(value=value):
                    clauses.setdefault("SET", []).append(f"{name} = {self.value(value)}")
                case SetIfMissing(value=value):
                    kept = f"{name} = if_not_exists({name}, {self.value(value)})"
                    clauses.setdefault("SET", []).append(kept)
                case Increase(by=by):
                    clauses.setdefault("ADD", []).append(f"{name} {self.value(by)}")
                case Remove():
                    clauses.setdefault("REMOVE", []).append(name)
        return " ".join(f"{verb} {', '.join(parts)}" for verb, parts in clauses.items())

    def _joined(self, operator: str, conditions: Sequence[Condition]) -> str:
        parts = [self.condition(each) for each in conditions]
        # DynamoDB refuses redundant parentheses.
        return parts[0] if len(parts) == 1 else f"({operator.join(parts)})"


def _put(request: PutMarker) -> dict[str, Any]:
    placeholders = _Placeholders()
    return {
        "TableName": request.table_name,
        "Item": {name: _typed(value) for name, value in request.row.items()},
        "ConditionExpression": placeholders.condition(request.condition),
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        **placeholders.parameters(),
    }


def _update(request: UpdateMarker) -> dict[str, Any]:
    placeholders = _Placeholders()
    return {
        "TableName": request.table_name,
        "Key": _key(request.operation_id),
        "ConditionExpression": placeholders.condition(request.condition),
        "UpdateExpression": placeholders.update(request.changes),
        "ReturnValues": "ALL_NEW",
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        **placeholders.parameters(),
    }


def _query(request: QueryDue) -> dict[str, Any]:
    placeholders = _Placeholders()
    shard = f"{placeholders.name(Attribute.DUE_SHARD)} = {placeholders.value(request.due_shard)}"
    until = f"{placeholders.name(Attribute.DUE_AT)} <= {placeholders.value(request.until_ms)}"
    parameters: dict[str, Any] = {
        "TableName": request.table_name,
        "IndexName": DUE_INDEX,
        "KeyConditionExpression": f"{shard} AND {until}",
        "ScanIndexForward": True,
        "Limit": request.limit,
        **placeholders.parameters(),
    }
    if request.after is not None:
        parameters["ExclusiveStartKey"] = {
            **_key(request.after.operation_id),
            Attribute.DUE_SHARD.value: _typed(request.after.due_shard),
            Attribute.DUE_AT.value: _typed(request.after.due_at_ms),
        }
    return parameters


def _key(operation_id: str) -> dict[str, Mapping[str, Any]]:
    return {Attribute.OPERATION_ID.value: _typed(operation_id)}


def _cursor(shard: str, key: Item | None) -> DueCursor | None:
    if not key:
        return None
    row = _row(key)
    return DueCursor(
        operation_id=row[Attribute.OPERATION_ID],
        due_shard=shard,
        due_at_ms=row[Attribute.DUE_AT],
    )


def _typed(value: object) -> Mapping[str, Any]:
    match value:
        case bool():
            return {"BOOL": value}
        case int():
            return {"N": str(value)}
        case bytes():
            return {"B": value}
        case _:
            return {"S": value}


def _row_or_none(answer: Mapping[str, Any]) -> Row | None:
    item = answer.get("Item")
    return _row(item) if item else None


def _row(item: Item) -> dict[str, Any]:
    return {name: _plain(typed) for name, typed in item.items()}


def _plain(typed: Mapping[str, Any]) -> object:
    """Return the value; what we never write (a list, a set) stays in its typed form."""
    match typed:
        case {"N": text}:
            return int(text) if text.lstrip("-").isdigit() else float(text)
        case {"S": value} | {"B": value} | {"BOOL": value}:
            return value
    return typed
