"""The real handler in a world: destinations that are functions, pools, words."""

import pytest

from handler.events import Action
from platform_sim.lab.scenario.errors import BadScenario
from platform_sim.lab.scenario.reading import parse_scenario
from platform_sim.wiring.lab import OutlastProduct
from storage.states import Event, State
from tests.support.scenarios import ONE, play_text, seen_in, world

FUNCTION = "[receivers.r]\nfunction = true\nreplies = [{{ {0} }}]\n"
REQUEST = '[[requests]]\nkey = "a"\ndestination = "r"\n'


def test_the_products_words_are_its_own() -> None:
    """So that a scenario can be told a word that there is not."""
    words = OutlastProduct().words()

    assert words.states == {state.value for state in State}
    assert {event.value for event in Event} | {"read", "due"} == words.calls
    assert Action.TURNED_AWAY.value in words.actions
    assert "uncertain" in words.outcomes


@pytest.mark.parametrize(
    ("reply", "state", "sent"),
    [
        ("status = 204", "delivered", 1),
        ("status = 422", "rejected", 1),
        ("status = 503", "undelivered", 1),
        ("then = 'drop', commit = 'never'", "uncertain", 1),
        ("refuse = true", "undelivered", 0),
    ],
)
def test_a_function_destination_does_what_its_reply_says(reply: str, state: str, sent: int) -> None:
    """By returning, or by raising."""
    once = "[handler]\nbackoff_base_s = 100.0\nbackoff_cap_s = 100.0\nbackoff_jitter = 0.0\n"
    played = play_text(once + FUNCTION.format(reply) + REQUEST, run_for_s=20.0)
    seen = seen_in(played)["a"]

    assert (seen.state, seen.sent, len(seen.attempts)) == (state, sent, 1)


def test_statuses_may_be_overridden() -> None:
    """As a destination's own settings."""
    receiver = "[receivers.r]\nreplies = [{ status = 410 }]\nstatuses = { delivered_on = [410] }\n"

    assert seen_in(play_text(receiver + REQUEST, run_for_s=5.0))["a"].state == "delivered"


def test_an_attempt_waits_for_a_connection_of_the_pool() -> None:
    """One connection: the second delivery begins when the first has ended."""
    two = "[handler]\nmax_connections = 1\n" + ONE.replace("status = 204", "delay_s = 2.0")
    played = play_text(two + REQUEST.replace('"a"', '"b"'), run_for_s=10.0)
    left = [round(event.at_s, 3) for event in played.story.of("byte_left")]

    assert left == [0.0, 2.0]


def test_another_table_name_is_another_table() -> None:
    """The store in a world goes by the handler's setting."""
    played = play_text("[handler]\ntable = 'mine'\n" + ONE, run_for_s=5.0)

    assert seen_in(played)["a"].state == "delivered"


def test_a_bad_receiver_is_refused_before_anything_is_opened() -> None:
    """By its name."""
    scenario = parse_scenario(world("[receivers.r]\nstatuses = { nope_on = [1] }"))

    with pytest.raises(BadScenario, match="nope_on: there is no such key"):
        OutlastProduct().check(scenario)
