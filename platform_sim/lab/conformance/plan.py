"""What a trace asks of an app again: its client's and its driver's part, without the outcome.

Rules: only causes are taken from a trace: requests, dispatches, how and when a client left, TERM.
The runtime's own start-up (from the client's first byte to `handler:start`, at most 0.5 s) is taken
over as a delay of the request, since it is no rule of a lifetime. The platform's ceiling is lifted
where the trace shows work beyond it: the local runtime that was recorded sets none.

Not here: playing it (`play`).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from platform_sim.lab.conformance.trace import BadTrace, Leaving, Source, Trace, TraceEvent, Word

__all__ = ["Dispatch", "Leave", "Plan", "Request", "plan_of", "shows_no_ceiling"]

_LONGEST_START_S = 0.5
_AFTER_S = 0.15
_START = "handler:start"


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave:
    """A client that leaves: when, in seconds of the trace, and how."""

    at_s: float
    how: Leaving


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request.

    Attributes:
        sent_at_s: When the client sends it.
        arrives_at_s: When the app gets it.
        path: Its path.
        method: Its method.
        leave: When its client leaves; None when it stays.
    """

    sent_at_s: float
    arrives_at_s: float
    path: str
    method: str
    leave: Leave | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispatch:
    """One scheduled run: when it is due, when the handler gets it, and its schedule."""

    at_s: float
    arrives_at_s: float
    cron: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything that is asked.

    Attributes:
        requests: In order.
        dispatches: In order.
        term_at_s: When the process is told to stop; None: never.
        end_s: When the observation ends.
    """

    requests: tuple[Request, ...]
    dispatches: tuple[Dispatch, ...]
    term_at_s: float | None
    end_s: float


def plan_of(trace: Trace) -> Plan:
    """Return what the trace asks.

    Raises:
        BadTrace: It asks nothing, or something no ASGI app or scheduled handler can be asked.
    """
    for queued in trace.of(Source.DRIVER, Word.QUEUED):
        problem = f"{queued.name!r}: the emulator has no queue consumers"
        raise BadTrace(trace.file, queued.line, "event", problem)
    requests = tuple(_requests(trace))
    dispatches = tuple(
        Dispatch(
            at_s=event.at_s,
            arrives_at_s=_arrival(trace, event),
            cron=event.fields.get("cron", ""),
        )
        for event in trace.of(Source.DRIVER, Word.SCHEDULED)
    )
    if not requests and not dispatches:
        problem = f"neither '{Word.REQUEST_SENT}' nor '{Word.SCHEDULED}': nothing is asked"
        raise BadTrace(trace.file, trace.events[-1].line, "event", problem)
    term = trace.of(Source.DRIVER, Word.TERM)
    return Plan(
        requests=requests,
        dispatches=dispatches,
        term_at_s=term[0].at_s if term else None,
        end_s=trace.end_s,
    )


def _requests(trace: Trace) -> Iterator[Request]:
    sent = trace.of(Source.CLIENT, Word.REQUEST_SENT)
    for number, event in enumerate(sent, start=1):
        until_s = sent[number].at_s if number < len(sent) else math.inf
        leaves = [
            Leave(at_s=leave.at_s, how=_how(leave))
            for leave in trace.of(Source.CLIENT, Word.DISCONNECT, Word.HALF_CLOSE)
            if event.at_s <= leave.at_s < until_s
        ]
        yield Request(
            sent_at_s=event.at_s,
            arrives_at_s=_arrival(trace, event),
            path=event.fields["path"],
            method=event.fields.get("method", "GET"),
            leave=leaves[0] if leaves else None,
        )


def _how(event: TraceEvent) -> Leaving:
    return Leaving.HALF_CLOSE if event.name == Word.HALF_CLOSE else Leaving(event.fields["how"])


def _arrival(trace: Trace, asked: TraceEvent) -> float:
    for event in trace.events:
        after_s = event.at_s - asked.at_s
        if event.source is Source.WORKER and event.name.endswith(_START) and after_s >= 0:
            return event.at_s if after_s <= _LONGEST_START_S else asked.at_s
    return asked.at_s


def shows_no_ceiling(trace: Trace, allowance_s: float) -> bool:
    """Tell whether the app is seen working later than an allowance would let it."""
    latest_s = math.inf
    for event in trace.events:
        if event.source is Source.WORKER:
            if event.at_s > latest_s:
                return True
        elif event.name in {Word.RESPONSE_END, Word.DISCONNECT}:
            latest_s = event.at_s + allowance_s + _AFTER_S
    return False
