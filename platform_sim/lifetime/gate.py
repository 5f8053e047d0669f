"""The gate every coroutine of one request is stepped through; shutting it for good is the kill.

Rules: a coroutine born in the request's context is wrapped in a `Stepper`, and asyncio steps the
stepper. Once the gate is killed the inner coroutine is never stepped, thrown into or closed again:
it is leaked on purpose, so that neither the garbage collector nor the interpreter's exit runs its
`finally`. Killing never calls `task.cancel()`, which would cancel what the task waits for, and that
may belong to others; the task stays as it is and ends as cancelled when it is next woken.

Every step is counted, and `before_step` is told before each: an experiment can kill there.

Not here: which coroutines are born in a request (`births`), when to kill (`invocation`), what else
of the request the event loop still holds (`residue`).
"""

import asyncio
import ctypes
import sysconfig
from collections.abc import AsyncGenerator, Callable, Collection, Coroutine, Generator, Sequence
from enum import StrEnum, unique
from pathlib import Path
from types import CodeType, TracebackType
from typing import Any, NamedTuple, Self
from weakref import WeakSet

__all__ = ["Gate", "GateState", "Stepper", "leak"]

# Code of the standard library, of installed packages and of the emulator itself.
_INSTALLED = (
    *(path for name, path in sysconfig.get_paths().items() if name.endswith("lib")),
    str(Path(__file__).parents[1]),
)


@unique
class GateState(StrEnum):
    """Whether coroutines may pass."""

    OPEN = "open"
    FROZEN = "frozen"  # nothing born here is stepped until the thaw
    KILLED = "killed"  # nothing born here is stepped any more


def leak(thing: object) -> None:
    """Keep `thing` alive for the life of the process, so that its `finally` never runs."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


class Gate:
    """All coroutines of one request, and whether they may be stepped.

    Attributes:
        owner: Names the request, for people.
        state: Whether coroutines may pass.
        live: The steppers whose coroutine has not ended, oldest first (the values mean nothing).
        generators: The async generators first iterated here and still alive.
        resumptions: How often any coroutine was stepped, or killed just before.
        before_step: Told before each step; may kill.
        on_empty: Told when the last live stepper has ended.
        parked_timers, parked_calls: What was taken off the loop while frozen (`frozen`).
    """

    __slots__ = (
        "_holds",
        "before_step",
        "generators",
        "live",
        "on_empty",
        "owner",
        "parked_calls",
        "parked_timers",
        "resumptions",
        "state",
    )

    def __init__(self, *, owner: str = "", on_empty: Callable[[], None] | None = None) -> None:
        self.owner = owner
        self.state = GateState.OPEN
        self.live: dict[Stepper, None] = {}
        self.generators: Collection[AsyncGenerator[Any, Any]] = ()
        self.resumptions = 0
        self.before_step: Callable[[Stepper], None] | None = None
        self.on_empty = on_empty
        self.parked_timers: list[Any] = []
        self.parked_calls: list[Any] = []
        self._holds: Sequence[asyncio.Future[None]] = ()

    def note(self, generator: AsyncGenerator[Any, Any]) -> None:
        """Remember an async generator that is iterated for the first time."""
        if not isinstance(self.generators, WeakSet):
            self.generators = WeakSet()  # made when needed: making one takes time
        self.generators.add(generator)

    def admit(self, coroutine: Coroutine[Any, Any, Any], parent: "Stepper | None") -> "Stepper":
        """Wrap a coroutine born here."""
        stepper = Stepper(coroutine, self, parent)
        if self.state is GateState.KILLED:
            leak(coroutine)
        else:
            self.live[stepper] = None
        return stepper

    def check(self, stepper: "Stepper") -> None:
        """Count one step and let it pass.

        Raises:
            CancelledError: The gate is killed: the task ends, and its coroutine hears nothing.
        """
        self.refuse_killed()
        self.resumptions += 1
        if self.before_step is not None:
            self.before_step(stepper)
            self.refuse_killed()

    def refuse_killed(self) -> None:
        """Raise if no coroutine may pass.

        Raises:
            CancelledError: The gate is killed.
        """
        if self.state is GateState.KILLED:
            raise asyncio.CancelledError

    def ended(self, stepper: "Stepper") -> None:
        """Forget a stepper whose coroutine has ended."""
        self.live.pop(stepper, None)
        if not self.live and self.on_empty is not None:
            self.on_empty()

    def kill(self) -> list["Stepper"]:
        """Let no coroutine pass ever again; return those that were still alive."""
        self.state = GateState.KILLED
        killed = list(self.live)
        self.live.clear()
        for stepper in killed:
            leak(stepper.inner)
        for generator in self.generators:
            leak(generator)
        return killed

    def freeze(self) -> None:
        """Hold every step until the thaw; timers go on, as they do in a suspended machine."""
        if self.state is GateState.OPEN:
            self.state = GateState.FROZEN

    def thaw(self) -> None:
        """Take the steps that were held, and let coroutines pass again."""
        if self.state is GateState.FROZEN:
            self.state = GateState.OPEN
            holds, self._holds = self._holds, ()
            for hold in holds:
                if not hold.done():
                    hold.set_result(None)

    def until_thaw(self) -> "asyncio.Future[None]":
        """Return a future of its own that is done at the thaw."""
        hold = asyncio.get_running_loop().create_future()
        self._holds = [*self._holds, hold]
        return hold


class _Began(NamedTuple):
    """What a first step gave: something to wait for (None: the loop's next turn), or an end."""

    awaited: Any = None
    outcome: BaseException | None = None


class Stepper(Coroutine[Any, Any, Any]):
    """Stands between a task and its coroutine. Any other attribute is the coroutine's own.

    Attributes:
        gate: What it has to pass.
        inner: The coroutine.
        parent: The stepper of the task that created this one's task, if it is of this request.
        task: The task that steps this; None until it exists, which an eager task does after a step.
        born_at: The code that started the coroutine, and the line; None: it is the app call.
    """

    __slots__ = ("_began", "_held", "born_at", "gate", "inner", "parent", "task")

    def __init__(
        self, inner: Coroutine[Any, Any, Any], gate: Gate, parent: "Stepper | None"
    ) -> None:
        self.gate = gate
        self.inner = inner
        self.parent = parent
        self.task: asyncio.Task[Any] | None = None
        self.born_at: tuple[CodeType, int] | None = None
        self._held: tuple[Callable[[Any], Any], Any] | None = None
        self._began: _Began | None = None

    def begin(self) -> bool:
        """Take the first step now, before the task would; tell whether the coroutine has ended.

        The task is the current one meanwhile. What the step gave is given to the task when it
        comes for it.
        """
        assert self.task is not None
        loop = self.task.get_loop()
        current = asyncio.current_task(loop)
        if current is not None:
            asyncio.tasks._leave_task(loop, current)
        asyncio.tasks._enter_task(loop, self.task)
        try:
            self._began = _Began(awaited=self._step(self.inner.send, None))
        except BaseException as outcome:  # noqa: BLE001  it is the task's to raise
            self._began = _Began(outcome=outcome)
        finally:
            asyncio.tasks._leave_task(loop, self.task)
            if current is not None:
                asyncio.tasks._enter_task(loop, current)
        return isinstance(self._began.outcome, StopIteration)

    @property
    def birthplace(self) -> str:
        """Say where the coroutine was started."""
        if self.born_at is None:
            return "created by the platform"
        code, line = self.born_at
        return f"created at {code.co_filename}:{line} in {code.co_name}"

    def suspended_at(self) -> str | None:
        """Say at which line of code that is no installed package's the coroutine waits."""
        found: str | None = None
        awaited: Any = self.inner
        while awaited is not None:
            frame = getattr(awaited, "cr_frame", None) or getattr(awaited, "gi_frame", None)
            if frame is not None and not frame.f_code.co_filename.startswith(_INSTALLED):
                code = frame.f_code
                found = f"{code.co_filename}:{frame.f_lineno} in {code.co_name}"
            awaited = getattr(awaited, "cr_await", None) or getattr(awaited, "gi_yieldfrom", None)
        return found

    def send(self, value: Any) -> Any:
        """Step the coroutine, unless it is killed; hold the step while it is frozen."""
        if self._began is not None:
            return self._go_on()
        if self.gate.state is GateState.FROZEN:
            return self._hold(self.inner.send, value)
        held, self._held = self._held, None
        if held is not None:
            return self._step(*held)
        return self._step(self.inner.send, value)

    def throw(
        self,
        kind: Any,
        error: object = None,
        traceback: TracebackType | None = None,
        /,
    ) -> Any:
        """Throw into the coroutine, unless it is killed; hold the throw while it is frozen."""
        if self._began is not None:
            if self._began.outcome is not None or self._waits_no_longer(self._began.awaited):
                return self._go_on()
            self._began = None
        thrown = error if isinstance(error, BaseException) else kind
        if traceback is not None:
            thrown = thrown.with_traceback(traceback)
        if self.gate.state is GateState.FROZEN:
            return self._hold(self.inner.throw, thrown)
        # A cancellation takes the place of a held step, as with a task about to be woken.
        self._held = None
        return self._step(self.inner.throw, thrown)

    def _step(self, step: Callable[[Any], Any], argument: Any) -> Any:
        self.gate.check(self)
        try:
            return step(argument)
        except BaseException:
            self.gate.ended(self)
            raise

    @staticmethod
    def _waits_no_longer(awaited: Any) -> bool:
        """Cancel what the first step waits for, as a task does; tell whether that will be felt."""
        return awaited is not None and bool(awaited.cancel())

    def _go_on(self) -> Any:
        """Give the task what the first step gave."""
        assert self._began is not None
        began, self._began = self._began, None
        if began.outcome is not None:
            raise began.outcome
        self.gate.refuse_killed()
        return began.awaited

    def _hold(self, step: Callable[[Any], Any], argument: Any) -> Any:
        self._held = (step, argument)
        thaw = self.gate.until_thaw()
        thaw._asyncio_future_blocking = True  # how a coroutine says "wake me with this"
        return thaw

    def close(self) -> None:
        """Close the coroutine, unless it is killed."""
        if self.gate.state is not GateState.KILLED:
            self.inner.close()
            self.gate.ended(self)

    def __await__(self) -> Generator[Any, Any, Any]:
        # A generator in all but type: iteration, send, throw and close all pass the gate.
        return self

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        return self.send(None)

    def __getattr__(self, name: str) -> Any:
        # cr_frame, cr_running, __qualname__ and so on, for asyncio, anyio and debuggers.
        return getattr(self.inner, name)
