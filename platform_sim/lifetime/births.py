"""Whose is a new coroutine? Everything born in a request's context passes that request's gate.

Rules: the context a task is created in decides, so tasks of tasks and of libraries belong to the
request as well, and a task created in an empty context belongs to nobody. The loop's own task
factory, if it has one, still makes the task. Async generators are noted too: the loop would close
those of a killed request when it shuts down. Where each task was asked for is noted for people.

Not here: what a gate does (`gate`).
"""

import asyncio
import inspect
import os
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextvars import Context, ContextVar
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import anyio

from platform_sim.lifetime.gate import Gate, Stepper

__all__ = ["CURRENT_GATE", "make_task", "mind_births"]

CURRENT_GATE: ContextVar[Gate | None] = ContextVar("outlast_gate", default=None)
"""The gate of the request whose context this is."""

_Coroutine = Coroutine[Any, Any, Any]
_GO_BETWEENS = tuple(
    str(Path(file).parent) + os.sep
    for file in (inspect.getfile(asyncio), inspect.getfile(anyio), __file__)
)
_MakeTask = Callable[..., "asyncio.Future[Any]"]


class _TaskFactory:
    """A task factory that wraps the coroutines of requests and leaves all others alone."""

    def __init__(self, make: _MakeTask | None) -> None:
        self._make = make
        self.makes_plain_tasks = make is None

    def __call__(
        self, loop: asyncio.AbstractEventLoop, coroutine: Any, /, **more: Any
    ) -> "asyncio.Future[Any]":
        context: Context | None = more.get("context")
        gate = CURRENT_GATE.get() if context is None else context.get(CURRENT_GATE)
        if gate is None or isinstance(coroutine, Stepper):
            if self._make is None:
                return asyncio.Task(coroutine, loop=loop, **more)
            return self._make(loop, coroutine, **more)
        stepper = gate.admit(coroutine, _stepper_of(asyncio.current_task(loop)))
        stepper.born_at = _birthplace()
        task = self._task(loop, stepper, more)
        stepper.task = task if isinstance(task, asyncio.Task) else None
        return task

    def _task(
        self, loop: asyncio.AbstractEventLoop, coroutine: _Coroutine, more: dict[str, Any]
    ) -> "asyncio.Future[Any]":
        if self._make is None:
            return asyncio.Task(coroutine, loop=loop, **more)
        return self._make(loop, coroutine, **more)


class _FirstIteration:
    """An async generator hook that notes which request a generator belongs to."""

    def __init__(self, then: Callable[[AsyncGenerator[Any, Any]], None] | None) -> None:
        self._then = then

    def __call__(self, generator: AsyncGenerator[Any, Any]) -> None:
        gate = CURRENT_GATE.get()
        if gate is not None:
            gate.note(generator)
        if self._then is not None:
            self._then(generator)


def make_task(
    loop: asyncio.AbstractEventLoop, stepper: Stepper, *, name: str, context: Context
) -> "asyncio.Task[Any]":
    """Make a request's own task, as the loop would, by the short way where there is one."""
    factory = loop.get_task_factory()
    if isinstance(factory, _TaskFactory) and factory.makes_plain_tasks:
        task: asyncio.Task[Any] = asyncio.Task(stepper, loop=loop, name=name, context=context)
    else:
        task = loop.create_task(stepper, name=name, context=context)
    stepper.task = task
    return task


def _birthplace() -> tuple[CodeType, int] | None:
    """Return the line that asked for the task, whichever library's function it called for that."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith(_GO_BETWEENS):
            return code, frame.f_lineno
        frame = frame.f_back
    return None


def _stepper_of(task: "asyncio.Task[Any] | None") -> Stepper | None:
    coroutine = None if task is None else task.get_coro()
    return coroutine if isinstance(coroutine, Stepper) else None


def mind_births(loop: asyncio.AbstractEventLoop) -> None:
    """Make the running loop pass new coroutines and async generators through their gate.

    Cheap and harmless to call again: a loop that stops and runs again forgets its generator hook.
    """
    factory = loop.get_task_factory()
    if not isinstance(factory, _TaskFactory):
        loop.set_task_factory(_TaskFactory(factory))
    first_iteration = sys.get_asyncgen_hooks().firstiter
    if not isinstance(first_iteration, _FirstIteration):
        sys.set_asyncgen_hooks(firstiter=_FirstIteration(first_iteration))
