"""What a platform grants a request: limits injected as data, never constants in the runtime.

Rules: a profile is frozen and cites its source; one that is changed is a copy
(`dataclasses.replace`). The allowance is always shared by all `wait_until` calls of one request:
no platform known to us grants each call its own.

Not here: how a limit is enforced (`invocation`, `cut`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum, unique
from types import MappingProxyType

from platform_sim.lifetime.errors import BadProfile

__all__ = [
    "GENERIC",
    "PROFILES",
    "WORKERS",
    "ClockStart",
    "CutMode",
    "DisconnectRule",
    "FloatingRule",
    "Profile",
    "ShutdownRule",
    "find_profile",
]


@unique
class ClockStart(StrEnum):
    """What the allowance is counted from."""

    RESPONSE_OVER = "response_over"  # the answer's end, or the client leaving before it
    REQUEST = "request"  # the request's start: one limit for answer and work together


@unique
class DisconnectRule(StrEnum):
    """What a client that leaves before the answer's end does to the request."""

    ENDS_RESPONSE = "ends_response"  # as if the answer had ended: the allowance starts
    IGNORED = "ignored"  # the app runs on as if the client were there


@unique
class FloatingRule(StrEnum):
    """What becomes of work the app started and never gave to `wait_until`."""

    CUT = "cut"  # it lives only while the answer or registered work holds the request
    HOLDS = "holds"  # it counts as registered: a plain process runs it to its end


@unique
class CutMode(StrEnum):
    """What a cut is."""

    CANCEL = "cancel"  # cancellation is delivered; what outlives the grace is killed
    KILL = "kill"  # no further line of the request runs: no `finally`, no `except`


@unique
class ShutdownRule(StrEnum):
    """What the shutdown grace is for."""

    WORK = "work"  # answers under way and registered work
    ANSWERS = "answers"  # answers under way; registered work is cut when no answer holds it


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The limits of one platform.

    Attributes:
        name: What `--profile` calls it.
        summary: One line for people.
        source: Where the rules are written down.
        allowance_s: Seconds granted after `clock_start`; None means unbounded.
        clock_start: What the allowance is counted from.
        on_disconnect: What a client that leaves does.
        floating: What becomes of work that was not registered.
        cut: What a cut is.
        cancel_grace_s: Seconds between a delivered cancellation and the kill of what is left.
        scheduled_limit_s: Seconds a scheduled run may take; None means unbounded.
        shutdown_grace_s: Seconds that what `shutdown` names gets when the host stops.
        shutdown: What that grace is for.

    Raises:
        BadProfile: A number is negative, or the cancel grace does not fit in the shutdown grace.
    """

    name: str
    summary: str
    source: str
    allowance_s: float | None
    clock_start: ClockStart = ClockStart.RESPONSE_OVER
    on_disconnect: DisconnectRule = DisconnectRule.ENDS_RESPONSE
    floating: FloatingRule = FloatingRule.CUT
    cut: CutMode = CutMode.CANCEL
    cancel_grace_s: float = 0.1
    scheduled_limit_s: float | None = None
    shutdown_grace_s: float = 10.0
    shutdown: ShutdownRule = ShutdownRule.WORK

    def __post_init__(self) -> None:
        limits = (self.allowance_s, self.scheduled_limit_s, self.shutdown_grace_s)
        if any(limit is not None and limit < 0 for limit in limits):
            raise BadProfile(f"profile {self.name}: a limit must not be negative")
        if not 0 < self.cancel_grace_s <= self.shutdown_grace_s:
            raise BadProfile(
                f"profile {self.name}: the cancel grace must be above 0 and fit in the shutdown "
                f"grace ({self.shutdown_grace_s} s), not {self.cancel_grace_s} s"
            )


WORKERS = Profile(
    name="workers",
    summary="30 s after the response ends or the client leaves, shared by all wait_until calls",
    source="https://developers.cloudflare.com/workers/runtime-apis/context/#waituntil; "
    "workerd 6552d999 src/workerd/io/io-context.c++:620-634; "
    "https://developers.cloudflare.com/workers/platform/limits/",
    allowance_s=30.0,
    scheduled_limit_s=900.0,
    shutdown_grace_s=30.0,
)

GENERIC = Profile(
    name="generic",
    summary="a plain server process: work runs to its end unless a ceiling is set",
    source="asyncio in a long-lived process; SIGTERM grace of 10 s as in the Cloud Run container "
    "contract, https://cloud.google.com/run/docs/container-contract",
    allowance_s=None,
    on_disconnect=DisconnectRule.IGNORED,
    floating=FloatingRule.HOLDS,
)

PROFILES: Mapping[str, Profile] = MappingProxyType(
    {profile.name: profile for profile in (WORKERS, GENERIC)}
)


def find_profile(name: str) -> Profile:
    """Return the profile of this name.

    Raises:
        BadProfile: There is none; the message lists those there are.
    """
    try:
        return PROFILES[name]
    except KeyError:
        raise BadProfile(f"no profile {name!r}; there are: {', '.join(PROFILES)}") from None
