"""Due shards: stable, spread, and in two lanes."""

from collections import Counter

from storage.shards import Lane, due_shard, shards_of


def test_an_operation_has_the_same_shard_in_every_process() -> None:
    """Python's own hash differs by process; these are fixed for ever."""
    assert due_shard("op", Lane.NEW, 4) == "n01"
    assert due_shard("op", Lane.RETRIED, 4) == "r01"
    assert due_shard("018f4d2e-0000-7000-8000-000000000001", Lane.NEW, 16) == "n05"


def test_operations_spread_over_every_shard_of_their_lane() -> None:
    """No shard takes more than twice its part."""
    counts = Counter(due_shard(f"op-{number}", Lane.NEW, 8) for number in range(1_000))

    assert set(shards_of(Lane.NEW, 8)) == set(counts)
    assert max(counts.values()) < 250


def test_the_lane_follows_the_attempts() -> None:
    """One attempt is enough to be a repeated one."""
    assert [Lane.after(attempts) for attempts in (0, 1, 9)] == [
        Lane.NEW,
        Lane.RETRIED,
        Lane.RETRIED,
    ]
