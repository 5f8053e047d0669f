"""A scenario is checked before it is played, and comes to its end in any case."""

import asyncio

import pytest

from platform_sim.lab.scenario import loop as loops
from platform_sim.lab.scenario import story as stories
from platform_sim.lab.scenario import world as worlds
from platform_sim.lab.scenario.errors import BadScenario
from platform_sim.lab.scenario.probe import Probe
from platform_sim.lab.scenario.reading import parse_scenario
from platform_sim.lab.scenario.run import check, play, profile_of
from platform_sim.lab.scenario.strikes import Strikes
from platform_sim.lifetime.gate import Gate
from platform_sim.lifetime.invocation import Invocation
from platform_sim.lifetime.profile import CutMode
from platform_sim.wiring.lab import OutlastProduct
from tests.support.scenarios import ONE, judge_text, play_text, seen_in, world

SPIN = ONE.replace("status = 204", "status = 503") + "[handler]\nbackoff_base_s = 0.0\n"


def test_a_profile_is_overridden_key_by_key() -> None:
    """What is left out is the profile's own."""
    platform = (
        "[platform]\nprofile = 'generic'\nallowance_s = 3.0\ncut = 'kill'\n"
        "cancel_grace_s = 0.2\nshutdown_grace_s = 4.0\n"
    )
    profile = profile_of(parse_scenario(world(platform)))

    assert (profile.name, profile.allowance_s, profile.cut) == ("generic", 3.0, CutMode.KILL)
    assert (profile.cancel_grace_s, profile.shutdown_grace_s) == (0.2, 4.0)
    assert profile_of(parse_scenario(world())).allowance_s == 30.0


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ("[platform]\nprofile = 'moon'", "platform.profile: no profile 'moon'"),
        ("[platform]\ncut = 'maybe'", "platform.cut: 'maybe' is none of cancel, kill"),
        ("[platform]\nshutdown_grace_s = 0.0", "platform.shutdown_grace_s: profile workers"),
        ("[handler]\nbudget = 3", "handler.budget: there is no such key"),
        ("[handler]\nbudget_s = 'x'", "handler.budget_s: Expected `float`, got `str`"),
        ("[handler]\nreserve_s = 99.0", "handler.reserve_s: OUTLAST_RESERVE_S"),
        ("[receivers.r]\nstatuses = { foo_on = [1] }", "receivers.r.statuses.foo_on: there is no"),
        ("[receivers.r]\nstatuses = { rejected_on = [9] }", "receivers.r.statuses.rejected_on[0]"),
        (
            "[receivers.r]\nstatuses = { rejected_on = [409], delivered_on = [409] }",
            "receivers.r.statuses: one status stands in two",
        ),
        (
            ONE + "[[faults]]\ndo = 'down'\nreceiver = 'r'\nat = 'x'",
            "faults[0].at: there is no 'x'",
        ),
        (
            ONE + "[[faults]]\ndo = 'store'\nhow = 'slow'\nat_s = 1\ncalls = ['x']",
            "faults[0].calls: there is no 'x'; there are: accept, claim",
        ),
        (ONE + "[[expect]]\noperation = 'a'\nstate = 'x'", "expect[0].state: there is no 'x'"),
        (ONE + "[[expect]]\noperation = 'a'\nhistory = ['x']", "expect[0].history: there is no"),
        (ONE + "[[expect]]\noperation = 'a'\noutcomes = ['x']", "expect[0].outcomes: there is no"),
        (ONE + "[[expect]]\noperation = 'a'\nanswer_states = ['x']", "expect[0].answer_states"),
        (ONE + "[[expect]]\noperation = 'a'\nlast_outcome = 'x'", "expect[0].last_outcome"),
        ("[[totals]]\nstates = { x = 1 }", "totals[0].states: there is no 'x'"),
        ("[[totals]]\ncounts = { x = 1 }", "totals[0].counts: there is no 'x'"),
    ],
)
def test_what_cannot_be_played_is_refused_by_its_key(parts: str, said: str) -> None:
    """Before anything is played."""
    with pytest.raises(BadScenario) as caught:
        check(parse_scenario(world(parts)), OutlastProduct())

    assert said in str(caught.value)


def test_a_world_that_spins_at_one_instant_is_stopped_and_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A backoff of 0 s against a receiver that refuses at once never lets time pass."""
    monkeypatch.setattr(loops, "_MOST_TURNS_AT_ONCE", 500)
    verdict = judge_text(SPIN)

    assert not verdict.passed
    assert verdict.failures[0] == (
        "the scenario did not come to its end: 500 turns at one instant of the event loop"
    )


def test_a_world_whose_story_never_ends_is_stopped_and_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The story is kept in memory."""
    monkeypatch.setattr(worlds, "Story", lambda clock: stories.Story(clock, most_events=100))

    assert "more than 100 events" in judge_text(SPIN).failures[0]


def test_hours_pass_and_the_end_is_the_end() -> None:
    """What would come later does not happen."""
    played = play_text(ONE, run_for_s=36_000.0)

    assert sum(event.kind == "run_started" for event in played.story.events) == 600
    assert max(event.at_s for event in played.story.events) == 36_000.0


def test_a_defect_of_the_world_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """The product passes over what its sinks raise; a fault strikes in one."""

    def breaks(*_: object) -> None:
        raise LookupError("a defect")

    monkeypatch.setattr(Strikes, "strike", breaks)
    at_point = ONE + "[[faults]]\ndo = 'down'\nreceiver = 'r'\nat = 'accepted'\n"
    at_time = ONE + "[[faults]]\ndo = 'down'\nreceiver = 'r'\nat_s = 1.0\n"
    said = "the world broke, which is a defect of ours: LookupError: a defect"

    assert [judge_text(text).failures for text in (at_point, at_time)] == [[said], [said]]


def test_a_probe_sees_requests_and_runs_and_may_end_the_world() -> None:
    """It is what experiments hang on to."""
    seen: list[str] = []

    def on_request(invocation: Invocation) -> None:
        seen.append(f"request {invocation.invocation_id}")

    def on_run(gate: Gate, kill: object) -> None:
        seen.append(f"run {gate.state}")
        assert callable(kill)
        asyncio.get_running_loop().call_later(1.0, probe.over.set)

    probe = Probe(on_request=on_request, on_run=on_run)
    played = play(parse_scenario(world(ONE)), OutlastProduct(), probe=probe)

    assert seen == ["request 1", "run open"]
    assert seen_in(played)["a"].state == "delivered"
    assert max(event.at_s for event in played.story.events) == 60.0
