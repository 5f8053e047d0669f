"""What front and worker tell each other: one JSON line a message, over a socket pair of their own.

Not here: who acts how on a message (`front`, `worker`).
"""

from typing import Final

import msgspec

from platform_sim.lifetime.limits import Profile

__all__ = [
    "RECYCLE_AFTER",
    "Command",
    "Dying",
    "Full",
    "Held",
    "Order",
    "Ready",
    "Released",
    "Resting",
    "Retire",
    "Serve",
    "Woken",
    "Word",
    "read_command",
    "read_order",
    "read_word",
    "write",
]


RECYCLE_AFTER: Final = 1000
"""Killed coroutines that a worker keeps before it is replaced: a few MB of frames."""


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker is told when it is started.

    Attributes:
        number: 1 for the first worker, and so on.
        app: Import string.
        profile: The limits.
        listener_fd: The socket to accept connections from, once told to.
        control_fd: The worker's end of the socket pair.
        record: Path of the file to which events are added; None: nowhere.
        access_log: Whether each request is logged.
        stall_s: Seconds after which code that blocks the event loop is reported; None: never.
        recycle_after: Killed coroutines kept, after which the worker asks to be replaced.
        sleeps: Whether the whole process stands still while no request holds it.
    """

    number: int = 0
    app: str
    profile: Profile
    listener_fd: int = -1
    control_fd: int = -1
    record: str | None = None
    access_log: bool = False
    stall_s: float | None = None
    recycle_after: int = RECYCLE_AFTER
    sleeps: bool = False


class Serve(msgspec.Struct, frozen=True, tag=True):
    """To a worker: accept connections."""


class Retire(msgspec.Struct, frozen=True, tag=True):
    """To a worker: accept no more, finish what there is, and end."""


Command = Serve | Retire


class Ready(msgspec.Struct, frozen=True, tag=True):
    """From a worker: the app has started."""


class Held(msgspec.Struct, frozen=True, tag=True):
    """From a worker whose process is cut: the ceiling of one request, if it does not see to it.

    Attributes:
        request: Which one.
        ceiling_at_s: The instant, on the machine's monotonic clock.
        text: What holds it, for people.
    """

    request: str
    ceiling_at_s: float
    text: str


class Released(msgspec.Struct, frozen=True, tag=True):
    """From a worker: a request that was held is over."""

    request: str


class Dying(msgspec.Struct, frozen=True, tag=True):
    """From a worker: this process is killed now, with that many open connections."""

    connections: int


class Full(msgspec.Struct, frozen=True, tag=True):
    """From a worker: it keeps that many killed coroutines and asks to be replaced."""

    coroutines: int


class Resting(msgspec.Struct, frozen=True, tag=True):
    """From a worker: it stands still from now on, until it gets SIGCONT."""


class Woken(msgspec.Struct, frozen=True, tag=True):
    """From a worker: it runs again."""


Word = Ready | Held | Released | Dying | Full | Resting | Woken

_COMMANDS: Final = msgspec.json.Decoder(Command)
_WORDS: Final = msgspec.json.Decoder(Word)


def write(message: Command | Word) -> bytes:
    """Return a message as one line."""
    return msgspec.json.encode(message) + b"\n"


def read_command(line: bytes) -> Command:
    """Read what the front said."""
    command: Command = _COMMANDS.decode(line)
    return command


def read_word(line: bytes) -> Word:
    """Read what a worker said."""
    word: Word = _WORDS.decode(line)
    return word


def read_order(text: str) -> Order:
    """Read what a worker is told when it is started."""
    return msgspec.json.decode(text, type=Order)
