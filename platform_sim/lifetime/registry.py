"""Work the app gave to `wait_until`: what holds a request's context after its response.

Rules: one registration per future, however often it is given; a registration ends once. Work born
in this request is ours to cut; what `asyncio.gather` gathers is as good as given itself. Any other
plain future, or a task of somebody else, only holds the context: when the context ends it is let go
and goes on without us.

Not here: when registration is allowed and when work is cut (`invocation`).
"""

import asyncio
import inspect
import re
from collections.abc import Awaitable, Iterator
from dataclasses import dataclass
from typing import Any

from platform_sim.lifetime.gate import Gate, Stepper

__all__ = ["Registration", "Registry", "name_of"]

# Python 3.13.0 calls a task "None" that a task factory made and nobody named.
_DEFAULT_TASK_NAME = re.compile(r"Task-\d+|None")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Registration:
    """One piece of registered work.

    Attributes:
        number: 1 for the request's first, and so on.
        name: What the app calls it, for people.
        registered_at_s: Emulator seconds.
        future: The work.
        steppers: What steps it; none if it is not of this request.
    """

    number: int
    name: str
    registered_at_s: float
    future: "asyncio.Future[Any]"
    steppers: tuple[Stepper, ...]


class Registry:
    """The registered work of one request that has not ended yet, oldest first."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._count = 0
        self._pending: dict[asyncio.Future[Any], Registration] = {}

    def __bool__(self) -> bool:
        return bool(self._pending)

    def __iter__(self) -> Iterator[Registration]:
        return iter(tuple(self._pending.values()))

    def add(
        self, awaitable: Awaitable[Any], *, loop: asyncio.AbstractEventLoop, now_s: float
    ) -> Registration | None:
        """Register work, starting it if it is a coroutine; None if it is registered already."""
        name = name_of(awaitable)
        if inspect.iscoroutine(awaitable):
            future: asyncio.Future[Any] = loop.create_task(awaitable, name=name)
        else:
            future = asyncio.ensure_future(awaitable, loop=loop)
        if future in self._pending:
            return None
        self._count += 1
        registration = Registration(
            number=self._count,
            name=name,
            registered_at_s=now_s,
            future=future,
            steppers=tuple(self._steppers_of(future)),
        )
        self._pending[future] = registration
        return registration

    def _steppers_of(self, future: "asyncio.Future[Any]") -> Iterator[Stepper]:
        if isinstance(future, asyncio.Task):
            coroutine = future.get_coro()
            if isinstance(coroutine, Stepper) and coroutine.gate is self._gate:
                yield coroutine
        for child in _gathered(future):
            yield from self._steppers_of(child)

    def settle(self, future: "asyncio.Future[Any]") -> Registration | None:
        """Take out work that has ended; None if it was let go before."""
        return self._pending.pop(future, None)


def _gathered(future: object) -> "list[asyncio.Future[Any]]":
    # asyncio.gather returns a future of a private kind; nothing public says what it gathers.
    children: list[asyncio.Future[Any]] = getattr(future, "_children", [])
    return children


def name_of(work: object) -> str:
    """Name a task or awaitable: the name its author gave it, else that of its code."""
    if isinstance(work, asyncio.Task):
        name = work.get_name()
        if not _DEFAULT_TASK_NAME.fullmatch(name):
            return name
        work = work.get_coro()
    if children := _gathered(work):
        return f"gather({', '.join(name_of(child) for child in children)})"
    name = getattr(work, "__qualname__", None) or type(work).__qualname__
    return name.rpartition("<locals>.")[2]
