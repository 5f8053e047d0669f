"""The report of a finished invocation, as the recorded runtime's tail gives it.

Rules: it comes when the invocation is wholly over: its context, and a body that was handed over.
What an orderly stop cut is not reported, since the process is gone by then. A request's outcome is
`exception` when the app failed before its answer; a scheduled run's when anything of it failed.

Not here: the record itself (`platform_sim.view`).
"""

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from platform_sim.lab.conformance.trace import Source, Word
from platform_sim.lifetime.cut import EndReason
from platform_sim.view.event import Event, EventKind

__all__ = ["Note", "Tail"]

Note = Callable[..., None]
"""`note(source, event, **fields)`: takes down what happens now."""

_REPR = re.compile(r"(?P<kind>\w+)\((?P<message>.*)\)", re.DOTALL)


@dataclass(slots=True)
class _Invocation:
    """What is known of one invocation so far."""

    status: int | None = None
    exceptions: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    failed: bool = False
    handing_over: bool = False
    ended: str | None = None


class Tail:
    """An observer that notes the report of each invocation."""

    def __init__(self, note: Note, *, scheduled: bool = False) -> None:
        self._note = note
        self._scheduled = scheduled
        self._known: dict[str, _Invocation] = {}

    def observe(self, event: Event) -> None:
        """Take in one event of the emulator's record."""
        known = self._known.setdefault(event.invocation_id, _Invocation())
        match event.kind:
            case EventKind.RESPONSE_START:
                known.status = event.fields["status"]
            case EventKind.RESPONSE_END if event.fields["how"] == "handed_over":
                known.handing_over = True
            case EventKind.BODY_OVER:
                known.handing_over = False
            case EventKind.APP_FAILED:
                known.exceptions.append(_spoken(event.fields["error"]))
                known.failed = known.failed or not event.fields["after_response"]
            case EventKind.TASK_FAILED:
                known.exceptions.append(_spoken(event.fields["error"]))
            case EventKind.CUT if event.fields["reason"] == EndReason.CEILING:
                known.warnings.append(event.fields["text"])
            case EventKind.CONTEXT_END:
                known.ended = event.fields["reason"]
            case _:
                return
        if known.ended is not None and not known.handing_over:
            del self._known[event.invocation_id]
            self._report(known)

    def _report(self, known: _Invocation) -> None:
        if known.ended == EndReason.SHUTDOWN:
            return
        self._note(
            Source.TAIL,
            Word.REPORTED,
            outcome=self._outcome(known),
            status=None if self._scheduled or known.failed else known.status,
            exceptions=known.exceptions,
            warnings=known.warnings,
        )

    def _outcome(self, known: _Invocation) -> str:
        if self._scheduled and known.ended == EndReason.CEILING:
            return "exceeded"
        failed = bool(known.exceptions) if self._scheduled else known.failed
        return "exception" if failed else "ok"


def _spoken(error: str) -> str:
    """Turn `ValueError('x')`, as errors are recorded, into `ValueError: x`."""
    shape = _REPR.fullmatch(error)
    if shape is None:
        return error
    try:
        message: Any = ast.literal_eval(shape["message"])
    except (ValueError, SyntaxError):
        message = shape["message"]
    return f"{shape['kind']}: {message}"
