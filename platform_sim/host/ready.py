"""Ready line: the one line of JSON with which a child process says that it can be used.

`{"ready": "<role>", "url": "http://127.0.0.1:PORT", "pid": N}` on stdout, once. A role without a
socket leaves `url` out. Everything a child has to say besides goes to stderr.
"""

import os
import sys
from typing import TextIO

import msgspec

__all__ = ["Ready", "announce", "parse_ready"]


class Ready(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a ready line."""

    ready: str
    url: str | None = None
    pid: int


def announce(role: str, url: str | None = None, *, stream: TextIO | None = None) -> None:
    """Print this process's ready line and flush it."""
    line = {"ready": role, "url": url, "pid": os.getpid()}
    if url is None:
        del line["url"]
    print(msgspec.json.encode(line).decode(), file=stream or sys.stdout, flush=True)


def parse_ready(line: bytes) -> Ready | None:
    """Read a line of a child's stdout; None when it is anything but a ready line."""
    try:
        return msgspec.json.decode(line, type=Ready)
    except msgspec.MsgspecError:
        return None
