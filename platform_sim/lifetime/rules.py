"""The words in which platforms differ: closed sets that a profile chooses from.

Not here: the numbers (`limits`), which platform follows which rule (`profile`), and how a rule is
enforced (`invocation`, `emulator`).
"""

from enum import StrEnum, unique

__all__ = ["ClockStart", "CutMode", "DisconnectRule", "FloatingRule", "ShutdownRule", "Topic"]


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
    FREEZES = "freezes"  # it holds nothing, and runs whenever a request lets the process run


@unique
class CutMode(StrEnum):
    """What a cut is: what becomes of unsettled work when the allowance ends."""

    CANCEL = "cancel"  # cancellation is delivered; what outlives the grace is killed
    KILL = "kill"  # no further line of the request runs: no `finally`, no `except`
    PROCESS = "process"  # SIGKILL of the process, and of every request it is at
    FREEZE = "freeze"  # it stays as it is, and goes on whenever a request lets the process run


@unique
class ShutdownRule(StrEnum):
    """What the shutdown grace is for."""

    WORK = "work"  # answers under way and registered work
    ANSWERS = "answers"  # answers under way; registered work is cut when no answer holds it


@unique
class Topic(StrEnum):
    """What is said of a platform, and has a source."""

    CLOCK = "clock"  # what starts the allowance's clock
    ALLOWANCE = "allowance"  # what bounds it
    SHARED = "shared"  # who gets it together
    UNSETTLED = "unsettled"  # what becomes of work that has not ended when it does
    FLOATING = "floating"
    DISCONNECT = "disconnect"
    ANSWER = "answer"  # limits before the response
    SCHEDULED = "scheduled"
    SHUTDOWN = "shutdown"
