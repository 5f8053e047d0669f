"""Rows as a store keeps them, in plain values, and DynamoDB's typed form of such values.

Written apart from the product's own renderer, so that the two check each other.
"""

from collections.abc import Mapping
from typing import Any

from boto3.dynamodb.types import TypeSerializer

from storage.attributes import Row

__all__ = ["NOW_MS", "claimed_row", "plain", "typed"]

NOW_MS = 1_700_000_000_000


def typed(row: Row) -> dict[str, Any]:
    """Return a row in DynamoDB's typed form."""
    serializer = TypeSerializer()
    return {name: serializer.serialize(value) for name, value in row.items()}


def plain(item: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return an item's values; numbers are whole, what we never write stays typed."""
    return {name: _simple(value) for name, value in item.items()}


def claimed_row(operation_id: str = "op", **changes: Any) -> dict[str, Any]:
    """Return the row of a claim whose lease has long been over; a None takes a field away."""
    row: dict[str, Any] = {
        "operation_id": operation_id,
        "state": "claimed",
        "destination": "shop",
        "payload": b"first",
        "fingerprint": "print",
        "accept_id": "accept",
        "created_at_ms": NOW_MS - 100_000,
        "updated_at_ms": NOW_MS - 100_000,
        "claim_id": "own",
        "lease_until_ms": NOW_MS - 60_000,
        "unknown": False,
        "due_at": NOW_MS - 60_000,
        "due_shard": "n00",
        "attempts": 0,
        "passes": 1,
    } | changes
    return {name: value for name, value in row.items() if value is not None}


def _simple(typed_value: Mapping[str, Any]) -> Any:
    ((kind, value),) = typed_value.items()
    if kind == "N":
        return int(value)
    return value if kind in {"S", "B", "BOOL"} else typed_value
