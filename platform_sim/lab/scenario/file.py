"""The scenario file: a whole world as TOML, every key of it listed here.

Rules: all instants are seconds on the scenario's own clock, which starts at 0; keys end in their
unit; an unknown key or a value of the wrong kind is refused with the key's path. The format is
stable: a key is added, never renamed. A commented example stands in `docs/scenarios.md`.

Not here: running a scenario (`run`), judging it (`judge`, `invariants`).
"""

import tomllib
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import msgspec

from platform_sim.world.network import Turn
from platform_sim.world.script import Step

__all__ = [
    "Act",
    "BadScenario",
    "Client",
    "Expect",
    "Fault",
    "Leaving",
    "Platform",
    "Range",
    "Receiver",
    "Redrive",
    "Request",
    "Scenario",
    "StoreFailure",
    "Totals",
    "parse_scenario",
    "read_scenario",
]

_Instant = Annotated[float, msgspec.Meta(ge=0)]
_Positive = Annotated[float, msgspec.Meta(gt=0)]
_Count = Annotated[int, msgspec.Meta(ge=1)]
_Whole = Annotated[int, msgspec.Meta(ge=0)]
_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]


class BadScenario(ValueError):
    """The file is no scenario; the message names the key and what is allowed there."""


class _Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A TOML table in which an unknown key is an error."""


class Platform(_Table, frozen=True, kw_only=True):
    """What the web replicas run on.

    Attributes:
        profile: A platform profile's name.
        allowance_s: Overrides the profile's allowance; 0 grants nothing after the answer.
        cut: What the cut is: `cancel`, `kill` or `freeze`.
        shutdown_grace_s: Overrides what TERM grants.
        lifetime: False mounts the app behind a wrapper that drops the lifetime extension.
        middlewares: How many pass-through BaseHTTPMiddlewares stand before the app.
        web_replicas: How many web replicas there are: `web-1`, `web-2`, ...
    """

    profile: _Name = "workers"
    allowance_s: Annotated[float, msgspec.Meta(ge=0)] | None = None
    cut: str | None = None
    shutdown_grace_s: _Instant | None = None
    lifetime: bool = True
    middlewares: _Whole = 0
    web_replicas: _Count = 1


class Receiver(_Table, frozen=True, kw_only=True):
    """One receiver; its table's name is the destination's.

    Attributes:
        idempotent: What the destination is declared to be.
        dedupes: What the receiver really does with a repeated key; as declared when left out.
        dedupe_window_s: How long the receiver remembers a key, and is declared to.
        lookup: Whether it can be asked what became of a key.
        lookups: Scripted answers to lookups, the n-th for a key's n-th; else the truth.
        replies: What the n-th request of a key meets; the last one repeats.
        attempt_limit_s: The destination's own attempt limit.
        function: The destination is a user's own async function, called in process, which does what
            the reply says: a status, or raising at `drop`.
        statuses: Status overrides, for example `{rejected_on = [409]}`.
    """

    idempotent: bool = True
    dedupes: bool | None = None
    dedupe_window_s: _Positive | None = None
    lookup: bool = False
    lookups: tuple[Step, ...] = ()
    replies: Annotated[tuple[Turn, ...], msgspec.Meta(min_length=1)] = (Turn(),)
    attempt_limit_s: _Positive | None = None
    function: bool = False
    statuses: Mapping[str, tuple[int, ...]] = {}


class Leaving(StrEnum):
    """How a client goes away."""

    FIN = "fin"
    RST = "rst"


class Client(_Table, frozen=True, kw_only=True):
    """What the client of a request does besides waiting for its answer.

    Attributes:
        leaves_after_s: Seconds after the request at which it goes away.
        leaves_at: A named point at which it goes away: `answer` (the moment it has the 202).
        how: By FIN or by RST.
    """

    leaves_after_s: _Instant | None = None
    leaves_at: str | None = None
    how: Leaving = Leaving.FIN


class Request(_Table, frozen=True, kw_only=True):
    """One request, or a row of them.

    Attributes:
        name: What expectations call it; the key, or `request-N`, when left out.
        at_s: When it arrives.
        destination: A receiver's name.
        key: Its Idempotency-Key; `{n}` counts in a row. Left out: none is sent.
        payload: Any value.
        replica: Which web replica it reaches.
        client: What the client does.
        count, every_s: A row of `count` requests, `every_s` apart.
        repeats_at_s: The same request again at these instants, under the same key.
    """

    at_s: _Instant = 0.0
    destination: _Name
    name: _Name | None = None
    key: str | None = None
    payload: Any = None
    replica: _Name = "web-1"
    client: Client = Client()
    count: _Count = 1
    every_s: _Instant = 0.0
    repeats_at_s: tuple[_Instant, ...] = ()


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

    SLOW = "slow"  # answered `by_s` late
    THROTTLED = "throttled"  # refused for their rate, nothing written
    UNREACHABLE = "unreachable"  # no connection, nothing written
    REPLY_LOST = "reply_lost"  # applied, the reply is lost
    NOT_APPLIED = "not_applied"  # lost on the way, as silent as a lost reply
    HANGS = "hangs"  # never answered, not applied
    LATE = "late"  # the caller is cut off, and the write lands `by_s` after it was made


class Fault(_Table, frozen=True, kw_only=True):
    """Something that goes wrong.

    Attributes:
        do: What happens.
        at_s: When; or `at`, a named point.
        at: An event of the handler (`accepted`, `attempt_started`, `attempt_ended`, `settled`,
            `claimed`, `taken_over`, ...) or of the wire (`byte_left`, `committed`).
        nth: At the n-th time this point is reached.
        operation: Only for this operation (a request's name).
        replica: Which replica: `web-1`, `redrive-1`, ...; for `store` all when left out.
        receiver: Which receiver, for `down` and `up`.
        until_s: When a store fault or a lag ends.
        count: How many calls a store fault meets at the most.
        calls: Which store calls: `accept`, `claim`, `takeover`, `confirm`, `release`, ..., `read`,
            `due`; all when left out.
        how: How store calls fail.
        by_s: Skew, delay or lag in seconds.
        grace_s: What TERM grants before the kill.
        back_after_s: Seconds after which a killed replica is replaced; never when left out.
        attributes: For `break_row`: stored attributes to set; an empty string takes one away.
    """

    do: Act
    at_s: _Instant | None = None
    at: str | None = None
    nth: _Count = 1
    operation: str | None = None
    replica: str | None = None
    receiver: str | None = None
    until_s: _Instant | None = None
    count: _Count | None = None
    calls: tuple[str, ...] = ()
    how: StoreFailure | None = None
    by_s: float = 0.0
    grace_s: _Instant = 0.0
    back_after_s: _Instant | None = None
    attributes: Mapping[str, str | int] = {}

    def __post_init__(self) -> None:
        """Check what no single key can say."""
        if (self.at_s is None) == (self.at is None):
            raise ValueError(f"a fault needs either `at_s` or `at` (do = {self.do.value!r})")
        if (self.how is None) == (self.do is Act.STORE):
            raise ValueError("`how` belongs to do = 'store', and is needed there")
        if self.do in {Act.DOWN, Act.UP} and self.receiver is None:
            raise ValueError(f"do = {self.do.value!r} needs `receiver`")
        if self.do in _ON_REPLICAS and self.replica is None:
            raise ValueError(f"do = {self.do.value!r} needs `replica`")
        if self.do in {Act.CANCEL, Act.BREAK_ROW} and self.operation is None:
            raise ValueError(f"do = {self.do.value!r} needs `operation`")


_ON_REPLICAS = frozenset({Act.KILL, Act.FREEZE, Act.THAW, Act.TERM, Act.SKEW})


class Redrive(_Table, frozen=True, kw_only=True):
    """The scheduled function.

    Attributes:
        first_at_s: The first run; `every_s` when left out.
        every_s: Seconds between runs.
        until_s: No run starts after this; the scenario's end when left out.
        life_s: The scheduled limit of one run; what still runs then is cancelled.
        replicas: How many run at each tick: `redrive-1`, `redrive-2`, ...
        stagger_s: Seconds between the starts of the replicas of one tick.
    """

    every_s: _Positive = 60.0
    first_at_s: _Instant | None = None
    until_s: _Instant | None = None
    life_s: _Positive | None = None
    replicas: _Whole = 1
    stagger_s: _Instant = 0.0


class Range(_Table, frozen=True, kw_only=True):
    """A number between two bounds, both included; either may be left out."""

    min: float | None = None
    max: float | None = None


_Number = int | float | Range


class Expect(_Table, frozen=True, kw_only=True):
    """What must be so of one operation, or of each that a pattern names.

    Attributes:
        operation: A request's name; `*` stands for any characters. at_s: When it must be so; at
        the end when left out. state: The marker's state; `absent` when there must be none.
        attempts, passes, unknown, last_status, last_outcome, reason: The marker's fields;
        `reason` is
            a part of the text.
        wire, effects: What the receiver's ledger counts.
        claims, refused_writes: How many claims it had, how many writes were refused.
        answers: The statuses its clients got, in order; `dropped` where a client left before one.
        attempt_starts_s, attempt_ends_s: When its attempts ran, within 0.05 s.
        outcomes: What its attempts came to, in order.
        history: The states it went through, in order.
        settled_at_s: When it was settled.
    """

    operation: _Name
    at_s: _Instant | None = None
    state: str | None = None
    attempts: _Number | None = None
    passes: _Number | None = None
    unknown: bool | None = None
    last_status: _Number | None = None
    last_outcome: str | None = None
    reason: str | None = None
    wire: _Number | None = None
    effects: _Number | None = None
    claims: _Number | None = None
    refused_writes: _Number | None = None
    answers: tuple[int | str, ...] | None = None
    attempt_starts_s: tuple[float, ...] | None = None
    attempt_ends_s: tuple[float, ...] | None = None
    outcomes: tuple[str, ...] | None = None
    history: tuple[str, ...] | None = None
    settled_at_s: _Number | None = None


class Totals(_Table, frozen=True, kw_only=True):
    """What must be so of everything together.

    Attributes:
        at_s: When; at the end when left out.
        operations: Acknowledged operations.
        states: How many operations are in each state.
        wire, effects: Sums over all receivers.
        counts: How often the handler told of an action (`turned_away`, `claim_lost`, ...).
        startup: `refused` when the app must refuse to start, with `startup_says` in its message.
    """

    at_s: _Instant | None = None
    operations: _Number | None = None
    states: Mapping[str, _Number] = {}
    wire: _Number | None = None
    effects: _Number | None = None
    counts: Mapping[str, _Number] = {}
    startup: str | None = None
    startup_says: str | None = None


class Scenario(_Table, frozen=True, kw_only=True):
    """A whole world.

    Attributes:
        name: What this shows, in a sentence.
        about: More of it.
        seed: Every random choice comes from it.
        run_for_s: When the scenario ends; nothing is waited for in real time.
        platform: What the web replicas run on.
        handler: The handler's settings by their names (`budget_s`, `reserve_s`, ...).
        receivers: By name.
        requests: What clients send.
        faults: What goes wrong.
        redrive: The scheduled function.
        expect: What must be so of operations.
        totals: What must be so of everything together.
    """

    name: str
    about: str = ""
    seed: int = 1
    run_for_s: _Positive = 300.0
    platform: Platform = Platform()
    handler: Mapping[str, Any] = {}
    receivers: Mapping[str, Receiver] = {}
    requests: tuple[Request, ...] = ()
    faults: tuple[Fault, ...] = ()
    redrive: Redrive = Redrive()
    expect: tuple[Expect, ...] = ()
    totals: tuple[Totals, ...] = ()


def read_scenario(path: Path) -> Scenario:
    """Read a scenario file.

    Raises:
        BadScenario: It cannot be read, or something in it is not allowed.
    """
    try:
        return parse_scenario(path.read_text("utf-8"))
    except OSError as error:
        raise BadScenario(f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadScenario(f"is not UTF-8: {error}") from error


def parse_scenario(text: str) -> Scenario:
    """Read a scenario from TOML text.

    Raises:
        BadScenario: Something in it is not allowed; the message names the key.
    """
    try:
        scenario = msgspec.convert(tomllib.loads(text), Scenario)
    except tomllib.TOMLDecodeError as error:
        raise BadScenario(f"is not TOML: {error}") from error
    except msgspec.ValidationError as error:
        raise BadScenario(_named(str(error))) from error
    _check_names(scenario)
    return scenario


def _named(message: str) -> str:
    """Turn msgspec's path (`$.requests[0].at_s`) into the key's."""
    text, _, path = message.partition(" - at `")
    where = path.rstrip("`").removeprefix("$").removeprefix(".")
    return f"{where}: {text}" if where else text


def _check_names(scenario: Scenario) -> None:
    for place, request in enumerate(scenario.requests):
        if request.destination not in scenario.receivers and request.destination != "?":
            known = ", ".join(scenario.receivers) or "none"
            raise BadScenario(
                f"requests[{place}].destination: no receiver is named {request.destination!r}; "
                f"receivers: {known}"
            )
    webs = {f"web-{n}" for n in range(1, scenario.platform.web_replicas + 1)}
    replicas = webs | {f"redrive-{n}" for n in range(1, scenario.redrive.replicas + 1)}
    for place, request in enumerate(scenario.requests):
        if request.replica not in webs:
            raise BadScenario(
                f"requests[{place}].replica: {request.replica!r} is none of {sorted(webs)}"
            )
    for place, fault in enumerate(scenario.faults):
        if fault.replica is not None and fault.replica not in replicas:
            raise BadScenario(
                f"faults[{place}].replica: {fault.replica!r} is none of {sorted(replicas)}"
            )
        if fault.receiver is not None and fault.receiver not in scenario.receivers:
            raise BadScenario(f"faults[{place}].receiver: no receiver is named {fault.receiver!r}")
