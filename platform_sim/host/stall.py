"""Stalls: code that blocks the event loop is found, with its line and how long it blocked.

Rules: the loop has a heartbeat, and a thread looks whether it is late. While it is, the thread
notes which line the loop's thread is at; when the heart beats again, the line that was seen most
is reported. Of the stack it is the innermost line of code that is neither Python's own nor an
installed package's: a blocking call is where the app made it. A process that was suspended (its
processor time stood still too) has not stalled. Nothing is taken back for a stall: budgets and
ceilings count on.

Virtual time cannot stall: its loop's clock stands still while code runs.

Not here: what a stall is told to (`emulator`, `view`).
"""

import asyncio
import sys
import sysconfig
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Final

from platform_sim.lifetime.emulator import Emulator
from platform_sim.lifetime.gate import Stepper
from platform_sim.view.event import EventKind

__all__ = ["Place", "Stall", "StallWatch", "place_of", "watching_stalls"]

_BEATS: Final = 4  # heartbeats in the time that makes a stall
_PATHS: Final = sysconfig.get_paths()
_NOT_THE_APPS: Final = tuple(
    {
        _PATHS["stdlib"],
        _PATHS["platstdlib"],
        _PATHS["purelib"],
        _PATHS["platlib"],
        str(Path(__file__).parents[1]),
        "<frozen ",
    }
)


@dataclass(frozen=True, slots=True)
class Place:
    """A line of code: `file`, `line`, `function`."""

    file: str
    line: int
    function: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stall:
    """One stall.

    Attributes:
        place: The line that blocked.
        length_s: Seconds for which it did, to within a heartbeat.
        owner: The request whose code it was; empty: of none.
    """

    place: Place
    length_s: float
    owner: str

    def __str__(self) -> str:
        return (
            f"the event loop was blocked for {self.length_s:.2f} s at "
            f"{self.place.file}:{self.place.line} in {self.place.function}; "
            "budgets and ceilings went on meanwhile"
        )


class StallWatch:
    """Watches one event loop.

    Args:
        loop: The loop; `start` is called on it.
        threshold_s: How late the loop has to be.
        report: Told of each stall, on the loop, when it is over.
        now_s: The machine's monotonic clock.
        worked_s: The processor time this process has had.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        threshold_s: float,
        report: Callable[[Stall], None],
        now_s: Callable[[], float] = time.monotonic,
        worked_s: Callable[[], float] = time.process_time,
    ) -> None:
        self._loop = loop
        self._threshold_s = threshold_s
        self._every_s = threshold_s / _BEATS
        self._report = report
        self._now_s = now_s
        self._worked_s = worked_s
        self._seen: Counter[tuple[Place, str]] = Counter()
        self._beat_at_s = 0.0
        self._over = threading.Event()
        self._thread_id = 0
        self._timer: asyncio.TimerHandle | None = None
        self._thread = threading.Thread(target=self._watch, name="stall watch", daemon=True)

    def start(self) -> None:
        """Begin to watch the loop that is running here."""
        self._thread_id = threading.get_ident()
        self._beat_at_s = self._now_s()
        self._timer = self._loop.call_later(self._every_s, self._beat)
        self._thread.start()

    def stop(self) -> None:
        """Watch no more."""
        self._over.set()
        if self._timer is not None:
            self._timer.cancel()
        self._thread.join()

    def _beat(self) -> None:
        now_s = self._now_s()
        length_s, self._beat_at_s = now_s - self._beat_at_s, now_s
        if self._seen:
            seen, self._seen = self._seen, Counter()
            ((place, owner), _), *_ = seen.most_common(1)
            self._report(Stall(place=place, length_s=length_s, owner=owner))
        self._timer = self._loop.call_later(self._every_s, self._beat)

    def _watch(self) -> None:
        looked_s, worked_s = self._now_s(), self._worked_s()
        while not self._over.wait(self._every_s):
            gap_s, gap_worked_s = self._now_s() - looked_s, self._worked_s() - worked_s
            looked_s, worked_s = looked_s + gap_s, worked_s + gap_worked_s
            if gap_s > self._threshold_s and gap_worked_s < gap_s / 2:
                self._beat_at_s = looked_s  # the whole process stood still
                self._seen = Counter()
            elif looked_s - self._beat_at_s > self._threshold_s:
                self._look()

    def _look(self) -> None:
        frame = sys._current_frames().get(self._thread_id)
        if frame is not None:
            self._seen[place_of(frame), _owner(self._loop)] += 1


def place_of(frame: FrameType) -> Place:
    """Return the innermost line of the app in a stack; the innermost at all if it has none."""
    looked: FrameType | None = frame
    while looked is not None:
        if not looked.f_code.co_filename.startswith(_NOT_THE_APPS):
            return _place(looked)
        looked = looked.f_back
    return _place(frame)


def _place(frame: FrameType) -> Place:
    return Place(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_qualname)


def _owner(loop: asyncio.AbstractEventLoop) -> str:
    task = asyncio.current_task(loop)
    coroutine = None if task is None else task.get_coro()
    return coroutine.gate.owner if isinstance(coroutine, Stepper) else ""


@contextmanager
def watching_stalls(threshold_s: float | None, emulator: Emulator) -> Iterator[None]:
    """Tell an emulator of the running loop's stalls while the block runs; None: of none."""
    if threshold_s is None:
        yield
        return

    def report(stall: Stall) -> None:
        emulator.tell(
            EventKind.STALL,
            stall.owner,
            file=stall.place.file,
            line=stall.place.line,
            function=stall.place.function,
            length_s=round(stall.length_s, 3),
            text=str(stall),
        )

    watch = StallWatch(asyncio.get_running_loop(), threshold_s=threshold_s, report=report)
    watch.start()
    try:
        yield
    finally:
        watch.stop()
