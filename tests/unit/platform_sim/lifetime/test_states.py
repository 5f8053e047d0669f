"""The three machines: every pair of state and happening, legal and illegal."""

import itertools

import pytest

from platform_sim.lifetime.errors import IllegalHappening
from platform_sim.lifetime.profile import DisconnectRule
from platform_sim.lifetime.states import Client, Function, Happening, Platform, States, advance

START = States()
EVERY = [States(*each) for each in itertools.product(Client, Function, Platform)]


def after(*happenings: Happening, rule: DisconnectRule = DisconnectRule.ENDS_RESPONSE) -> States:
    """Return the states after these happenings, in order."""
    states = START
    for happening in happenings:
        states = advance(states, happening, rule)
    return states


@pytest.mark.parametrize(
    ("happenings", "expected"),
    [
        ((), States(Client.CONNECTED, Function.RUNNING, Platform.SERVING)),
        (
            (Happening.RESPONSE_END,),
            States(Client.ANSWERED, Function.TRAILING, Platform.DRAINING),
        ),
        (
            (Happening.RESPONSE_END, Happening.APP_RETURNED, Happening.END, Happening.GONE),
            States(Client.ANSWERED, Function.OVER, Platform.ENDED),
        ),
        (
            (Happening.RESPONSE_END, Happening.APP_RAISED),
            States(Client.ANSWERED, Function.OVER, Platform.DRAINING),
        ),
        ((Happening.CLIENT_LEFT,), States(Client.LEFT, Function.RUNNING, Platform.DRAINING)),
        (
            (Happening.CLIENT_LEFT, Happening.RESPONSE_END),
            States(Client.LEFT, Function.TRAILING, Platform.DRAINING),
        ),
        (
            (Happening.OVERDUE, Happening.APP_RETURNED),
            States(Client.ANSWERED, Function.OVER, Platform.DRAINING),
        ),
        (
            (Happening.RESPONSE_END, Happening.LET_BE, Happening.APP_RETURNED, Happening.END),
            States(Client.ANSWERED, Function.OVER, Platform.ENDING),
        ),
        ((Happening.APP_RAISED,), States(Client.ANSWERED, Function.FAILED, Platform.DRAINING)),
        ((Happening.APP_RETURNED,), States(Client.ANSWERED, Function.OVER, Platform.DRAINING)),
        ((Happening.END,), States(Client.CONNECTED, Function.RUNNING, Platform.ENDING)),
        (
            (Happening.END, Happening.APP_RAISED, Happening.GONE),
            States(Client.ANSWERED, Function.FAILED, Platform.ENDED),
        ),
    ],
)
def test_a_life_goes_as_listed(happenings: tuple[Happening, ...], expected: States) -> None:
    """The lives that real requests have."""
    assert after(*happenings) == expected


@pytest.mark.parametrize(
    ("then", "platform"),
    [
        ((), Platform.SERVING),
        ((Happening.RESPONSE_END,), Platform.DRAINING),
        ((Happening.APP_RETURNED,), Platform.DRAINING),
        ((Happening.APP_RAISED,), Platform.DRAINING),
    ],
)
def test_an_ignored_disconnect_leaves_the_function_in_charge(
    then: tuple[Happening, ...], platform: Platform
) -> None:
    """The allowance starts when the function is over with its response."""
    states = after(Happening.CLIENT_LEFT, *then, rule=DisconnectRule.IGNORED)

    assert (states.client, states.platform) == (Client.LEFT, platform)


@pytest.mark.parametrize("rule", list(DisconnectRule))
def test_every_pair_is_either_listed_or_refused(rule: DisconnectRule) -> None:
    """Nothing else ever happens: a listed pair moves machines forward only, others raise."""
    order = {state: n for kind in (Client, Function, Platform) for n, state in enumerate(kind)}
    refused = 0
    for states, happening in itertools.product(EVERY, Happening):
        try:
            new = advance(states, happening, rule)
        except IllegalHappening:
            refused += 1
            continue
        assert order[new.client] >= order[states.client]
        assert order[new.function] >= order[states.function]
        assert order[new.platform] >= order[states.platform]

    # END from three platforms, LET_BE and GONE from one, each with 12 pairs of client and function;
    # the other happenings from 2, 1, 1, 6 and 6 such pairs on each of 5 platforms
    assert 60 * len(Happening) - refused == 36 + 12 + 12 + 5 * (2 + 1 + 1 + 6 + 6)


def test_an_answer_cannot_end_twice() -> None:
    """A second end would open a second window."""
    with pytest.raises(IllegalHappening, match="response_end in States"):
        after(Happening.RESPONSE_END, Happening.RESPONSE_END)
