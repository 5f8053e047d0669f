"""What the event loop still holds of a killed request, and must not run.

Rules: a killed request's own callbacks are lines of that request: its timers, its queued calls and
the done callbacks of its tasks are dropped. Kept is what may serve others: the loop's, a
transport's or a protocol's callbacks, and those of asyncio and anyio on a task, since a task group
outside the request may be waiting for that task. Async generators are taken off the list of those
the loop closes when it shuts down.

The loop has no public list of these; its attributes are read where they exist (CPython's own
loops), and elsewhere the kill stops coroutines only.

Not here: the coroutines (`gate`).
"""

import asyncio
import functools
from collections.abc import Iterable
from contextvars import Context
from typing import Any

from platform_sim.lifetime.births import CURRENT_GATE
from platform_sim.lifetime.gate import Gate, Stepper

__all__ = ["drop_residue", "serves_others"]

_SHARED = (
    asyncio.AbstractEventLoop,
    asyncio.BaseTransport,
    asyncio.BaseProtocol,
)
_KEPT_ON_TASKS = ("asyncio.", "anyio.")


def drop_residue(loop: asyncio.AbstractEventLoop, gate: Gate, killed: Iterable[Stepper]) -> None:
    """Take what belongs to a killed gate off the loop."""
    for handle in (*getattr(loop, "_ready", ()), *getattr(loop, "_scheduled", ())):
        if _born_here(handle._context, gate) and not serves_others(handle._callback):
            handle.cancel()
    closed_by_loop = getattr(loop, "_asyncgens", None)
    if closed_by_loop is not None:
        for generator in gate.generators:
            closed_by_loop.discard(generator)
    for stepper in killed:
        if stepper.task is not None:
            _drop_done_callbacks(stepper.task, gate)


def _drop_done_callbacks(task: Any, gate: Gate) -> None:
    for callback, context in list(getattr(task, "_callbacks", None) or ()):
        module = getattr(_function(callback), "__module__", None) or ""
        kept = not _is_python(callback) or module.startswith(_KEPT_ON_TASKS)
        if _born_here(context, gate) and not kept:
            task.remove_done_callback(callback)


def _born_here(context: Context | None, gate: Gate) -> bool:
    return context is not None and context.get(CURRENT_GATE) is gate


def serves_others(callback: Any) -> bool:
    """Tell whether a callback is the loop's, a transport's or asyncio's own."""
    # What is not Python code is asyncio's own stepping of tasks, without which none could end.
    return not _is_python(callback) or isinstance(
        getattr(_function(callback), "__self__", None), _SHARED
    )


def _is_python(callback: Any) -> bool:
    return hasattr(_function(callback), "__code__")


def _function(callback: Any) -> Any:
    while isinstance(callback, functools.partial):
        callback = callback.func
    return callback
