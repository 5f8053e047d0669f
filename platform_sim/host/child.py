"""Child: one process of ours, from its start to its end.

A child runs in a session of its own, so a terminal's Ctrl-C reaches only the supervisor, which
then stops everybody in order. It watches the supervisor's lifeline, says on stdout when it is
ready, and everything it writes is passed on line by line.

When children are started again, and in which order they stop, is in `processes`.
"""

import asyncio
import os
import signal
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from platform_sim.host.errors import ChildError
from platform_sim.host.lifeline import Lifeline
from platform_sim.host.ready import Ready, parse_ready

__all__ = ["Child", "ChildSpec", "describe_exit"]

_TAIL_LINES = 15
_HEAR_OUT_S = 1.0  # a pipe may have been passed on to somebody who keeps it open
_LINE_LIMIT_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildSpec:
    """How to start a child and what to do when it dies.

    Attributes:
        role: Its name in messages and in its ready line.
        argv: Program and arguments.
        environment: All its variables; ours are not inherited.
        restart: Whether it is started again when it dies.
        tier: Children of a higher tier start later and stop earlier.
        loss: What its death means, for people; said when it dies.
    """

    role: str
    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    restart: bool = True
    tier: int = 0
    loss: str = ""


class Child:
    """A running child; make one with `spawn`."""

    def __init__(
        self, spec: ChildSpec, process: asyncio.subprocess.Process, hear: Callable[[str], None]
    ) -> None:
        self.spec = spec
        self.pid = process.pid
        self._process = process
        self._hear = hear
        self._tail: deque[str] = deque(maxlen=_TAIL_LINES)
        self._ready: asyncio.Future[Ready] = asyncio.get_running_loop().create_future()
        self._readers = asyncio.gather(self._read_stdout(), self._read_stderr())

    @classmethod
    async def spawn(
        cls, spec: ChildSpec, lifeline: Lifeline, hear: Callable[[str], None]
    ) -> "Child":
        """Start the process; `hear` gets each line it writes."""
        process = await asyncio.create_subprocess_exec(
            *spec.argv,
            env={**spec.environment, **lifeline.environment()},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=_LINE_LIMIT_BYTES,
            start_new_session=True,
            pass_fds=(lifeline.read_fd,),
        )
        return cls(spec, process, hear)

    async def ready(self, within_s: float) -> Ready:
        """Wait for the ready line.

        Raises:
            ChildError: It ended instead, or said nothing within that many seconds.
        """
        ended: asyncio.Future[Any] = asyncio.ensure_future(self.wait())
        waited: set[asyncio.Future[Any]] = {self._ready, ended}
        try:
            await asyncio.wait(waited, timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ended.cancel()
        if self._ready.done():
            return self._ready.result()
        if self._process.returncode is None:
            raise self._failed(f"was not ready within {within_s:g} s")
        raise self._failed(f"{describe_exit(self._process.returncode)} before it was ready")

    async def success(self, within_s: float) -> None:
        """Wait until it has ended by itself, without failing.

        Raises:
            ChildError: It failed, or was stopped because it took longer than that many seconds.
        """
        try:
            code = await asyncio.wait_for(self.wait(), within_s)
        except TimeoutError:
            self.kill()
            await self.wait()
            raise self._failed(f"did not end within {within_s:g} s") from None
        if code != 0:
            raise self._failed(describe_exit(code))

    async def wait(self) -> int:
        """Wait until it has ended and what it wrote was heard; return its exit code.

        Whatever it started itself is killed then: it has nobody left to answer to.
        """
        code = await self._process.wait()
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        await asyncio.wait({self._readers}, timeout=_HEAR_OUT_S)
        return code

    async def stop(self, grace_s: float) -> int:
        """Ask it to end; kill it, and whatever it started, when the grace is over."""
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)
        with suppress(TimeoutError):
            return await asyncio.wait_for(self.wait(), grace_s)
        self.kill()
        return await self.wait()

    def kill(self) -> None:
        """Kill it and whatever it started, without asking."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)

    def _failed(self, reason: str) -> ChildError:
        return ChildError(self.spec.role, reason, tuple(self._tail))

    async def _read_stdout(self) -> None:
        async for line in _lines(self._process.stdout):
            ready = None if self._ready.done() else parse_ready(line)
            if ready is None:
                self._hear(_text(line))
            else:
                self._ready.set_result(ready)

    async def _read_stderr(self) -> None:
        async for line in _lines(self._process.stderr):
            self._tail.append(_text(line))
            self._hear(_text(line))


def describe_exit(code: int) -> str:
    """Say in words how a process ended."""
    if code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    return f"ended with exit code {code}"


def _text(line: bytes) -> str:
    return line.decode(errors="replace").rstrip()


async def _lines(stream: asyncio.StreamReader | None) -> AsyncIterator[bytes]:
    while stream is not None:
        try:
            line = await stream.readline()
        except ValueError:  # longer than the limit: that part is dropped, reading goes on
            continue
        if not line:
            return
        yield line
