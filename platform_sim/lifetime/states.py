"""One request as three small coupled state machines: client, function, platform.

Theory of operation: a happening moves the client and the function by their own tables; what they
are then moves the platform (`_response_over`), which alone decides when the allowance starts. The
happenings that are the platform's own, LET_BE, END and GONE, move only it. A pair that no table
lists raises and changes nothing.

Not here: I/O, time, tasks.
"""

from collections.abc import Mapping
from enum import StrEnum, unique
from typing import NamedTuple

from platform_sim.lifetime.errors import IllegalHappening
from platform_sim.lifetime.profile import DisconnectRule

__all__ = ["Client", "Function", "Happening", "Platform", "States", "advance"]


@unique
class Client(StrEnum):
    """The connection, as the platform sees it."""

    CONNECTED = "connected"
    ANSWERED = "answered"  # has its whole answer, or the server's own in place of the app's
    LEFT = "left"  # went away before the answer's end


@unique
class Function(StrEnum):
    """The app call."""

    RUNNING = "running"
    TRAILING = "trailing"  # has answered; its own code still runs
    OVER = "over"
    FAILED = "failed"  # raised before it had answered


@unique
class Platform(StrEnum):
    """What holds the request's context."""

    SERVING = "serving"  # the response
    DRAINING = "draining"  # registered work, inside the allowance
    UNHELD = "unheld"  # nothing, and what is left may go on whenever the process runs
    ENDING = "ending"  # nothing: what is left is being cut
    ENDED = "ended"


@unique
class Happening(StrEnum):
    """Everything that can move a machine."""

    RESPONSE_END = "response_end"
    CLIENT_LEFT = "client_left"
    OVERDUE = "overdue"  # the platform answers in the app's place
    APP_RETURNED = "app_returned"
    APP_RAISED = "app_raised"
    LET_BE = "let_be"  # the platform holds the context no more, and cuts nothing
    END = "end"  # the platform ends the context
    GONE = "gone"  # nothing of it is left


_H = Happening
_CLIENT: Mapping[tuple[Client, Happening], Client] = {
    (Client.CONNECTED, _H.RESPONSE_END): Client.ANSWERED,
    (Client.CONNECTED, _H.CLIENT_LEFT): Client.LEFT,
    (Client.CONNECTED, _H.OVERDUE): Client.ANSWERED,
    (Client.CONNECTED, _H.APP_RETURNED): Client.ANSWERED,
    (Client.CONNECTED, _H.APP_RAISED): Client.ANSWERED,
    (Client.ANSWERED, _H.APP_RETURNED): Client.ANSWERED,
    (Client.ANSWERED, _H.APP_RAISED): Client.ANSWERED,
    (Client.LEFT, _H.RESPONSE_END): Client.LEFT,
    (Client.LEFT, _H.APP_RETURNED): Client.LEFT,
    (Client.LEFT, _H.APP_RAISED): Client.LEFT,
}
_FUNCTION: Mapping[tuple[Function, Happening], Function] = {
    (Function.RUNNING, _H.RESPONSE_END): Function.TRAILING,
    (Function.RUNNING, _H.CLIENT_LEFT): Function.RUNNING,
    (Function.RUNNING, _H.OVERDUE): Function.RUNNING,
    (Function.RUNNING, _H.APP_RETURNED): Function.OVER,
    (Function.RUNNING, _H.APP_RAISED): Function.FAILED,
    (Function.TRAILING, _H.APP_RETURNED): Function.OVER,
    (Function.TRAILING, _H.APP_RAISED): Function.OVER,
}
_PLATFORM: Mapping[tuple[Platform, Happening], Platform] = {
    (Platform.SERVING, _H.END): Platform.ENDING,
    (Platform.DRAINING, _H.LET_BE): Platform.UNHELD,
    (Platform.DRAINING, _H.END): Platform.ENDING,
    (Platform.UNHELD, _H.END): Platform.ENDING,
    (Platform.ENDING, _H.GONE): Platform.ENDED,
}


_PLATFORMS_OWN = (_H.LET_BE, _H.END, _H.GONE)


class States(NamedTuple):
    """The three machines of one request."""

    client: Client = Client.CONNECTED
    function: Function = Function.RUNNING
    platform: Platform = Platform.SERVING


_KNOWN: dict[tuple[States, Happening, DisconnectRule], States] = {}
"""What `advance` has found before: of a pure function, and of a closed set."""


def advance(states: States, happening: Happening, rule: DisconnectRule) -> States:
    """Return the states after `happening`.

    Raises:
        IllegalHappening: No table lists it for these states.
    """
    known = _KNOWN.get((states, happening, rule))
    if known is None:
        known = _KNOWN[states, happening, rule] = _advanced(states, happening, rule)
    return known


def _advanced(states: States, happening: Happening, rule: DisconnectRule) -> States:
    try:
        if happening in _PLATFORMS_OWN:
            platform = _PLATFORM[states.platform, happening]
            return States(states.client, states.function, platform)
        client = _CLIENT[states.client, happening]
        function = _FUNCTION[states.function, happening]
    except KeyError:
        raise IllegalHappening(f"{happening} in {states}") from None
    platform = states.platform
    if platform is Platform.SERVING and _response_over(client, function, rule):
        platform = Platform.DRAINING
    return States(client, function, platform)


def _response_over(client: Client, function: Function, rule: DisconnectRule) -> bool:
    if client is Client.LEFT and rule is DisconnectRule.IGNORED:
        return function is not Function.RUNNING
    return client is not Client.CONNECTED
