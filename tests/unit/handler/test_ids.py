"""Identifiers: derived from caller and key, or new; claims tell passes and replicas apart."""

import random
import uuid

from handler.ids import Ids, operation_id_for_key

NOW_MS = 1_700_000_000_000


def ids(seed: int = 1) -> Ids:
    """Return identifiers with a seeded source."""
    return Ids(
        replica_id="replica",
        random_bits=random.Random(seed).getrandbits,
        wall_ms=lambda: NOW_MS,
    )


def test_a_key_always_stands_for_the_same_operation() -> None:
    """The id is a function of caller and key alone, so it survives restarts and replicas."""
    expected = "e25c186a-8591-8c94-b9b8-09b46747bf89"

    assert expected == operation_id_for_key("alice", "order-1")


def test_callers_and_keys_never_run_into_each_other() -> None:
    """("ab", "c") and ("a", "bc") are two operations, as are two callers with one key."""
    pairs = [
        ("ab", "c"),
        ("a", "bc"),
        ("", "abc"),
        ("alice", "k"),
        ("bob", "k"),
        ("", "k"),
        ("1:", "k"),
    ]

    assert len(pairs) == len({operation_id_for_key(caller, key) for caller, key in pairs})


def test_a_derived_id_is_a_uuid_of_version_8() -> None:
    """RFC 9562: version 8 is for one's own derivations."""
    found = uuid.UUID(operation_id_for_key("alice", "order-1"))

    assert (found.version, found.variant) == (8, uuid.RFC_4122)


def test_a_new_id_is_a_uuid_of_version_7_that_carries_its_time() -> None:
    """RFC 9562: the first 48 bits are the epoch milliseconds, so ids sort by time."""
    found = uuid.UUID(ids().new_operation_id())

    assert (found.version, found.variant, found.int >> 80) == (7, uuid.RFC_4122, NOW_MS)


def test_claim_ids_name_the_replica_and_differ_for_each_pass() -> None:
    """A replica's name alone could not tell its own claim from one lost and taken again."""
    source = ids()
    first, second = source.new_claim_id(), source.new_claim_id()

    assert first.startswith("replica-")
    assert first != second


def test_replicas_name_themselves_apart() -> None:
    """Two processes that were told nothing still make different claim ids."""
    first, second = Ids(wall_ms=lambda: NOW_MS), Ids(wall_ms=lambda: NOW_MS)

    assert first.replica_id != second.replica_id


def test_accept_ids_differ() -> None:
    """One's own lost accept is known by its token, so tokens must not repeat."""
    source = ids()

    assert len({source.new_accept_id() for _ in range(100)}) == 100
