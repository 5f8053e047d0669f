"""Where a coroutine stands: the line of the user's code in which it is suspended.

Rules: the chain of awaits is followed from the task to its innermost frame, through coroutines,
generators and async generators. The place is the deepest frame of the user's code; when there is
none (the framework is at work) it is the deepest of all, and says so. Code is the user's unless it
lies in the standard library, among installed packages or in this emulator; modules that the user
names (the app under test may be an installed package) are the user's wherever they lie.

Not here: when a place is asked for (`cutter`).
"""

import gc
import inspect
import os
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import platform_sim
from platform_sim.lifetime.gate import Stepper
from platform_sim.lifetime.registry import name_of

__all__ = ["Code", "Place", "frames_of"]

_HIDING = frozenset({"async_generator_asend", "async_generator_athrow", "coroutine_wrapper"})
_FRAMES = ("cr_frame", "gi_frame", "ag_frame")
_AWAITED = ("cr_await", "gi_yieldfrom", "ag_await")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where one task of a request stood.

    Attributes:
        file: Shortened for people: relative to the current directory or to the packages.
        line: The line of its await, or the first of its code when it had not begun.
        function: Its name.
        task: The task's name, for people.
        is_own: Whether this is the user's code.
        has_begun: Whether the task had run a line at all.
        background: The response's background task that was not done, or None.
        is_at_platform: Whether it was in the platform's `send` or `receive`.
    """

    file: str
    line: int
    function: str
    task: str
    is_own: bool = True
    has_begun: bool = True
    background: str | None = None
    is_at_platform: bool = False

    @property
    def has_work(self) -> bool:
        """Whether the task had work of the user's before it, as far as its frames tell."""
        return self.background is not None or (self.is_own and not self.is_at_platform)

    @property
    def may_have_work(self) -> bool:
        """Whether work of the user's may follow: code of theirs waits for the platform."""
        return self.has_work or self.is_own

    @property
    def at(self) -> str:
        """`file:line`."""
        return f"{self.file}:{self.line}"

    @property
    def remark(self) -> str:
        """What else there is to say of it; empty when there is nothing."""
        parts = [] if self.has_begun else ["not begun"]
        if self.background is not None:
            parts.append(f"background task {self.background} not done")
        return ", ".join(parts)

    def __str__(self) -> str:
        remark = f", {self.remark}" if self.remark else ""
        return f"{self.task} at {self.at}{remark}"


def _libraries() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    found = {paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    return tuple(f"{root}{os.sep}" for root in sorted(found, key=len, reverse=True))


_EMULATOR = f"{Path(platform_sim.__file__).parent}{os.sep}"
_PLATFORM = f"{_EMULATOR}lifetime{os.sep}"


@dataclass(slots=True)
class Code:
    """Tells the user's code from all other, and names places in it.

    Attributes:
        own: Top-level modules that are the user's wherever they lie.
    """

    own: frozenset[str] = frozenset()
    _libraries: tuple[str, ...] = field(default_factory=_libraries, init=False)
    _known: dict[tuple[str, str], bool] = field(default_factory=dict, init=False)

    def is_own(self, frame: FrameType) -> bool:
        """Tell whether a frame is the user's."""
        return self._is_own(frame.f_code.co_filename, str(frame.f_globals.get("__name__", "")))

    def _is_own(self, file: str, module: str) -> bool:
        known = self._known.get((file, module))
        if known is None:
            named = module.partition(".")[0] in self.own
            library = file.startswith((*self._libraries, _EMULATOR, "<"))
            known = self._known[file, module] = named or not library
        return known

    def place_of(self, stepper: Stepper, *, task: str | None = None) -> Place:
        """Return where the coroutine of a task stands; `task` names it in place of its own name."""
        task = task or name_of(stepper.task)
        frames = list(frames_of(stepper.inner))
        if not frames:
            return Place(file="?", line=0, function=task, task=task, is_own=False)
        own = [frame for frame in frames if self.is_own(frame)]
        outer = [frame for frame in frames if not frame.f_code.co_filename.startswith(_EMULATOR)]
        background, response = _background_of(frames) if not own else (None, None)
        frame = response or (own or outer or frames)[-1]
        return Place(
            file=self._short(frame.f_code.co_filename),
            line=frame.f_lineno or frame.f_code.co_firstlineno,
            function=frame.f_code.co_qualname.rpartition("<locals>.")[2],
            task=task,
            is_own=bool(own),
            has_begun=not _is_new(stepper.inner),
            background=background,
            is_at_platform=frames[-1].f_code.co_filename.startswith(_PLATFORM),
        )

    def _short(self, file: str) -> str:
        here = f"{os.getcwd()}{os.sep}"  # noqa: PTH109  a string is wanted
        package = f"{Path(_EMULATOR).parent}{os.sep}"
        for root in (*self._libraries, here, package):
            if file.startswith(root):
                return file.removeprefix(root)
        return file


def frames_of(awaitable: Any) -> Iterator[FrameType]:
    """Yield the suspended frames of a coroutine, outermost first."""
    seen = set()
    while awaitable is not None and id(awaitable) not in seen:
        seen.add(id(awaitable))
        if isinstance(awaitable, Stepper):
            awaitable = awaitable.inner
            continue
        if type(awaitable).__name__ in _HIDING:
            awaitable = _hidden_in(awaitable)
            continue
        frame = _first(awaitable, _FRAMES)
        if isinstance(frame, FrameType):
            yield frame
        awaitable = _first(awaitable, _AWAITED)


def _first(thing: Any, names: tuple[str, ...]) -> Any:
    for name in names:
        if (found := getattr(thing, name, None)) is not None:
            return found
    return None


def _hidden_in(awaitable: Any) -> Any:
    # Nothing public leads from these to what they step; the collector knows.
    for referent in gc.get_referents(awaitable):
        if _first(referent, _FRAMES) is not None:
            return referent
    return None


def _is_new(coroutine: Any) -> bool:
    return inspect.iscoroutine(coroutine) and (
        inspect.getcoroutinestate(coroutine) == inspect.CORO_CREATED
    )


def _background_of(frames: list[FrameType]) -> tuple[str | None, FrameType | None]:
    """Return the background task that a response will run when its body is sent, and its frame."""
    for frame in frames:
        # An attribute of Starlette's responses, and so of FastAPI's.
        background = getattr(frame.f_locals.get("self"), "background", None)
        if background is not None:
            several = getattr(background, "tasks", [background])
            return ", ".join(name_of(getattr(each, "func", each)) for each in several), frame
    return None, None
