"""Freezing a request: nothing of it happens until the thaw, while the world's time goes on.

Rules: its coroutines are held at their gate, and its timers and queued calls are taken off the
event loop and put back at the thaw, where those whose time has passed fire at once, as in a
machine that was suspended. What others do to it meanwhile (a reply that arrives) waits at the
gate. Connections stay open.

The loop has no public list of its timers; its attributes are read where they exist (CPython's own
loops), and elsewhere only the coroutines are held.

Not here: who freezes and when (`invocation`, the lab), clocks (`platform_sim.world.clocks`).
"""

import heapq
from asyncio import AbstractEventLoop, Handle
from contextvars import Context
from typing import Any

from platform_sim.lifetime.births import CURRENT_GATE
from platform_sim.lifetime.gate import Gate, GateState
from platform_sim.lifetime.residue import serves_others

__all__ = ["freeze", "thaw"]


def freeze(loop: AbstractEventLoop, gate: Gate) -> None:
    """Hold everything of a gate until `thaw`; nothing to do for one that is not open.

    Called from inside one of its steps, the step goes on to its next await; what it still puts on
    the loop until then is held too.
    """
    if gate.state is not GateState.OPEN:
        return
    gate.freeze()
    _park(loop, gate)
    loop.call_soon(_park, loop, gate, context=Context())


def _park(loop: AbstractEventLoop, gate: Gate) -> None:
    if gate.state is not GateState.FROZEN:
        return
    scheduled, ready = _queues(loop)
    timers = [handle for handle in scheduled if _is_of(handle, gate)]
    calls = [handle for handle in ready if _is_of(handle, gate)]
    for handle in timers:
        scheduled.remove(handle)
        handle._scheduled = False  # a cancelled timer must not be counted as one of the loop's
    heapq.heapify(scheduled)
    for handle in calls:
        # The loop has counted what it will run in this turn: something must stand in its place.
        ready[ready.index(handle)] = _nothing(loop)
    gate.parked_timers += timers
    gate.parked_calls += calls


def thaw(loop: AbstractEventLoop, gate: Gate) -> None:
    """Let a frozen gate's coroutines and timers go on; nothing to do for any other."""
    if gate.state is not GateState.FROZEN:
        return
    scheduled, ready = _queues(loop)
    ready.extend(handle for handle in gate.parked_calls if not handle.cancelled())
    for handle in gate.parked_timers:
        if not handle.cancelled():
            handle._scheduled = True
            heapq.heappush(scheduled, handle)
    gate.parked_timers, gate.parked_calls = [], []
    gate.thaw()


def _nothing(loop: AbstractEventLoop) -> Handle:
    handle = Handle(_do_nothing, (), loop)
    handle.cancel()
    return handle


def _do_nothing() -> None:
    """Be a call that was cancelled."""


def _queues(loop: AbstractEventLoop) -> tuple[Any, Any]:
    return getattr(loop, "_scheduled", []), getattr(loop, "_ready", [])


def _is_of(handle: Any, gate: Gate) -> bool:
    context = handle._context
    if context is None or context.get(CURRENT_GATE) is not gate:
        return False
    return not serves_others(handle._callback)
