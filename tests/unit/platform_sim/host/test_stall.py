"""Stalls: the line that blocks is found, and a process that was suspended has not stalled.

Real time: what blocks a loop blocks its clock's reader too. Nothing here depends on how long
anything takes, as long as it takes longer than the watch waits.
"""

import asyncio
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from platform_sim.host.stall import Place, Stall, StallWatch, place_of, watching_stalls
from platform_sim.lifetime.emulator import Emulator
from platform_sim.lifetime.profile import WORKERS
from platform_sim.view.event import EventKind
from platform_sim.view.recorder import Recorder
from tests.support.asgi import answer, call
from tests.support.processes import until

THRESHOLD_S = 0.04


def block() -> None:
    """Block until the watch must have seen it."""
    time.sleep(THRESHOLD_S * 10)


async def stalls_of(act: Callable[[], None]) -> list[Stall]:
    """Return the stalls that are reported while `act` runs on the loop."""
    seen: list[Stall] = []
    watch = StallWatch(asyncio.get_running_loop(), threshold_s=THRESHOLD_S, report=seen.append)
    watch.start()
    await asyncio.sleep(THRESHOLD_S)
    act()
    await until(lambda: seen, what="the report")
    watch.stop()
    return seen


def test_the_line_that_blocks_is_reported() -> None:
    """Not the library's line it called: the app's."""
    (seen, *_) = asyncio.run(stalls_of(block))

    source = Path(seen.place.file).read_text().splitlines()
    assert (seen.place.file, seen.place.function) == (__file__, "block")
    assert "time.sleep" in source[seen.place.line - 1]
    assert seen.length_s >= THRESHOLD_S
    assert seen.owner == ""
    assert f"{__file__}:{seen.place.line} in block" in str(seen)


def test_a_stall_belongs_to_the_request_whose_code_it_is() -> None:
    """Found by the task that was being stepped."""
    recorder = Recorder()

    async def handler(scope: object) -> None:
        del scope
        block()

    async def main() -> None:
        emulator = Emulator(answer(handler), profile=WORKERS, observer=recorder)
        with watching_stalls(THRESHOLD_S, emulator):
            await asyncio.sleep(THRESHOLD_S)
            await call(emulator)
            await until(lambda: recorder.of(EventKind.STALL), what="the report")

    asyncio.run(main())

    (seen, *_) = recorder.of(EventKind.STALL)
    assert seen.invocation_id == "1"
    assert (seen.fields["file"], seen.fields["function"]) == (__file__, "block")
    assert seen.fields["text"].startswith("the event loop was blocked for ")


def test_a_quiet_loop_has_not_stalled() -> None:
    """Waiting for something is what a loop is for; and one may choose not to watch."""
    recorder = Recorder()

    async def handler(scope: object) -> None:
        del scope

    async def main() -> None:
        emulator = Emulator(answer(handler), profile=WORKERS, observer=recorder)
        with watching_stalls(2.0, emulator):
            await asyncio.sleep(0.1)
        with watching_stalls(None, emulator):
            block()

    asyncio.run(main())

    assert recorder.of(EventKind.STALL) == []


@pytest.mark.parametrize("worked_s", [0.0, 9.0])
def test_a_suspended_process_has_not_stalled(worked_s: float) -> None:
    """Both clocks jump: then the processor's time tells a suspension from code that held it."""
    clocks = {"now": 0.0, "worked": 0.0}
    turns = iter([False, False, True])

    class Over(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            clocks["now"] += 10.0
            clocks["worked"] += worked_s
            return next(turns)

    async def main() -> list[tuple[Place, str]]:
        watch = StallWatch(
            asyncio.get_running_loop(),
            threshold_s=1.0,
            report=lambda _: None,
            now_s=lambda: clocks["now"],
            worked_s=lambda: clocks["worked"],
        )
        watch._over = Over()
        watch._thread_id = threading.get_ident()
        watch._watch()
        return list(watch._seen)

    seen = asyncio.run(main())

    assert bool(seen) is bool(worked_s)


def test_a_stack_without_a_line_of_the_app_is_named_by_its_innermost() -> None:
    """Such as a library's own thread."""
    release = threading.Event()
    thread = threading.Thread(target=release.wait)
    thread.start()
    frame = sys._current_frames()[thread.ident or 0]
    place = place_of(frame)
    release.set()
    thread.join()

    assert place == Place(frame.f_code.co_filename, place.line, frame.f_code.co_qualname)
    assert place.file == threading.__file__
