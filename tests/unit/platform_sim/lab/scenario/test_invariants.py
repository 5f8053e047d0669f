"""Each promise, shown to be broken by a story that breaks it, and by no other."""

from collections.abc import Callable

import pytest

from platform_sim.lab.scenario.invariants import INVARIANTS, broken_invariants
from platform_sim.lab.scenario.reading import parse_scenario
from tests.support.scenarios import ONE, world
from tests.support.told import OP, Told, a_good_story

LOST, BUDGET, CONFIRMED, UNKNOWN, FIRST, OWN, FLICKER, SAME = INVARIANTS


def broken(told: Told) -> dict[str, list[str]]:
    """Return what is broken."""
    return {name: found for name, found in broken_invariants(told.played()).items() if found}


def test_a_good_story_breaks_nothing() -> None:
    """Or every story would be bad."""
    assert broken(a_good_story()) == {}


def _released(told: Told, state: str) -> None:
    told.rows[OP] = {"state": state, "due_at": 1, "due_shard": "n00"}


def _acknowledged_too_early(told: Told) -> None:
    told.tell(2.0, "client", "answer", request="a", status=202, state=None, stored=False)


def _row_gone(told: Told) -> None:
    del told.rows[OP]


def _not_in_the_index(told: Told) -> None:
    told.rows[OP] = {"state": "uncertain", "due_at": 1}


def _an_attempt_outside_its_budget(told: Told) -> None:
    told.attempt(24.5, 24.6, "undelivered", number=2)


def _an_attempt_over_its_limit(told: Told) -> None:
    told.attempt(2.0, 22.5, "undelivered", number=2)


def _an_attempt_into_the_reserve(told: Told) -> None:
    told.attempt(10.0, 24.5, "undelivered", number=2)


def _a_hidden_retry(told: Told) -> None:
    told.arrive()


def _delivered_unasked(told: Told) -> None:
    told.story.events[:] = [e for e in told.story.events if e.kind != "attempt_ended"]


def _unknown_written_as_not_delivered(told: Told) -> None:
    told.without(["attempt_ended", "write", "settled"])
    told.write(0.0, "web-1", "accept", (None, "claimed"), (None, "w-1"), by="")
    told.tell(1.0, "web-1", "attempt_ended", claim_id="w-1", attempt=1, destination="r",
              outcome="uncertain", status=None)  # fmt: skip
    told.write(1.0, "web-1", "release", ("claimed", "undelivered"), ("w-1", None))
    _released(told, "undelivered")


def _unknown_forgotten_by_a_takeover(told: Told) -> None:
    told.without(["attempt_ended", "write", "settled"])
    told.write(0.0, "web-1", "accept", (None, "claimed"), (None, "w-1"), by="")
    told.write(60.0, "redrive-1", "takeover", ("claimed", "claimed"), ("w-1", "r-1"))
    told.write(61.0, "redrive-1", "release", ("claimed", "undelivered"), ("r-1", None))
    _released(told, "undelivered")


def _a_result_erased(told: Told) -> None:
    told.write(2.0, "redrive-1", "requeue", ("delivered", "undelivered"))
    _released(told, "undelivered")


def _another_claim_released(told: Told) -> None:
    told.without(["write", "settled", "attempt_ended"])
    told.write(0.0, "web-1", "accept", (None, "claimed"), (None, "w-1"), by="")
    told.write(1.0, "redrive-1", "release", ("claimed", "uncertain"), ("w-1", None))
    _released(told, "uncertain")


def _a_release_that_names_no_claim(told: Told) -> None:
    told.without(["write", "settled", "attempt_ended"])
    told.write(0.0, "web-1", "accept", (None, "claimed"), (None, "w-1"), by="")
    told.write(1.0, "web-1", "release", ("claimed", "uncertain"), ("w-1", None), by="")
    _released(told, "uncertain")


def _its_own_pass_taken_over(told: Told) -> None:
    told.without(["settled", "write", "attempt_ended"])
    told.write(0.0, "web-1", "accept", (None, "claimed"), (None, "w-1"), by="")
    told.write(60.0, "web-1", "takeover", ("claimed", "claimed"), ("w-1", "w-2"))
    _released(told, "claimed")


def _a_takeover_by_way_of_idle(told: Told) -> None:
    told.without(["settled", "write", "attempt_ended"])
    told.write(0.0, "web-1", "accept", (None, "claimed"), (None, "w-1"), by="")
    told.write(60.0, "redrive-1", "takeover", ("claimed", "undelivered"), ("w-1", None))
    _released(told, "undelivered")


def _another_body(told: Told) -> None:
    told.wire.clear()
    told.arrive()
    told.wire.append(told.wire[0].__class__(
        key=OP, path="/", attempt=2, at_ms=0, body_sha256="other"))  # fmt: skip
    told.tell(0.0, "web-1", "attempt_started", claim_id="w-1", destination="r", attempt=2)


def _a_key_of_nobody(told: Told) -> None:
    told.tell(0.0, "web-1", "attempt_started", "?", claim_id="w-1", destination="r", attempt=2)
    told.arrive(key="?")


def _two_effects(told: Told) -> None:
    told.effects[OP] = 2


@pytest.mark.parametrize(
    ("promise", "breach"),
    [
        (LOST, _acknowledged_too_early),
        (LOST, _row_gone),
        (LOST, _not_in_the_index),
        (BUDGET, _an_attempt_outside_its_budget),
        (BUDGET, _an_attempt_over_its_limit),
        (BUDGET, _an_attempt_into_the_reserve),
        (BUDGET, _a_hidden_retry),
        (CONFIRMED, _delivered_unasked),
        (UNKNOWN, _unknown_written_as_not_delivered),
        (UNKNOWN, _unknown_forgotten_by_a_takeover),
        (FIRST, _a_result_erased),
        (FIRST, _another_claim_released),
        (FIRST, _a_release_that_names_no_claim),
        (OWN, _its_own_pass_taken_over),
        (FLICKER, _a_takeover_by_way_of_idle),
        (SAME, _another_body),
        (SAME, _a_key_of_nobody),
        (SAME, _two_effects),
    ],
)
def test_a_breach_is_seen_under_its_promise(promise: str, breach: Callable[[Told], None]) -> None:
    """Each of the eight has stories that only it calls bad."""
    told = a_good_story()
    breach(told)

    assert promise in broken(told)
    assert set(broken(told)) - {promise} <= {SAME if breach is _row_gone else promise}


@pytest.mark.parametrize("fault", ["kill", "term"])
def test_a_replica_that_was_killed_may_take_over_what_it_once_held(fault: str) -> None:
    """The process is a new one; only the name is old."""
    faults = f"[[faults]]\ndo = '{fault}'\nreplica = 'web-1'\nat_s = 30.0\n"
    told = a_good_story()
    told.scenario = parse_scenario(world(ONE + faults))
    _its_own_pass_taken_over(told)

    assert broken(told) == {}


def test_an_absence_clears_the_unknown() -> None:
    """Asked, the receiver had never seen the key."""
    told = a_good_story()
    told.without(["write", "settled", "attempt_ended"])
    told.write(0.0, "web-1", "accept", (None, "claimed"), (None, "w-1"), by="")
    told.tell(0.5, "web-1", "attempt_ended", claim_id="w-1", attempt=1, destination="r",
              outcome="uncertain", status=None)  # fmt: skip
    told.tell(1.0, "web-1", "looked_up", finding="absent", status=404)
    told.write(1.0, "web-1", "release", ("claimed", "undelivered"), ("w-1", None))
    _released(told, "undelivered")

    assert broken(told) == {}


def test_after_its_retention_a_key_may_begin_again() -> None:
    """It is a new operation under an old name."""
    told = a_good_story()
    told.write(99.0, "web-1", "accept", (None, "undelivered"), by="")
    _released(told, "undelivered")

    assert broken(told) == {}


def test_answers_that_acknowledge_nothing_owe_nothing() -> None:
    """A 503, or a client that left before its answer."""
    told = Told()
    told.tell(0.0, "client", "answer", None, request="a", status=503, state=None, stored=False)
    told.tell(0.0, "client", "answer", None, request="a", status=None, state=None, stored=False)

    assert broken(told) == {}


def test_a_freeze_excuses_an_attempt_that_took_long() -> None:
    """Nothing of it ran meanwhile."""
    told = a_good_story()
    told.tell(1.5, "world", "fault", None, do="freeze", to="web-1", at=None)
    _an_attempt_over_its_limit(told)

    assert broken(told) == {}


@pytest.mark.parametrize(
    "receiver",
    [
        "replies = [{ status = 503, commit = 'before' }]",
        "lookup = true\nlookups = [{ status = 404 }]",
        "statuses = { undelivered_on = [200] }",
        "dedupes = false",
    ],
)
def test_only_an_honest_receiver_is_held_to_one_effect(receiver: str) -> None:
    """One that denies what it did, or knows no keys, is sent the same thing again."""
    told = a_good_story()
    told.scenario = parse_scenario(
        world(f"[receivers.r]\n{receiver}\n[[requests]]\nkey = 'a'\ndestination = 'r'")
    )
    told.effects[OP] = 2

    assert broken(told) == {}
