"""The words of a trace: who tells, what the emulator makes something of, and with which fields.

Rules: the app's own log is free in words and fields; the others say only what stands here, so that
nothing in a trace is passed over in silence.

Not here: reading a line (`trace`).
"""

from collections.abc import Mapping
from enum import StrEnum, unique
from typing import Final

__all__ = ["FIELDS", "Leaving", "Source", "Word"]


@unique
class Source(StrEnum):
    """Who saw the event."""

    WORKER = "worker"  # the app's own log
    CLIENT = "client"
    TAIL = "tail"  # the runtime's report of a finished invocation
    DRIVER = "driver"  # whoever ran the observation
    PROCESS = "process"  # the runtime's process


@unique
class Word(StrEnum):
    """The events that mean something to the emulator; the app's own log is free."""

    REQUEST_SENT = "request:sent"
    DISCONNECT = "disconnect"
    HALF_CLOSE = "half-close (FIN, still reading)"
    HEADERS = "response:headers"
    CHUNK = "response:chunk"
    RESPONSE_END = "response:end"
    ABORTED = "response:aborted"  # ours only: the connection closed inside the answer
    REPORTED = "invocation:reported"
    SCHEDULED = "sched:dispatched"
    SCHEDULED_RESULT = "sched:result"
    QUEUED = "queue:dispatched"
    QUEUED_RESULT = "queue:result"
    TERM = "SIGTERM sent"
    EXITED = "exited"
    OBSERVATION_END = "observation:end"


@unique
class Leaving(StrEnum):
    """How a client leaves."""

    CLOSE = "close"  # FIN
    RESET = "reset"  # RST
    HALF_CLOSE = "halfclose"  # FIN, and it keeps reading


FIELDS: Final[Mapping[Source, Mapping[Word, tuple[str, ...]]]] = {
    Source.CLIENT: {
        Word.REQUEST_SENT: ("path", "method"),
        Word.DISCONNECT: ("how",),
        Word.HALF_CLOSE: (),
        Word.HEADERS: ("status",),
        Word.CHUNK: ("n",),
        Word.RESPONSE_END: ("body", "chunks"),
        Word.ABORTED: (),
    },
    Source.TAIL: {Word.REPORTED: ("outcome", "status", "exceptions", "warnings")},
    Source.DRIVER: {
        Word.SCHEDULED: ("cron",),
        Word.SCHEDULED_RESULT: ("result",),
        Word.QUEUED: (),
        Word.QUEUED_RESULT: ("result",),
        Word.TERM: (),
        Word.OBSERVATION_END: (),
    },
    Source.PROCESS: {Word.EXITED: ("rc",)},
}
"""The words of each source but the app, and the fields of each."""
