"""What happened to a request: one frozen record per fact, of a closed set of kinds.

Rules: an event is written when the fact is a fact, in the order of the facts; `at_s` is in seconds
since the emulator started, on the emulator's own clock (virtual or real). Fields hold only JSON
values, so every event can be written to a file and read back.

Not here: who listens (`recorder`), and any judgement about the facts.
"""

from collections.abc import Mapping
from enum import StrEnum, unique
from typing import Any

import msgspec

__all__ = ["Event", "EventKind"]


@unique
class EventKind(StrEnum):
    """Every kind of fact the emulator records. `fields` are named after each kind."""

    STARTED = "started"  # profile, allowance_s, cut, wall_ms: the run these events belong to
    REQUEST = "request"  # name (method and path)
    RESPONSE_START = "response_start"  # status
    RESPONSE_END = "response_end"  # how: complete, failed, missing, handed_over; remaining_s
    BODY_OVER = "body_over"  # how: complete, left, failed: what was handed over is over
    CLIENT_LEFT = "client_left"  # remaining_s
    OVERDUE = "overdue"  # limit_s: the platform answers in the app's place
    REGISTERED = "registered"  # task, name, remaining_s
    TASK_DONE = "task_done"  # task, name, after_cut
    TASK_FAILED = "task_failed"  # task, name, error, traceback, after_cut
    TASK_CANCELLED = "task_cancelled"  # task, name, by: platform, app; text when by platform
    TASK_KILLED = "task_killed"  # task, name, text
    TASK_ABANDONED = "task_abandoned"  # task, name, text: not ours to cut; nobody waits any more
    APP_FAILED = "app_failed"  # error, traceback, after_response
    APP_CANCELLED = "app_cancelled"  # text
    APP_KILLED = "app_killed"  # text
    FLOATING_CANCELLED = "floating_cancelled"  # name, text, created
    FLOATING_KILLED = "floating_killed"  # name, text, created
    CUT = "cut"  # reason, mode, names, helpers, text: one line for people
    CONTEXT_END = "context_end"  # reason
    UNHELD = "unheld"  # reason, names, text: what is left runs only while others hold the process
    FROZEN = "frozen"  # nothing holds the process: it stands still
    THAWED = "thawed"  # frozen_s: a request came
    PROCESS_KILLED = "process_killed"  # shared_with, text: by its cut, or from outside
    STALL = "stall"  # file, line, function, length_s, text: code that blocked the event loop
    ACTION = "action"  # action, and what else the app's own log line says
    RUN_STARTED = "run_started"  # name: a scheduled run
    RUN_ENDED = "run_ended"  # ending, took_s, summary, error
    WORKER = "worker"  # text: what became of a worker process


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """One fact.

    Attributes:
        at_s: Seconds since the emulator started.
        kind: Which fact.
        invocation_id: The request it belongs to; empty for facts about the whole run.
        fields: JSON values, named in `EventKind`.
    """

    at_s: float
    kind: EventKind
    invocation_id: str
    fields: Mapping[str, Any] = {}
