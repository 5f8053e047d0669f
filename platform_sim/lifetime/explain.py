"""A profile in words: one sentence for each rule, with where it is written down.

Not here: how it is laid out for people or machines (the command line).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from platform_sim.lifetime.limits import Profile
from platform_sim.lifetime.rules import (
    ClockStart,
    CutMode,
    DisconnectRule,
    FloatingRule,
    ShutdownRule,
    Topic,
)

__all__ = ["Explained", "as_data", "explain"]

_CLOCK: Final = {
    ClockStart.RESPONSE_OVER: "starts when the response is over",
    ClockStart.REQUEST: "starts with the request",
}
_SHARED: Final = {
    ClockStart.RESPONSE_OVER: "by all wait_until calls of one request; late calls get what is left",
    ClockStart.REQUEST: "by the answer and all wait_until calls of one request",
}
_UNSETTLED: Final = {
    CutMode.CANCEL: "cancelled, and killed when it is alive {cancel_grace_s:g} s later",
    CutMode.KILL: "killed: no further line of the request runs",
    CutMode.PROCESS: "killed with its process, and with all other requests there",
    CutMode.FREEZE: "frozen while no request is served, thawed by the next request",
}
_FLOATING: Final = {
    FloatingRule.CUT: "lives while the answer or registered work holds the request, then is cut",
    FloatingRule.HOLDS: "runs to its end, as registered work does",
    FloatingRule.FREEZES: "holds nothing: frozen while no request is served, thawed by the next",
}
_DISCONNECT: Final = {
    DisconnectRule.ENDS_RESPONSE: "a client that leaves ends the response: the clock starts",
    DisconnectRule.IGNORED: "a client that leaves changes nothing",
}
_SHUTDOWN: Final = {
    ShutdownRule.WORK: "{shutdown_grace_s:g} s for answers under way and registered work",
    ShutdownRule.ANSWERS: "{shutdown_grace_s:g} s for answers under way",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """One rule of a platform.

    Attributes:
        topic: What it is about.
        rule: The rule, for people.
        source: Where it is written down.
    """

    topic: Topic
    rule: str
    source: str


def explain(profile: Profile) -> list[Explained]:
    """Return every rule of a platform, in the order in which a request meets them."""
    rules: Mapping[Topic, str] = {
        Topic.ANSWER: _answer(profile),
        Topic.DISCONNECT: _DISCONNECT[profile.on_disconnect],
        Topic.CLOCK: _CLOCK[profile.clock_start],
        Topic.ALLOWANCE: _seconds(profile.allowance_s),
        Topic.SHARED: _SHARED[profile.clock_start],
        Topic.UNSETTLED: _UNSETTLED[profile.cut].format(cancel_grace_s=profile.cancel_grace_s),
        Topic.FLOATING: _FLOATING[profile.floating],
        Topic.SCHEDULED: _seconds(profile.scheduled_limit_s),
        Topic.SHUTDOWN: _SHUTDOWN[profile.shutdown].format(
            shutdown_grace_s=profile.shutdown_grace_s
        ),
    }
    return [
        Explained(topic=topic, rule=rule, source=profile.sources[topic])
        for topic, rule in rules.items()
    ]


def as_data(profile: Profile) -> dict[str, Any]:
    """Return a profile as JSON-able data: its values, and each rule in words with its source."""
    values = {
        key: getattr(profile, key)
        for key in profile.__dataclass_fields__
        if key not in {"name", "summary", "sources"}
    }
    rules = {
        str(each.topic): {"rule": each.rule, "source": each.source} for each in explain(profile)
    }
    return {
        "name": profile.name,
        "summary": profile.summary,
        "values": values,
        "shared": True,
        "rules": rules,
    }


def _seconds(limit_s: float | None) -> str:
    return "unbounded" if limit_s is None else f"{limit_s:g} s"


def _answer(profile: Profile) -> str:
    limits_s = [profile.answer_limit_s]
    if profile.clock_start is ClockStart.REQUEST:
        limits_s.append(profile.allowance_s)
    given_s = [limit_s for limit_s in limits_s if limit_s is not None]
    if not given_s:
        return "no limit while the client waits"
    return f"{min(given_s):g} s, then the platform answers 504"
