"""Each guard of the promises is taken away once, and a history that held then breaks.

What is removed is the one condition or line that is the guard, in this process; the history is the
same in both tests. The guards:

- own claim in release, in reject, in park: a pass that was taken over cannot end another's claim
- not delivered, in confirm: the first confirmation is the one that counts
- unknown set on takeover: a lost pass may have sent
- the claim that was seen, in takeover: only what was judged lost is taken over
- lease over, in takeover: a heartbeat that came in between holds the claim
- the skew margin of leases: a clock that is a little ahead takes nothing
- a heartbeat never shortens a lease
- a lost lease begins no attempt
- due, in claim: a lagging index wins no claim
- the row's own claim id is one's own lost reply: what was not sent does not become unknown
- the reserve: settling has its slice of the budget
- wall time in the deadline: a process that thaws sends nothing
- the first key in every attempt, the first bytes in every attempt
- the byte that left, when an attempt is cut by its deadline; and when its pass is cut
- unknown is sticky: a later 503 clears nothing
- nothing is sent again to a receiver that is neither idempotent nor can be asked
- the margin at the dedupe window's end
- the fingerprint of an accept: one key, one request
- the write before the 202
"""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from storage.states import Event, Guard
from tests.support import model_histories as histories
from tests.support import model_removals as removals
from tests.support.model_histories import Facts
from tests.support.model_removals import Remove
from tests.support.model_world import ModelWorld

History = Callable[[], tuple[ModelWorld, Facts]]


@dataclass(frozen=True, slots=True)
class Guarded:
    """A guard: how it is removed, and the history that needs it."""

    name: str
    remove: Remove
    history: History


GUARDS = [
    Guarded(
        "own claim in release",
        removals.without_guard(Event.RELEASE, Guard.OWN_CLAIM),
        histories.a_lost_pass_releases,
    ),
    Guarded(
        "own claim in reject",
        removals.without_guard(Event.REJECT, Guard.OWN_CLAIM),
        histories.a_lost_pass_rejects,
    ),
    Guarded(
        "own claim in park",
        removals.without_guard(Event.PARK, Guard.OWN_CLAIM),
        histories.a_lost_pass_parks,
    ),
    Guarded("not delivered in confirm", removals.confirm_delivered_again, histories.two_confirm),
    Guarded("unknown on takeover", removals.takeover_keeps_unknown, histories.killed_in_flight),
    Guarded(
        "seen claim in takeover",
        removals.without_guard(Event.TAKEOVER, Guard.SEEN_CLAIM),
        histories.two_judge_one_claim,
    ),
    Guarded(
        "lease over in takeover", removals.takeover_any_lease, histories.a_heartbeat_comes_between
    ),
    Guarded("skew margin", removals.no_skew_margin, histories.a_clock_is_ahead),
    Guarded(
        "later lease in heartbeat",
        removals.without_guard(Event.HEARTBEAT, Guard.LATER_LEASE),
        histories.a_clock_is_set_back,
    ),
    Guarded("lost lease", removals.never_lost, histories.a_pass_knows_it_is_lost),
    Guarded(
        "due in claim", removals.without_guard(Event.CLAIM, Guard.DUE), histories.the_index_lags
    ),
    Guarded("own lost reply", removals.own_reply_unknown, histories.the_reply_to_a_claim_is_lost),
    Guarded("reserve", removals.no_reserve, histories.an_attempt_takes_all_it_gets),
    Guarded("wall time", removals.monotonic_alone, histories.a_process_thaws),
    Guarded(
        "first key",
        removals.changed_request(removals.other_key),
        histories.the_first_reply_is_dropped,
    ),
    Guarded(
        "first bytes",
        removals.changed_request(removals.other_bytes),
        histories.a_receiver_is_busy_once,
    ),
    Guarded("byte left at the deadline", removals.cut_is_not_sent, histories.the_deadline_cuts),
    Guarded("byte left at a cut", removals.cut_pass_forgets, histories.a_cancel_cuts),
    Guarded("sticky unknown", removals.last_attempt_decides, histories.a_503_follows_an_unknown),
    Guarded("no blind repeat", removals.always_send, histories.the_deadline_cuts),
    Guarded("window margin", removals.no_window_margin, histories.the_window_closes),
    Guarded("fingerprint", removals.any_fingerprint, histories.one_key_comes_with_two_bodies),
    Guarded("write before 202", removals.acknowledged_before_written, histories.the_store_is_down),
]


@pytest.fixture(params=GUARDS, ids=lambda guarded: guarded.name)
def guarded(request: pytest.FixtureRequest) -> Guarded:
    """Return each guard."""
    found: Guarded = request.param
    return found


def broken(history: History) -> list[str]:
    """Return what breaks in a history: promises, and facts of its own."""
    world, facts = history()
    with world:
        world.rest()
        missed = [f"not so: {fact}" for fact, holds in facts.items() if not holds]
        return world.oracle.broken + missed


def test_with_the_guard_every_promise_holds(guarded: Guarded) -> None:
    """The history is one that the guard was made for."""
    assert broken(guarded.history) == []


def test_without_the_guard_a_promise_breaks(
    guarded: Guarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guard is what holds it."""
    guarded.remove(monkeypatch)

    assert broken(guarded.history) != []
