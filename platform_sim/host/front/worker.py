"""Worker process: the app, serving when the front says so, and ready to be killed.

Rules: it starts the app, says that it is ready, and waits. Told to serve, it accepts connections
from the front's socket; told to retire, it finishes what it has and ends. At a ceiling that takes
the process along it writes its record, says so and kills itself, in one turn of its event loop.
Where the process stands still between requests, it stops itself when it has neither a request nor a
connection; each answer closes its connection, so that whoever comes next comes to the front's
socket. It ends with the front, however that ends.

Not here: which worker serves (`front`).
"""

import asyncio
import ctypes
import itertools
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, redirect_stderr, suppress
from functools import partial
from pathlib import Path
from typing import Final

from platform_sim.host.app_log import AppLog, hear_app
from platform_sim.host.errors import LaunchError, explain
from platform_sim.host.front.ceilings import Ceilings
from platform_sim.host.front.messages import (
    Command,
    Dying,
    Full,
    Order,
    Ready,
    Resting,
    Retire,
    Serve,
    Woken,
    Word,
    read_command,
    read_order,
    write,
)
from platform_sim.host.imports import load_app
from platform_sim.host.lifeline import watch_lifeline
from platform_sim.host.serving import Server, config_for
from platform_sim.host.signals import StopRequests, stop_requests
from platform_sim.host.stall import watching_stalls
from platform_sim.lifetime.emulator import App, Emulator
from platform_sim.lifetime.profile import CutMode
from platform_sim.view.cut_log import CutLog
from platform_sim.view.event import Event, EventKind
from platform_sim.view.recorder import Observer, Tee
from platform_sim.view.recording import Recording

__all__ = ["Worker", "main", "request_ids"]

_CANNOT_START: Final = 2
_LOOK_EVERY_S: Final = 0.005
_PR_SET_PDEATHSIG: Final = 1


class Worker:
    """One worker process's own part.

    Args:
        order: What the front has told.
        control: The worker's end of the socket pair.

    Attributes:
        kinds: The events it wants to be told.
    """

    def __init__(self, order: Order, control: socket.socket) -> None:
        self._order = order
        self._control = control
        self._killed = 0
        self._server: Server | None = None
        self.kinds = frozenset({EventKind.CUT})

    def tell(self, word: Word) -> None:
        """Say something to the front; a worker whose front is gone ends by its lifeline."""
        with suppress(OSError):
            self._control.send(write(word))

    def observe(self, event: Event) -> None:
        """Count what a kill leaves behind, and ask to be replaced before it is too much."""
        if event.kind is EventKind.CUT and event.fields["mode"] == CutMode.KILL:
            before = self._killed
            self._killed += len(event.fields["names"]) + event.fields["helpers"]
            if before < self._order.recycle_after <= self._killed:
                self.tell(Full(self._killed))

    async def serve(self, app: App, observer: Observer, app_log: AppLog | None) -> None:
        """Serve until told to retire or asked to stop."""
        order = self._order
        emulator = Emulator(
            app,
            profile=order.profile,
            observer=observer,
            ids=request_ids(order.number),
            wall_ms=lambda: time.time_ns() // 1_000_000,
            end_process=self._end_process,
        )
        if app_log is not None:
            app_log.heard = partial(hear_app, emulator)
        with stop_requests() as stop, watching_stalls(order.stall_s, emulator):
            self._server = Server(
                config_for(emulator, access_log=order.access_log),
                emulator,
                stop,
                socket.socket(fileno=order.listener_fd),
                grace_s=order.profile.shutdown_grace_s,
                conduct=lambda server: self._conduct(server, emulator, stop),
            )
            await self._server.serve()

    async def _conduct(self, server: Server, emulator: Emulator, stop: StopRequests) -> None:
        reader, writer = await asyncio.open_connection(sock=self._control.dup())
        self.tell(Ready())
        stopping = asyncio.ensure_future(stop.wait())
        serving = asyncio.ensure_future(self._serve_until_retired(reader, server, emulator))
        await asyncio.wait({stopping, serving}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        serving.cancel()
        await asyncio.wait({serving})
        writer.close()

    async def _serve_until_retired(
        self, reader: asyncio.StreamReader, server: Server, emulator: Emulator
    ) -> None:
        await _told(reader, Serve)
        server.listen()
        retiring = asyncio.ensure_future(_told(reader, Retire))
        try:
            if self._order.sleeps:
                server.close_connections()
                await self._rest_until(retiring, server, emulator)
            await retiring
        finally:
            retiring.cancel()
        await server.retire()

    async def _rest_until(
        self, retiring: "asyncio.Future[None]", server: Server, emulator: Emulator
    ) -> None:
        """Stand still whenever there is neither a request nor a connection."""
        while not retiring.done():
            await asyncio.wait({retiring}, timeout=_LOOK_EVERY_S)
            if retiring.done() or not emulator.idle or server.connections:
                continue
            server.pause()
            self.tell(Resting())
            os.kill(os.getpid(), signal.SIGSTOP)
            self.tell(Woken())
            server.listen()

    def _end_process(self) -> None:
        self.tell(Dying(0 if self._server is None else self._server.connections))
        os.kill(os.getpid(), signal.SIGKILL)


async def _told(reader: asyncio.StreamReader, command: type[Command]) -> None:
    """Return when the front has given that command; never when it is gone."""
    while line := await reader.readline():
        if isinstance(read_command(line), command):
            return
    await asyncio.get_running_loop().create_future()


def _die_with_parent() -> None:
    """Let the kernel kill this process with its front, even while it stands still (Linux)."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def request_ids(number: int) -> Iterator[str]:
    """Yield names for a worker's requests: 1, 2 of the first worker, w2-1, w2-2 of the second."""
    prefix = "" if number == 1 else f"w{number}-"
    for count in itertools.count(1):
        yield f"{prefix}{count}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a worker; its only argument is the order, as JSON."""
    watch_lifeline()
    (text,) = sys.argv[1:] if arguments is None else arguments
    order = read_order(text)
    if order.sleeps:
        _die_with_parent()
    app_log = None
    with ExitStack() as open_things:
        control = open_things.enter_context(socket.socket(fileno=order.control_fd))
        worker = Worker(order, control)
        observers: list[Observer] = [CutLog(), worker]
        if order.profile.cut is CutMode.PROCESS:
            observers.append(Ceilings(worker.tell, time.monotonic))
        if order.record is not None:
            recording = Recording(Path(order.record), f"web-{order.number}.{os.getpid()}")
            observers.append(open_things.enter_context(recording))
            app_log = open_things.enter_context(redirect_stderr(AppLog(sys.stderr)))
        try:
            app = load_app(order.app)
        except LaunchError as error:
            explain(error)
            sys.exit(_CANNOT_START)
        asyncio.run(worker.serve(app, Tee(*observers), app_log))


if __name__ == "__main__":
    main()
