"""Identifiers: where operation ids and claim ids come from.

With an `Idempotency-Key` the operation id is derived from the caller and the key, so a repeat finds
its own operation; without one it is a new UUIDv7, which sorts by time. A claim id names replica and
pass, because a replica's name alone cannot tell "mine" from "lost and taken again".
"""

import hashlib
import secrets
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

__all__ = ["Ids", "operation_id_for_key"]

_VERSION_7 = 7 << 76
_VERSION_8 = 8 << 76
_VARIANT = 2 << 62
_CLEAR = ~((0xF << 76) | (3 << 62))


def operation_id_for_key(caller: str, key: str) -> str:
    """Return the operation id that one caller's key always stands for (a UUIDv8)."""
    told_apart = f"{len(caller)}:{caller}{key}".encode()
    digest = int.from_bytes(hashlib.sha256(told_apart).digest()[:16])
    return str(uuid.UUID(int=digest & _CLEAR | _VERSION_8 | _VARIANT))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ids:
    """Makes new identifiers from the randomness and clock it is given.

    Attributes:
        replica_id: This process; part of every claim id it makes.
        random_bits: Returns that many random bits, as `random.Random.getrandbits` does.
        wall_ms: Returns epoch milliseconds.
    """

    replica_id: str = field(default_factory=lambda: secrets.token_hex(6))
    random_bits: Callable[[int], int] = secrets.randbits
    wall_ms: Callable[[], int]

    def new_operation_id(self) -> str:
        """Return a new UUIDv7 (RFC 9562)."""
        value = (self.wall_ms() & (1 << 48) - 1) << 80 | self.random_bits(80)
        return str(uuid.UUID(int=value & _CLEAR | _VERSION_7 | _VARIANT))

    def new_claim_id(self) -> str:
        """Return an id that no other pass, here or on another replica, will carry."""
        return f"{self.replica_id}-{self.random_bits(64):016x}"

    def new_accept_id(self) -> str:
        """Return the token by which an accept whose reply was lost knows its own write."""
        return f"{self.random_bits(96):024x}"
