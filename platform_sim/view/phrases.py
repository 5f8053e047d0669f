"""One sentence for each kind of event, for the text timeline.

Rules: a kind that is not listed, or whose fields are not as expected, is said by its name and its
fields: a recording of tomorrow can still be read.

Not here: the layout (`timeline`).
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from platform_sim.view.event import EventKind

__all__ = ["phrase"]

_Fields = Mapping[str, Any]
_UNSAID: Final = frozenset({"level", "timestamp", "event", "action"})


def phrase(kind: str, fields: _Fields) -> str:
    """Say an event in words."""
    say = _PHRASES.get(kind)
    if say is not None:
        try:
            return say(fields)
        except (KeyError, TypeError, ValueError, AttributeError):
            pass  # not as expected: said by its fields
    return " ".join([kind, *_pairs(fields)])


def _pairs(fields: _Fields) -> list[str]:
    return [
        f"{name}={value}"
        for name, value in fields.items()
        if name not in _UNSAID and value is not None
    ]


def _seconds(value: float | None) -> str:
    return "unbounded" if value is None else f"{round(value, 3):g} s"


def _text(fields: _Fields) -> str:
    return str(fields["text"])


def _started(fields: _Fields) -> str:
    allowance = _seconds(fields.get("allowance_s"))
    return f"starts: profile {fields['profile']}, allowance {allowance}, cut {fields['cut']}"


def _done(fields: _Fields) -> str:
    late = " after its cut" if fields.get("after_cut") else ""
    return f"work {fields['task']} ended{late}: {fields['name']}"


def _failed(fields: _Fields) -> str:
    return f"work {fields['task']} failed: {fields['name']}: {fields['error']}"


def _cancelled(fields: _Fields) -> str:
    by = "cut" if fields["by"] == "platform" else "cancelled by the app"
    return f"work {fields['task']} {by}: {fields['name']}"


def _action(fields: _Fields) -> str:
    return " ".join([f"app: {fields['action']}", *_pairs(fields)])


def _run_ended(fields: _Fields) -> str:
    error = f": {fields['error']}" if fields.get("error") else ""
    did = {name: value for name, value in (fields.get("summary") or {}).items() if value}
    return " ".join([f"run {fields['ending']}{error}", *_pairs(did)])


_PHRASES: Final[Mapping[str, Callable[[_Fields], str]]] = {
    EventKind.STARTED: _started,
    EventKind.REQUEST: lambda fields: str(fields["name"]),
    EventKind.RESPONSE_START: lambda fields: f"answer begins: {fields['status']}",
    EventKind.RESPONSE_END: lambda fields: (
        f"response over ({fields['how']}), allowance left {_seconds(fields['remaining_s'])}"
    ),
    EventKind.BODY_OVER: lambda fields: f"the body that was handed over ends ({fields['how']})",
    EventKind.CLIENT_LEFT: lambda fields: (
        f"client left, allowance left {_seconds(fields['remaining_s'])}"
    ),
    EventKind.OVERDUE: lambda fields: (
        f"answer overdue after {_seconds(fields['limit_s'])}: the platform answers 504"
    ),
    EventKind.REGISTERED: lambda fields: (
        f"wait_until: work {fields['task']}, {fields['name']}, allowance left "
        f"{_seconds(fields['remaining_s'])}"
    ),
    EventKind.TASK_DONE: _done,
    EventKind.TASK_FAILED: _failed,
    EventKind.TASK_CANCELLED: _cancelled,
    EventKind.TASK_KILLED: lambda fields: f"work {fields['task']} killed: {fields['name']}",
    EventKind.TASK_ABANDONED: lambda fields: f"work {fields['task']} let go: {fields['name']}",
    EventKind.APP_FAILED: lambda fields: f"app call failed: {fields['error']}",
    EventKind.APP_CANCELLED: lambda _: "app call cut",
    EventKind.APP_KILLED: lambda _: "app call killed",
    EventKind.FLOATING_CANCELLED: lambda fields: (
        f"unregistered work cut: {fields['name']}, {fields['created']}"
    ),
    EventKind.FLOATING_KILLED: lambda fields: (
        f"unregistered work killed: {fields['name']}, {fields['created']}"
    ),
    EventKind.CUT: lambda fields: f"CUT {fields['text']}",
    EventKind.CONTEXT_END: lambda fields: f"over ({fields['reason']})",
    EventKind.UNHELD: _text,
    EventKind.FROZEN: lambda _: "frozen",
    EventKind.THAWED: lambda fields: f"goes on after a sleep of {_seconds(fields['frozen_s'])}",
    EventKind.PROCESS_KILLED: _text,
    EventKind.STALL: _text,
    EventKind.ACTION: _action,
    EventKind.RUN_STARTED: lambda fields: str(fields["name"]),
    EventKind.RUN_ENDED: _run_ended,
    EventKind.WORKER: _text,
}
