"""Script: what a receiver does, request by request, as data.

A script is a list of steps. The n-th wire request that carries one key uses step n; the last step
repeats. Scripts come from people (a request's payload, an HTTP call, a scenario file), so they are
validated here and every mistake is reported with the path of the field.

Doing what a step says is not here: see `receiver`.
"""

from enum import StrEnum
from typing import Annotated

import msgspec

__all__ = ["Commit", "Script", "ScriptError", "Step", "Then", "parse_script", "parse_steps"]


class Commit(StrEnum):
    """When the effect of a request becomes real, counted from its arrival."""

    BEFORE = "before"  # at arrival
    AFTER = "after"  # when the delay is over, just before the reply
    NEVER = "never"


class Then(StrEnum):
    """What happens on the connection once the delay is over."""

    REPLY = "reply"
    HANG = "hang"  # no reply, the connection stays open
    DROP = "drop"  # the connection is closed without a byte


class Step(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one wire request meets.

    Attributes:
        delay_s: Seconds between arrival and what `then` says.
        status: Status of the reply.
        headers: Headers added to the reply, such as `Retry-After`.
        commit: When the effect happens; left out: "after" for a 2xx that is or would have been
            replied, else "never".
        then: Reply, hang or drop.
        replay: Whether the receiver's dedupe may answer instead of this step (200 for a key that
            is done, 409 for one in progress). Even without, a deduped key has one effect.
        key_lease_s: The receiver takes the key and loses the effect (it crashed in between): for
            so many seconds a deduped key is in progress there, then as if it had never come. Only
            with a commit of "never".
    """

    delay_s: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    status: Annotated[int, msgspec.Meta(ge=200, le=599)] = 200
    headers: dict[str, str] = {}
    commit: Commit | None = None
    then: Then = Then.REPLY
    replay: bool = True
    key_lease_s: Annotated[float, msgspec.Meta(gt=0)] | None = None

    def __post_init__(self) -> None:
        """Check what no single field can say."""
        if self.key_lease_s is not None and self.commits is not Commit.NEVER:
            raise ValueError('`key_lease_s` needs `commit = "never"`')

    @property
    def commits(self) -> Commit:
        """When the effect happens, with the default filled in."""
        if self.commit is not None:
            return self.commit
        return Commit.AFTER if self.status < 300 else Commit.NEVER  # noqa: PLR2004  end of 2xx


Steps = Annotated[tuple[Step, ...], msgspec.Meta(min_length=1)]


class Script(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The steps of one endpoint and how it treats repeats of a key.

    Attributes:
        steps: At least one.
        dedupe: Whether repeats of a key are recognised; None: as the receiver was told.
        dedupe_window_s: Seconds for which a key is remembered after its effect; None: for ever.
    """

    steps: Steps = (Step(),)
    dedupe: bool | None = None
    dedupe_window_s: Annotated[float, msgspec.Meta(gt=0)] | None = None

    def step(self, number: int) -> Step:
        """Return the step for the `number`-th request of a key, counted from 1."""
        return self.steps[min(number, len(self.steps)) - 1]


class ScriptError(ValueError):
    """A script is not one; the message names the field and what is allowed there."""


def parse_script(source: object) -> Script:
    """Read a script from decoded JSON or TOML: a list of steps, or an object with `steps`.

    Raises:
        ScriptError: Something in it is not allowed.
    """
    if isinstance(source, list):
        source = {"steps": source}
    try:
        return msgspec.convert(source, Script)
    except msgspec.ValidationError as invalid:
        raise ScriptError(f"bad script: {invalid}") from invalid


def parse_steps(body: bytes) -> tuple[Step, ...] | None:
    """Read the steps that a request carries itself under the key `receiver`; None without them.

    Raises:
        ScriptError: There is such a key and its value is no list of steps.
    """
    try:
        payload = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return None
    if not isinstance(payload, dict) or "receiver" not in payload:
        return None
    return parse_script({"steps": payload["receiver"]}).steps
