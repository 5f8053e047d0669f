"""The ledger counts what arrived, in order, whatever became of it."""

from platform_sim.world.ledger import Ledger


def test_requests_are_numbered_by_key_and_open_until_they_end() -> None:
    """Attempt numbers are what the wire saw, not what a sender claims."""
    ledger = Ledger()
    for key in ("a", "b", "a"):
        ledger.arrive(key=key, path="/", at_ms=5, body_sha256="0")
    ledger.refuse()

    numbered = [(row["key"], row["attempt"], row["outcome"]) for row in ledger.rows()]
    assert numbered == [("a", 1, "open"), ("b", 1, "open"), ("a", 2, "open")]
    assert ledger.refused == 1
