"""Lifeline: a pipe through which a child process learns that its supervisor is gone.

The supervisor holds the only write end and never writes. Each child inherits the read end and its
number in the environment. A supervisor that ends in any way, SIGKILL included, closes the write
end; the child reads end-of-file and leaves at once, so nobody is orphaned.

Orderly stopping is not here: that is SIGTERM, sent by the supervisor (`processes`).
"""

import os
import threading
from collections.abc import Callable, Mapping

__all__ = ["LIFELINE_FD", "Lifeline", "watch_lifeline"]

LIFELINE_FD = "OUTLAST_LIFELINE_FD"
"""Environment variable that names the file descriptor a child reads."""


class Lifeline:
    """The supervisor's side: one pipe, kept open for as long as children may live."""

    def __init__(self) -> None:
        self.read_fd, write_fd = os.pipe()
        self._write_fd: int | None = write_fd

    def environment(self) -> dict[str, str]:
        """Return the variables a child needs; pass `read_fd` to it as well (`pass_fds`)."""
        return {LIFELINE_FD: str(self.read_fd)}

    def release(self) -> None:
        """Let go: every child still watching leaves now."""
        if self._write_fd is not None:
            os.close(self._write_fd)
            self._write_fd = None

    def close(self) -> None:
        """Let go, and give both file descriptors back."""
        self.release()
        os.close(self.read_fd)


def watch_lifeline(
    environ: Mapping[str, str] = os.environ, *, leave: Callable[[int], object] = os._exit
) -> threading.Thread | None:
    """Leave this process as soon as the supervisor that started it is gone.

    Call once, first thing in a child's main. Without a lifeline in the environment (a process
    started by hand) nothing is watched and None is returned.

    Args:
        environ: Where `OUTLAST_LIFELINE_FD` is looked up.
        leave: Ends the process with the given exit code, without cleaning up: work that is owed
            is in the store, and a supervisor that died gave no time to tidy.

    Raises:
        ValueError: The variable is set and is not the number of an open file descriptor.
    """
    given = environ.get(LIFELINE_FD)
    if given is None:
        return None
    try:
        read_fd = int(given)
        os.fstat(read_fd)
    except (ValueError, OSError) as broken:
        message = f"{LIFELINE_FD}={given!r} is not an open file descriptor; unset it"
        raise ValueError(message) from broken

    def watch() -> None:
        while os.read(read_fd, 1):
            pass
        leave(0)

    thread = threading.Thread(target=watch, name="lifeline", daemon=True)
    thread.start()
    return thread
