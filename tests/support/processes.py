"""Real processes in tests: started as modules, waited for by condition, never left behind."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import aiohttp

__all__ = ["alive", "children", "module_process", "poll", "ready", "request", "send", "until"]

T = TypeVar("T")
_EVERY_S = 0.02
_ROOT = Path(__file__).parents[2]


def poll(condition: Callable[[], T], *, within_s: float = 15.0, what: str = "it") -> T:
    """Return the condition's first truthy value; fail when it stays falsy for that long."""
    end = time.monotonic() + within_s
    while not (value := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"{what} did not happen within {within_s:g} s")
        time.sleep(_EVERY_S)
    return value


async def until(condition: Callable[[], T], *, within_s: float = 15.0, what: str = "it") -> T:
    """Do as `poll` does, and let the event loop run meanwhile."""
    end = time.monotonic() + within_s
    while True:
        if value := condition():
            return value
        if time.monotonic() > end:
            raise AssertionError(f"{what} did not happen within {within_s:g} s")
        await asyncio.sleep(_EVERY_S)


def alive(pid: int) -> bool:
    """Say whether a process exists and is no zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    except OSError:
        return False
    return fields[0] != "Z"


def children(pid: int) -> list[int]:
    """Return the ids of the processes a process has started."""
    try:
        return [
            int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        ]
    except OSError:
        return []


@contextmanager
def module_process(
    module: str,
    *arguments: str,
    environment: dict[str, str] | None = None,
    prefix: Sequence[str] = (),
    in_folder: Path | None = None,
    **more: Any,
) -> Iterator[subprocess.Popen[str]]:
    """Run `python -m module`, with stdout and stderr as pipes, and kill it at the end.

    `prefix` is a command that the whole line is given to, such as a shell that changes signals;
    `in_folder` is where it runs, the project's own folder unless given.
    """
    process = subprocess.Popen(
        [*prefix, sys.executable, "-m", module, *arguments],
        cwd=in_folder or _ROOT,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **more,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.communicate()


def ready(process: subprocess.Popen[str]) -> dict[str, Any]:
    """Read the ready line of a process."""
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, f"no ready line: {process.communicate()[1]}"
    content: dict[str, Any] = json.loads(line)
    return content


async def request(method: str, url: str, **more: Any) -> tuple[int, bytes]:
    """Send one request on a connection of its own; return status and body."""
    limit = aiohttp.ClientTimeout(total=10)
    async with (
        aiohttp.ClientSession(timeout=limit) as session,
        session.request(method, url, **more) as reply,
    ):
        return reply.status, await reply.read()


def send(method: str, url: str, **more: Any) -> tuple[int, bytes]:
    """Send one request from synchronous code."""
    return asyncio.run(request(method, url, **more))
