"""Whether memory grows over 200,000 requests whose registered work is cut in cancel mode.

Rules: the emulator is driven in this process, without sockets: what is measured is the lifetime
layer's own memory. Each request registers an hour of work and is cut at a ceiling of 1 ms. Printed
are resident memory and the number of objects the garbage collector knows, after a collection; the
exit code is 1 if from the first tenth on memory grows by more than 2 MB (it comes and goes in
arenas of 1 MB) or the objects by more than a hundredth.
"""

import asyncio
import gc
import os
import sys
from collections.abc import MutableMapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from platform_sim.lifetime.emulator import Emulator
from platform_sim.lifetime.profile import WORKERS, CutMode
from platform_sim.view.event import Event, EventKind
from tests.load.apps import cut_app

__all__ = ["main"]

_REQUESTS: Final = 200_000
_TOGETHER: Final = 100
_STEPS: Final = 10
_MB: Final = 1024 * 1024
_MOST_GROWTH_BYTES: Final = 2 * _MB
_MOST_GROWTH_OBJECTS: Final = 0.01


class _Cuts:
    """Counts cancelled work: each request has to have some."""

    kinds = frozenset({EventKind.TASK_CANCELLED})

    def __init__(self) -> None:
        self.count = 0

    def observe(self, event: Event) -> None:
        self.count += event.kind is EventKind.TASK_CANCELLED


async def _receive() -> MutableMapping[str, Any]:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _send(message: MutableMapping[str, Any]) -> None:
    del message


def _scope() -> MutableMapping[str, Any]:
    return {"type": "http", "method": "GET", "path": "/", "headers": []}


def _resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


async def _run(cuts: _Cuts) -> list[tuple[int, int]]:
    profile = replace(WORKERS, allowance_s=0.001, cut=CutMode.CANCEL)
    emulator = Emulator(cut_app, profile=profile, observer=cuts)
    seen = []
    for step in range(1, _STEPS + 1):
        for _ in range(_REQUESTS // _STEPS // _TOGETHER):
            for _ in range(_TOGETHER):
                await emulator(_scope(), _receive, _send)
            while emulator.alive:  # noqa: ASYNC110  the emulator has no event for it
                await asyncio.sleep(0.001)
        gc.collect()
        seen.append((_resident_bytes(), len(gc.get_objects())))
        resident, objects = seen[-1]
        done = _REQUESTS * step // _STEPS
        print(
            f"{done:7} requests: {resident / _MB:6.1f} MB resident, {objects} objects", flush=True
        )
    return seen


def main() -> None:
    """Measure, print and judge."""
    cuts = _Cuts()
    seen = asyncio.run(_run(cuts))
    (first_bytes, first_objects), (last_bytes, last_objects) = seen[0], seen[-1]
    grown_bytes, grown_objects = last_bytes - first_bytes, last_objects - first_objects
    print(
        f"{cuts.count} tasks were cut; from the first tenth on {grown_bytes / _MB:+.2f} MB, "
        f"{grown_objects:+} objects"
    )
    grows = grown_bytes > _MOST_GROWTH_BYTES
    leaks = grown_objects > _MOST_GROWTH_OBJECTS * first_objects
    sys.exit(1 if grows or leaks or cuts.count != _REQUESTS else 0)


if __name__ == "__main__":
    main()
