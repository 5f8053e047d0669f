"""What a swept app prints: heard once, on stderr, since every cut would print it again.

Rules: stdout belongs to the report. What is printed while the subject is loaded and in its first
run, which is not cut, is passed on; what comes later is dropped. A stream that the app keeps, as a
log handler does, is the same one throughout. What is written to the file descriptor itself is not
caught.
"""

import contextlib
import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, TextIO

from platform_sim.lab.sweep.trial import Cuts, Subject, Trial

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = ["FirstRunHeard", "Hearing", "hearing"]


class Hearing(io.RawIOBase):
    """Bytes on their way from the app's stdout to another stream, for as long as it listens.

    Args:
        to: Where they go.
    """

    def __init__(self, to: TextIO) -> None:
        self.listens = True
        self._to = to

    def writable(self) -> bool:
        """Say so, to the text stream above."""
        return True

    def write(self, data: "ReadableBuffer") -> int:
        """Pass on, or drop."""
        told = bytes(data)
        if self.listens:
            self._to.write(told.decode("utf-8", "replace"))
        return len(told)


@contextlib.contextmanager
def hearing(to: TextIO) -> Iterator[Hearing]:
    """Send what is printed on stdout to another stream."""
    heard = Hearing(to)
    # Unbuffered, so that nothing waits until nobody listens; typeshed wants a buffer.
    stream = io.TextIOWrapper(heard, "utf-8", errors="replace", write_through=True)  # type: ignore[type-var]
    with contextlib.redirect_stdout(stream):
        yield heard


class FirstRunHeard:
    """A subject of which only the first run is heard.

    Args:
        subject: What is run.
        heard: Listens until the end of that run.
    """

    def __init__(self, subject: Subject, heard: Hearing) -> None:
        self.title = subject.title
        self.seed = subject.seed
        self.has_redrive = subject.has_redrive
        self.if_not_acknowledged = subject.if_not_acknowledged
        self._subject = subject
        self._heard = heard

    def run(self, cuts: Cuts) -> Trial:
        """Run one trial."""
        try:
            return self._subject.run(cuts)
        finally:
            self._heard.listens = False
