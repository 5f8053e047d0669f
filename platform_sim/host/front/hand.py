"""Hand: one worker process, as the front sees it.

Rules: it is in a session of its own, so that a terminal's Ctrl-C reaches only the front. What it
writes goes where the front's own output goes. It ends with the front, however that ends: it reads a
lifeline, and one that stands still is killed by the kernel, where that can be arranged.

Not here: which worker serves (`front`), the worker's own side (`worker`).
"""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import msgspec

from platform_sim.host.front.messages import Command, Order, Resting, Woken, Word, read_word, write
from platform_sim.host.lifeline import Lifeline

__all__ = ["Hand"]

_WAKE_EVERY_S: Final = 0.005


class Hand:
    """A worker process; make one with `spawn`.

    Attributes:
        number: 1 for the first, and so on.
        pid: Its process id.
        resting: Whether it stands still.
        ready: Whether its app has started.
    """

    def __init__(
        self, number: int, process: asyncio.subprocess.Process, control: socket.socket
    ) -> None:
        self.number = number
        self.pid = process.pid
        self.resting = False
        self.ready = False
        self._process = process
        self._control = control

    @classmethod
    async def spawn(cls, order: Order, lifeline: Lifeline) -> "Hand":
        """Start the process; the order's control socket is made here."""
        ours, theirs = socket.socketpair()
        told = msgspec.structs.replace(order, control_fd=theirs.fileno())
        try:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "platform_sim.host.front.worker"),
                msgspec.json.encode(told).decode(),
                env={**os.environ, **lifeline.environment()},
                stdin=asyncio.subprocess.DEVNULL,
                start_new_session=True,
                pass_fds=(order.listener_fd, theirs.fileno(), lifeline.read_fd),
            )
        finally:
            theirs.close()
        return cls(order.number, process, ours)

    async def listen(self, hear: Callable[["Hand", Word], None]) -> int:
        """Pass on what the worker says until it has ended; return its exit code."""
        reader, writer = await asyncio.open_connection(sock=self._control)
        with suppress(ConnectionError):  # it was killed while it had not read all
            while line := await reader.readline():
                word = read_word(line)
                self.resting = isinstance(word, Resting) or (
                    self.resting and not isinstance(word, Woken)
                )
                hear(self, word)
        code = await self._process.wait()
        writer.close()
        return code

    def say(self, command: Command) -> None:
        """Tell the worker what to do; nothing if it has just ended."""
        with suppress(OSError):
            self._control.send(write(command))

    async def wake(self) -> None:
        """Let it run again.

        It says that it stands still just before it does, so it may have to be woken twice.
        """
        while self.resting and self._process.returncode is None:
            self.signal(signal.SIGCONT)
            await asyncio.sleep(_WAKE_EVERY_S)

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal; nothing if it has ended."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.send_signal(number)

    def kill(self) -> None:
        """Kill it and whatever it started."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
