"""The scenario file: a whole world as TOML.

Rules: all instants are seconds on the scenario's own clock, which starts at 0; keys end in their
unit; an unknown key or a value of the wrong kind is refused with the key's path. The format is
stable: a key is added, never renamed. A commented example stands in `docs/scenarios.md`.

Not here: faults and expectations (`faults`, `expectations`), reading a file (`reading`), running a
scenario (`run`), judging it (`judge`, `invariants`).
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal

import msgspec

from platform_sim.lab.scenario.expectations import Expect, Totals
from platform_sim.lab.scenario.faults import Fault
from platform_sim.lab.scenario.table import (
    Count,
    Instant,
    Name,
    Positive,
    Replicas,
    Table,
    Whole,
    Word,
)
from platform_sim.world.network import Turn
from platform_sim.world.script import Step

__all__ = ["Client", "Leaving", "Platform", "Receiver", "Redrive", "Request", "Scenario"]


class Platform(Table, frozen=True, kw_only=True):
    """What the web replicas run on.

    Attributes:
        profile: A platform profile's name.
        allowance_s: Overrides the profile's allowance; 0 grants nothing after the answer.
        cut: What the cut at the ceiling is, for example `cancel` or `kill`; the profile's when
            left out.
        cancel_grace_s: Overrides the time between a delivered cancellation and the kill.
        shutdown_grace_s: Overrides what TERM grants.
        lifetime: False mounts the app behind a wrapper that drops the lifetime extension.
        middlewares: How many pass-through BaseHTTPMiddlewares stand before the app.
        web_replicas: How many web replicas there are: `web-1`, `web-2`, ...
    """

    profile: Name = "workers"
    allowance_s: Instant | None = None
    cut: str | None = None
    cancel_grace_s: Positive | None = None
    shutdown_grace_s: Instant | None = None
    lifetime: bool = True
    middlewares: Whole = 0
    web_replicas: Replicas = 1


_Replies = Annotated[tuple[Turn, ...], msgspec.Meta(min_length=1)]


class Receiver(Table, frozen=True, kw_only=True):
    """One receiver; its table's name is the destination's.

    Attributes:
        idempotent: What the destination is declared to be.
        dedupes: What the receiver really does with a repeated key; as declared when left out.
        dedupe_window_s: How long the receiver remembers a key, and is declared to.
        lookup: Whether it can be asked what became of a key.
        lookups: Scripted answers to lookups, the n-th for a key's n-th; the last one repeats. Left
            out: always the truth.
        replies: What the n-th request of a key meets; the last one repeats.
        attempt_limit_s: The destination's own attempt limit.
        function: The destination is a user's own async function, called in process, which does what
            the reply says: 2xx delivers, 422 refuses, `then = "drop"` raises, `refuse` is known
            as not delivered, any other status is not delivered.
        statuses: Status overrides, for example `{rejected_on = [409]}`.
    """

    idempotent: bool = True
    dedupes: bool | None = None
    dedupe_window_s: Positive | None = None
    lookup: bool = False
    lookups: tuple[Step, ...] = ()
    replies: _Replies = (Turn(),)
    attempt_limit_s: Positive | None = None
    function: bool = False
    statuses: Mapping[str, tuple[int, ...]] = {}

    def __post_init__(self) -> None:
        """Check what no single key can say."""
        if self.lookups and not self.lookup:
            raise ValueError("`lookups` needs `lookup = true`")

    @property
    def does_dedupe(self) -> bool:
        """Whether it really recognises a repeated key."""
        return self.idempotent if self.dedupes is None else self.dedupes


class Leaving(StrEnum):
    """How a client goes away."""

    FIN = "fin"
    RST = "rst"


class Client(Table, frozen=True, kw_only=True):
    """What the client of a request does besides waiting for its answer.

    Attributes:
        body_after_s: Seconds until the second half of its body comes; the first comes at once.
        leaves_after_s: Seconds after the request at which it goes away.
        leaves_at: A named point at which it goes away: `answer` (the moment it has the 202).
        how: By FIN or by RST.
    """

    body_after_s: Instant = 0.0
    leaves_after_s: Instant | None = None
    leaves_at: Literal["answer"] | None = None
    how: Leaving = Leaving.FIN

    def __post_init__(self) -> None:
        """Check what no single key can say."""
        if self.leaves_after_s is not None and self.leaves_at is not None:
            raise ValueError("a client leaves either at `leaves_after_s` or at `leaves_at`")


class Request(Table, frozen=True, kw_only=True):
    """One request, or a row of them.

    Attributes:
        at_s: When it arrives.
        destination: A receiver's name; `?` asks for one that there is not.
        name: What expectations call it; the key, or `request-N`, when left out.
        key: Its Idempotency-Key; `{n}` counts in a row. Left out: none is sent.
        payload: Any value that JSON has.
        replica: Which web replica it reaches.
        client: What the client does.
        count: A row of so many requests, under names and keys of their own.
        every_s: Seconds between the requests of a row.
        repeats_at_s: The same request again at these instants, under the same key.
        replies: What this operation's requests meet at the receiver, in place of its own replies.
    """

    at_s: Instant = 0.0
    destination: Name
    name: Name | None = None
    key: str | None = None
    payload: Any = None
    replica: Name = "web-1"
    client: Client = Client()
    count: Count = 1
    every_s: Instant = 0.0
    repeats_at_s: tuple[Instant, ...] = ()
    replies: _Replies | None = None


class Redrive(Table, frozen=True, kw_only=True):
    """The scheduled function.

    Attributes:
        every_s: Seconds between runs.
        first_at_s: The first run; `every_s` when left out.
        until_s: No run starts after this; the scenario's end when left out.
        life_s: The scheduled limit of one run; what still runs then is cancelled.
        replicas: How many run at each tick: `redrive-1`, `redrive-2`, ...; 0 for none.
        stagger_s: Seconds between the starts of the replicas of one tick.
    """

    every_s: Positive = 60.0
    first_at_s: Instant | None = None
    until_s: Instant | None = None
    life_s: Positive | None = None
    replicas: Whole = 1
    stagger_s: Instant = 0.0


class Scenario(Table, frozen=True, kw_only=True):
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

    name: Name
    about: str = ""
    seed: int = 1
    run_for_s: Positive = 300.0
    platform: Platform = Platform()
    handler: Mapping[str, Any] = {}
    receivers: Mapping[Word, Receiver] = {}
    requests: tuple[Request, ...] = ()
    faults: tuple[Fault, ...] = ()
    redrive: Redrive = Redrive()
    expect: tuple[Expect, ...] = ()
    totals: tuple[Totals, ...] = ()
