"""What must be so of a scenario after a cut, and what excuses there are."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from platform_sim.lab.scenario.played import Photograph, Played
from platform_sim.lab.scenario.reading import parse_scenario
from platform_sim.lab.scenario.story import StoryEvent
from platform_sim.lab.sweep.promises import findings_of, waiting_of
from platform_sim.lab.sweep.trial import Finding, Kind
from platform_sim.world.ledger import WireRequest
from tests.support.scenarios import ONE, play_text, world

SETTLED = play_text(ONE)
A = SETTLED.names["a"]


def told(
    *,
    state: str = "delivered",
    statuses: tuple[int | None, ...] = (204,),
    effects: int = 1,
    receiver: str = "",
    tried: bool = False,
    acknowledged: bool = True,
    **row: Any,
) -> Played:
    """Return a run that came to this."""
    scenario = parse_scenario(world(ONE.replace("[receivers.r]", f"[receivers.r]\n{receiver}")))
    story = play_text(ONE).story
    if not acknowledged:
        story.events[:] = [event for event in story.events if event.kind != "answer"]
    if tried:
        fields = {"claim_id": next(story.of("pass_started")).fields["claim_id"], "attempt": 2}
        claimed = StoryEvent(
            at_s=0.0, source="redrive-1", kind="attempt_started", operation_id=A, fields=fields
        )
        story.events.append(claimed)
    stored = {**SETTLED.end.rows[A], "due_at": 1, "due_shard": "n00", **row, "state": state}
    wire = tuple(
        WireRequest(key=A, path="", attempt=1, at_ms=0, body_sha256=_body(SETTLED), status=status)
        for status in statuses
    )
    end = Photograph(
        at_s=1.0, rows={A: stored}, wire={"r": wire}, effects={"r": {A: effects}}, events=0
    )
    return replace(SETTLED, scenario=scenario, story=story, end=end)


def _body(played: Played) -> str:
    return played.end.wire["r"][0].body_sha256


def findings(played: Played, uncut: Played = SETTLED) -> list[Finding]:
    """Return what is wrong with how an operation ended, its invariants aside."""
    return [each for each in findings_of(played, uncut) if not each.text.startswith("promise ")]


def test_an_end_like_the_one_without_a_cut_is_right() -> None:
    """Nothing is wrong with it, the invariants included."""
    assert list(findings_of(SETTLED, SETTLED)) == []
    assert findings(told()) == []


@pytest.mark.parametrize("state", ["claimed", "undelivered", "uncertain"])
def test_what_still_waits_is_lost(state: str) -> None:
    """Everything is at rest, and nothing came for it."""
    text = f"a was acknowledged and is still {state} when everything is at rest"

    assert findings(told(state=state)) == [Finding(text=text)]
    assert findings(told(state=state, tried=True)) == [Finding(text=text)]
    assert findings(told(state=state, statuses=(500,))) == [Finding(text=text)]
    assert findings(told(state=state, statuses=(), tried=True)) == [Finding(text=text)]


def test_what_was_never_acknowledged_breaks_another_promise() -> None:
    """Its client knows nothing of it; redrive should."""
    (finding,) = findings(told(state="claimed", acknowledged=False))

    assert finding.kind is Kind.BROKEN
    assert finding.text.startswith("a was stored, not acknowledged, and is still claimed")


def test_what_waits_because_its_receiver_fails_is_not_lost() -> None:
    """Redrive tries, and the last reply says so; or it waits without a cut as well."""
    assert findings(told(state="uncertain", statuses=(204, 500), tried=True)) == []
    assert findings(told(state="uncertain", statuses=(None,), tried=True)) == []
    assert findings(told(state="undelivered"), told(state="undelivered")) == []


def test_a_refusal_is_the_receivers() -> None:
    """Without one, rejecting is giving up."""
    assert findings(told(state="rejected", statuses=(422,))) == []
    assert findings(told(state="rejected"), told(state="rejected")) == []
    assert [each.text for each in findings(told(state="rejected"))] == [
        "a was acknowledged and ends rejected, and delivered without a cut"
    ]


@pytest.mark.parametrize(
    ("receiver", "excused"),
    [
        ("idempotent = true", False),
        ("idempotent = false", True),
        ("idempotent = true\ndedupe_window_s = 60", True),
        ("idempotent = false\nlookup = true", False),
        ("idempotent = false\nlookup = true\nlookups = [{ status = 500 }]", True),
    ],
)
def test_parking_is_right_where_the_receiver_leaves_nothing_else(
    receiver: str,
    excused: bool,  # noqa: FBT001  a parameter of the test
) -> None:
    """One that can be asked, or sent the key again at any time, leaves something."""
    assert (findings(told(state="parked", receiver=receiver)) == []) == excused


def test_what_is_delivered_has_taken_effect() -> None:
    """Unless its receiver may say so of what it never did, or does nothing without a cut either."""
    lies = "lookup = true\nlookups = [{ status = 200 }]"
    silent = told(effects=0)
    played = replace(
        silent,
        scenario=msgspec.structs.replace(
            silent.scenario,
            receivers={
                "r": parse_scenario(
                    world(ONE.replace("204 }", '204, commit = "never" }'))
                ).receivers["r"]
            },
        ),
    )

    assert [each.text for each in findings(silent)] == ["a ends delivered and never took effect"]
    assert findings(told(effects=0, receiver=lies)) == []
    assert findings(played) == []
    assert findings(silent, silent) == []


def test_a_receiver_that_is_not_idempotent_must_not_be_sent_the_same_twice() -> None:
    """One that is has promised to bear it, and one that was asked may have lied."""
    plain, asked = "idempotent = false", "idempotent = false\nlookup = true\nlookups = [{}]"

    assert findings(told(effects=2, receiver=plain)) == [
        Finding(
            kind=Kind.DOUBLED, text="a took effect 2 times at a receiver that is not idempotent"
        )
    ]
    assert findings(told(effects=2, receiver=asked)) == []
    assert findings(told(effects=2, receiver=plain), told(effects=2)) == []


def test_a_broken_invariant_is_told_under_its_kind() -> None:
    """The first promise is about losing, the eighth about effects too, the others are others."""
    lost = told(state="uncertain", due_at=1)
    del lost.end.rows[A]["due_at"]  # type: ignore[attr-defined]
    doubled = list(findings_of(told(effects=2), SETTLED))
    broken = list(findings_of(told(statuses=(204, 204)), SETTLED))

    assert Kind.LOST in {
        each.kind for each in findings_of(lost, lost) if each.text.startswith("promise 1 ")
    }
    assert [(each.kind, each.text[:10]) for each in doubled] == [(Kind.DOUBLED, "promise 8 ")]
    assert [(each.kind, each.text[:10]) for each in broken] == [(Kind.BROKEN, "promise 2 ")]


def test_an_operation_that_was_never_stored_has_no_end() -> None:
    """Its client never had a 202 either."""
    played = replace(SETTLED, end=replace(SETTLED.end, rows={}), names={})

    assert findings(played) == []


def test_what_waits_is_what_is_not_settled() -> None:
    """By its state alone."""
    assert waiting_of({"1": {"state": "claimed"}, "2": {"state": "parked"}}) == ["1"]
