"""Serve: a front brought up, said to be ready, and kept until somebody asks it to stop.

Not here: options and their checks (`command`, `server`).
"""

import asyncio
import logging
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

import msgspec

from platform_sim.host.front.front import Front, FrontOptions
from platform_sim.host.front.messages import Order
from platform_sim.host.front.watch import watch
from platform_sim.host.signals import stop_requests
from platform_sim.lifetime.profile import CutMode
from platform_sim.view.event import EventKind
from platform_sim.view.recording import Recording

__all__ = ["STALL_S", "order_for", "serve_behind_front"]

STALL_S = 0.1
"""Seconds after which code that blocks the event loop is reported."""

_logger = logging.getLogger("outlast.front")


def order_for(order: Order) -> FrontOptions:
    """Return what a front does for workers of this order."""
    return FrontOptions(order=order, spare=order.profile.cut is CutMode.PROCESS)


async def serve_behind_front(
    order: Order,
    listener: socket.socket,
    up: Callable[[], None],
    *,
    reload_from: Path | None = None,
) -> str:
    """Serve until a stop signal comes; return the signal's name.

    Args:
        order: What each worker is told; the listening socket is filled in.
        listener: The socket.
        up: Called once the first worker serves.
        reload_from: Folder whose files are watched, and a change of which replaces the worker.

    Raises:
        LaunchError: The first worker could not start.
        Stopped: The signal came before that.
    """
    with stop_requests() as stop, _Voice(order.record) as voice:
        told = msgspec.structs.replace(order, listener_fd=listener.fileno())
        front = Front(order_for(told), listener, voice.say)
        watching = None
        if reload_from is not None:
            watching = asyncio.ensure_future(watch(reload_from, _replacing(front, reload_from)))
        try:
            await front.run(stop, up)
        finally:
            if watching is not None:
                watching.cancel()
        return await stop.wait()


def _replacing(front: Front, root: Path) -> Callable[[list[str]], None]:
    def changed(paths: list[str]) -> None:
        named = str(Path(paths[0]).relative_to(root))
        more = f" and {len(paths) - 1} more" if paths[1:] else ""
        front.replace(f"{named}{more} changed: a new worker is started", anew=True)

    return changed


class _Voice:
    """Says what becomes of workers, to people and to the record."""

    def __init__(self, record: str | None) -> None:
        self._recording = (
            None if record is None else Recording(Path(record), f"front.{os.getpid()}")
        )
        self._started_s = time.monotonic()
        self._add(EventKind.STARTED, wall_ms=time.time_ns() // 1_000_000)

    def say(self, text: str, request: str = "") -> None:
        _logger.warning("%s%s", f"request {request}: " if request else "", text)
        self._add(EventKind.WORKER, request, text=text)

    def _add(self, kind: EventKind, request: str = "", **fields: object) -> None:
        if self._recording is not None:
            at_s = round(time.monotonic() - self._started_s, 6)
            self._recording.add(at_s, str(kind), request, fields)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._recording is not None:
            self._recording.close()
