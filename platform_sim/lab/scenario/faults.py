"""Faults as a scenario file writes them: what goes wrong, when, and to whom.

Not here: doing it (`troubles`, `replicas`, the product's wiring).
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Literal

from platform_sim.lab.scenario.table import Count, Instant, Seconds, Table

__all__ = ["Act", "Fault", "StoreFailure", "keys_of"]


class Act(StrEnum):
    """What a fault does."""

    KILL = "kill"  # no further line of the replica runs; `back_after_s` starts a new one
    FREEZE = "freeze"  # nothing of the replica is stepped
    THAW = "thaw"  # what was frozen goes on
    TERM = "term"  # orderly shutdown with `grace_s`
    CANCEL = "cancel"  # the pass of `operation` is cancelled from outside
    SKEW = "skew"  # the replica's wall clock is off by `by_s`
    STORE = "store"  # calls to the store fail in one `how`
    INDEX_LAG = "index_lag"  # the due index shows the past, `by_s` old
    DOWN = "down"  # the receiver refuses connections
    UP = "up"  # and takes them again
    BREAK_ROW = "break_row"  # the stored row loses or breaks the attributes in `attributes`


class StoreFailure(StrEnum):
    """How calls to the store fail."""

    SLOW = "slow"  # applied at once, answered `by_s` late
    THROTTLED = "throttled"  # refused for their rate, nothing written
    UNREACHABLE = "unreachable"  # no connection, nothing written
    REPLY_LOST = "reply_lost"  # applied, the reply is lost
    NOT_APPLIED = "not_applied"  # lost on the way, as silent as a lost reply
    HANGS = "hangs"  # never answered, not applied
    LATE = "late"  # applied `by_s` late, whether or not the caller still waits


class Fault(Table, frozen=True, kw_only=True):
    """Something that goes wrong.

    Attributes:
        do: What happens.
        at_s: When; or `at`, a named point.
        at: A named point: an event of the handler (`accepted`, `attempt_started`, `settled`, ...),
            of the wire (`byte_left`, `committed`), of the store (`write`) or of a client
            (`answer`).
        nth: At the n-th time this point is reached.
        operation: Only for this operation (a request's name).
        replica: Which replica: `web-1`, `redrive-1`, ...; for `store` all when left out.
        receiver: Which receiver, for `down` and `up`.
        until_s: When a store fault, a lag or an outage ends.
        count: How many calls a store fault meets at the most.
        calls: Which store calls (`accept`, `claim`, `takeover`, `confirm`, `release`, ..., `read`,
            `due`); all when left out. With `at = "write"`, which writes count.
        how: How store calls fail.
        by_s: Skew, delay or lag in seconds.
        grace_s: What TERM grants before the kill; the platform's when left out.
        back_after_s: Seconds after which a web replica that was killed or stopped is replaced;
            never when left out. A redrive replica is new at its next run in any case.
        attributes: For `break_row`: `claim_id` and `lease_until_ms` to set; an empty string takes
            one away.
    """

    do: Act
    at_s: Instant | None = None
    at: str | None = None
    nth: Count = 1
    operation: str | None = None
    replica: str | None = None
    receiver: str | None = None
    until_s: Instant | None = None
    count: Count | None = None
    calls: tuple[str, ...] = ()
    how: StoreFailure | None = None
    by_s: Seconds = 0.0
    grace_s: Instant | None = None
    back_after_s: Instant | None = None
    attributes: Mapping[Literal["claim_id", "lease_until_ms"], str | int] = {}

    def __post_init__(self) -> None:
        """Check what no single key can say."""
        self._check_instant()
        if self.calls and self.do is not Act.STORE and self.at != "write":
            raise ValueError("`calls` belongs to do = 'store', or to at = 'write'")
        if (self.how is None) == (self.do in _NEEDS["how"]):
            raise ValueError("`how` belongs to do = 'store', and is needed there")
        for name, where in _NEEDS.items():
            if self.do in where and not getattr(self, name):
                raise ValueError(f"do = {self.do.value!r} needs `{name}`")
        for name, where in _ONLY.items():
            if self.do not in where and getattr(self, name) not in _LEFT_OUT:
                raise ValueError(f"`{name}` means nothing with do = {self.do.value!r}")
        if self.by_s < 0 and self.do is not Act.SKEW:
            raise ValueError(f"`by_s` must not be negative with do = {self.do.value!r}")

    def _check_instant(self) -> None:
        if self.at_s is None and self.at is None:
            raise ValueError(f"a fault needs either `at_s` or `at` (do = {self.do.value!r})")
        if self.at_s is not None and self.at is not None:
            raise ValueError(f"a fault has `at_s` or `at`, not both (do = {self.do.value!r})")
        if self.at_s is not None and self.until_s is not None and self.until_s <= self.at_s:
            raise ValueError(f"`until_s` ({self.until_s:g}) must be later than `at_s`")


_LEFT_OUT: tuple[object, ...] = (None, 0.0, {})
_ON_REPLICAS = frozenset({Act.KILL, Act.FREEZE, Act.THAW, Act.TERM, Act.SKEW})
_NEEDS = {
    "receiver": frozenset({Act.DOWN, Act.UP}),
    "replica": _ON_REPLICAS,
    "operation": frozenset({Act.CANCEL, Act.BREAK_ROW}),
    "attributes": frozenset({Act.BREAK_ROW}),
    "by_s": frozenset({Act.INDEX_LAG}),
    "how": frozenset({Act.STORE}),
}
_ONLY = {
    "receiver": frozenset({Act.DOWN, Act.UP}),
    "replica": _ON_REPLICAS | {Act.STORE},
    "until_s": frozenset({Act.STORE, Act.INDEX_LAG, Act.DOWN}),
    "count": frozenset({Act.STORE}),
    "by_s": frozenset({Act.STORE, Act.INDEX_LAG, Act.SKEW}),
    "grace_s": frozenset({Act.TERM}),
    "back_after_s": frozenset({Act.KILL, Act.TERM}),
    "attributes": frozenset({Act.BREAK_ROW}),
}


def keys_of(act: Act) -> tuple[frozenset[str], frozenset[str]]:
    """Return the keys that a fault needs and those it may have, besides `do` and its instant."""
    needed = frozenset(key for key, acts in _NEEDS.items() if act in acts)
    allowed = {key for key, acts in _ONLY.items() if act in acts}
    return needed, frozenset(allowed | ({"calls"} if act is Act.STORE else set())) - needed
