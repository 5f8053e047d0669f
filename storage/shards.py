"""Which part of the due index a marker stands in.

A due shard is a lane and a number. The number spreads markers by a hash of their operation id
that is the same in every process and release. The lane keeps operations that were never tried
apart from those that were, so that a redrive run can bound the share of repeated failures.
Nothing here reads or writes the index.
"""

import hashlib
from enum import StrEnum

__all__ = ["Lane", "due_shard", "shards_of"]


class Lane(StrEnum):
    """Whether an operation has been attempted."""

    NEW = "n"
    """No attempt made yet."""
    RETRIED = "r"
    """At least one attempt may have been made."""

    @classmethod
    def after(cls, attempts: int) -> "Lane":
        """Return the lane of an operation with that many attempts."""
        return cls.RETRIED if attempts > 0 else cls.NEW


def due_shard(operation_id: str, lane: Lane, shard_count: int) -> str:
    """Return the due shard of an operation, for example `n03`."""
    digest = hashlib.sha256(operation_id.encode()).digest()
    return _name(lane, int.from_bytes(digest[:8]) % shard_count)


def shards_of(lane: Lane, shard_count: int) -> tuple[str, ...]:
    """Return every due shard of a lane, in order."""
    return tuple(_name(lane, number) for number in range(shard_count))


def _name(lane: Lane, number: int) -> str:
    return f"{lane}{number:02d}"
