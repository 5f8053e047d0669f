"""The attribute names of a marker's row, and the plain values a row holds.

Names are spelled here once; conditions, requests and readers use the members. Two names differ
from the marker's fields: the index key `due_at` (epoch milliseconds) and the TTL attribute
`expires_at` (epoch seconds). How a value looks on the wire is not here (`transport.render`).
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeAlias

__all__ = ["Attribute", "AttributeType", "Row", "Value"]

Value: TypeAlias = str | int | bool | bytes
"""What we write: text, whole numbers, flags and binary."""

Row: TypeAlias = Mapping[str, object]
"""A row as read back: anything may stand in it, also what we would never write."""


class Attribute(StrEnum):
    """Every attribute a marker's row may have; `operation_id` is the partition key."""

    OPERATION_ID = "operation_id"
    STATE = "state"
    DESTINATION = "destination"
    PAYLOAD = "payload"
    FINGERPRINT = "fingerprint"
    ACCEPT_ID = "accept_id"
    CREATED_AT_MS = "created_at_ms"
    UPDATED_AT_MS = "updated_at_ms"
    CLAIM_ID = "claim_id"
    LAST_CLAIM_ID = "last_claim_id"
    LEASE_UNTIL_MS = "lease_until_ms"
    UNKNOWN = "unknown"
    DUE_AT = "due_at"
    DUE_SHARD = "due_shard"
    ATTEMPTS = "attempts"
    PASSES = "passes"
    LAST_OUTCOME = "last_outcome"
    LAST_STATUS = "last_status"
    LAST_ATTEMPT_AT_MS = "last_attempt_at_ms"
    REASON = "reason"
    SETTLED_AT_MS = "settled_at_ms"
    EXPIRES_AT = "expires_at"


class AttributeType(StrEnum):
    """The attribute types a condition asks about, by DynamoDB's letters."""

    TEXT = "S"
    NUMBER = "N"
