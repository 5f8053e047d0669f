"""Cron: a function called on a schedule, in a process of its own, as a platform's scheduler does.

Its rules:

- The first run starts at once, later ones on the ticks of the schedule. Runs never overlap: ticks
  that pass during a run are skipped.
- A run gets `limit_s` and is cancelled then. One that will not end even so ends the process, as a
  platform would; whoever started it starts it again.
- A run that raises is reported and changes nothing for the next one.
- A stop signal cancels the run in flight, so that it can give back what it holds, and waits for it
  a bounded time.

What the function does is its own business: it is loaded by import string.
"""

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack, redirect_stderr
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

from platform_sim.host.app_log import AppLog
from platform_sim.host.errors import LaunchError
from platform_sim.host.imports import load
from platform_sim.host.lifeline import watch_lifeline
from platform_sim.host.ready import announce
from platform_sim.host.signals import stop_requests
from platform_sim.view.event import EventKind
from platform_sim.view.recording import NotARecording, Recording

__all__ = ["Cron", "Ending", "Run", "Schedule", "main", "serve"]

_CANNOT_START = 2
_STUCK_EXIT_CODE = 70  # EX_SOFTWARE of sysexits.h


CURRENT_RUN: ContextVar[str] = ContextVar("outlast_run", default="")
"""The name of the run whose context this is."""


class Ending(StrEnum):
    """How a run ended."""

    COMPLETED = "completed"
    FAILED = "failed"
    LIMIT = "limit"  # cancelled at the limit
    STOPPED = "stopped"  # cancelled by a stop signal
    STUCK = "stuck"  # cancelled and still not ended after the grace


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """When runs start and how long they may last.

    Attributes:
        every_s: Seconds from one tick to the next.
        limit_s: Seconds a run may take.
        grace_s: Seconds a cancelled run may take to end.
    """

    every_s: float
    limit_s: float
    grace_s: float = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run, for the log: `took_s` in seconds, `summary` as the function returned it."""

    run: int
    ending: Ending
    took_s: float
    summary: Any = None
    error: str | None = None


class Cron:
    """Calls one function on one schedule and reports every run.

    Attributes:
        last: The latest run that ended.
    """

    def __init__(
        self,
        call: Callable[[], Awaitable[Any]],
        schedule: Schedule,
        report: Callable[[Run], None],
        started: Callable[[int], None] = lambda _: None,
    ) -> None:
        self.last: Run | None = None
        self._call = call
        self._schedule = schedule
        self._report = report
        self._started = started

    async def keep_running(self) -> None:
        """Run on schedule until cancelled; return only when a run is stuck."""
        loop = asyncio.get_running_loop()
        first = loop.time()
        number = 0
        while True:
            number += 1
            run = await self.run_once(number)
            if run.ending is Ending.STUCK:
                return
            elapsed_s = loop.time() - first
            await asyncio.sleep(self._schedule.every_s - elapsed_s % self._schedule.every_s)

    async def run_once(self, number: int) -> Run:
        """Call the function once and report how it ended.

        Cancelling this cancels the run, waits for it through the grace, reports it and re-raises.
        """
        loop = asyncio.get_running_loop()
        started = loop.time()

        def ended(ending: Ending, summary: Any = None, error: str | None = None) -> Run:
            took_s = round(loop.time() - started, 3)
            self.last = Run(run=number, ending=ending, took_s=took_s, summary=summary, error=error)
            self._report(self.last)
            return self.last

        CURRENT_RUN.set(f"run {number}")
        self._started(number)
        task = asyncio.ensure_future(_awaited(self._call))
        try:
            await asyncio.wait({task}, timeout=self._schedule.limit_s)
        except asyncio.CancelledError:
            ended(*await self._end_of(task, Ending.STOPPED))
            raise
        return ended(*await self._end_of(task, Ending.LIMIT))

    async def _end_of(
        self, task: asyncio.Future[Any], otherwise: Ending
    ) -> tuple[Ending, Any, str | None]:
        """Return how the run ended by itself; else cancel it, and that is how it ended."""
        if task.done():
            return _result(task)
        task.cancel()
        _, stuck = await asyncio.wait({task}, timeout=self._schedule.grace_s)
        return Ending.STUCK if stuck else otherwise, None, None


async def _awaited(call: Callable[[], Awaitable[Any]]) -> Any:
    return await call()


def _result(task: asyncio.Future[Any]) -> tuple[Ending, Any, str | None]:
    if task.cancelled():
        return Ending.FAILED, None, "cancelled itself"
    failure = task.exception()
    if failure is not None:
        return Ending.FAILED, None, f"{type(failure).__name__}: {failure}"
    result = task.result()
    return Ending.COMPLETED, result.as_dict() if hasattr(result, "as_dict") else result, None


class _Diary:
    """Tells of runs: one line each on stderr, and everything in the record.

    Args:
        call: What is run, for people.
        recording: Where it is added; None: nowhere.
    """

    def __init__(self, call: str, recording: Recording | None) -> None:
        self._call = call
        self._recording = recording
        self._began_s = time.monotonic()
        self._add(EventKind.STARTED, "", {"wall_ms": time.time_ns() // 1_000_000})

    def started(self, number: int) -> None:
        """A run begins."""
        self._add(EventKind.RUN_STARTED, f"run {number}", {"name": self._call})

    def ended(self, run: Run) -> None:
        """A run has ended."""
        content = msgspec.to_builtins(run, enc_hook=str)
        line = msgspec.json.encode({"call": self._call, **content}).decode()
        print(line, file=sys.stderr, flush=True)
        self._add(EventKind.RUN_ENDED, f"run {run.run}", content)

    def heard(self, fields: Mapping[str, Any]) -> None:
        """The function has logged an event."""
        self._add(EventKind.ACTION, CURRENT_RUN.get(), fields)

    def _add(self, kind: EventKind, run: str, fields: Mapping[str, Any]) -> None:
        if self._recording is not None:
            at_s = round(time.monotonic() - self._began_s, 6)
            self._recording.add(at_s, str(kind), run, fields)


async def serve(cron: Cron) -> None:
    """Run on schedule until a stop signal comes; a stuck run ends the process."""
    with stop_requests() as stop:
        running = asyncio.ensure_future(cron.keep_running())
        stopping = asyncio.ensure_future(stop.wait())
        announce("redrive")
        await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        running.cancel()
        await asyncio.wait({running, stopping})
    if cron.last is not None and cron.last.ending is Ending.STUCK:
        # closing the loop would wait for the run that will not end
        os._exit(_STUCK_EXIT_CODE)
    if not running.cancelled():
        running.result()


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        message = f"{text} is not a number of seconds above 0"
        raise argparse.ArgumentTypeError(message)
    return value


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a scheduled function as a process."""
    parser = argparse.ArgumentParser(prog="cron", description="Calls a function on a schedule.")
    parser.add_argument("--call", required=True, help="module:attribute of an async function")
    parser.add_argument("--every-s", type=_positive, required=True)
    parser.add_argument("--limit-s", type=_positive, required=True)
    parser.add_argument("--record", type=Path, help="recording to which runs are added")
    options = parser.parse_args(arguments)
    watch_lifeline()
    schedule = Schedule(every_s=options.every_s, limit_s=options.limit_s)
    try:
        with ExitStack() as open_things:
            recording = None
            if options.record is not None:
                recording = Recording(options.record, f"redrive.{os.getpid()}")
                open_things.enter_context(recording)
            diary = _Diary(options.call, recording)
            app_log = open_things.enter_context(redirect_stderr(AppLog(sys.stderr)))
            app_log.heard = diary.heard
            call = load(options.call)
            asyncio.run(serve(Cron(call, schedule, diary.ended, diary.started)))
    except (LaunchError, NotARecording) as failure:
        print(failure, file=sys.stderr)
        sys.exit(_CANNOT_START)


if __name__ == "__main__":
    main()
