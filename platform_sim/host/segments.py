"""Segments: what is written to a connection in one turn of the event loop leaves together.

Rules: head and body of a small answer become one segment and one system call instead of two. What
is written is passed on in the loop's next turn, or before the connection closes, in order; nothing
is ever held longer. Everything else is the real transport's.

Not here: flow control, which is the real transport's: it is told of all bytes a turn later.
"""

import asyncio
from collections.abc import Iterable
from typing import Any

__all__ = ["Segments"]


class Segments(asyncio.Transport):
    """Stands in for a connection's transport.

    Args:
        transport: The real one.
        loop: Where turns are counted.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._transport = transport
        self._loop = loop
        self._parts: list[Any] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Write in the next turn, together with what else is written in this one."""
        if not data:
            return
        if not self._parts:
            self._loop.call_soon(self._flush)
        self._parts.append(bytes(data))

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        """Write each in turn."""
        for data in list_of_data:
            self.write(data)

    def _flush(self) -> None:
        parts, self._parts = self._parts, []
        if parts:
            self._transport.write(parts[0] if len(parts) == 1 else b"".join(parts))

    def close(self) -> None:
        """Write what is left, then close."""
        self._flush()
        self._transport.close()

    def write_eof(self) -> None:
        """Write what is left, then close this direction."""
        self._flush()
        self._transport.write_eof()

    def abort(self) -> None:
        """Close at once; what is left is lost."""
        self._parts = []
        self._transport.abort()

    def get_write_buffer_size(self) -> int:
        """Return how many bytes wait."""
        waiting = sum(map(len, self._parts))
        return waiting + self._transport.get_write_buffer_size()

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Write what is left, then hand the connection to another protocol."""
        self._flush()
        self._transport.set_protocol(protocol)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return what the real transport knows."""
        return self._transport.get_extra_info(name, default)

    def is_closing(self) -> bool:
        """Tell whether it closes."""
        return self._transport.is_closing()

    def can_write_eof(self) -> bool:
        """Tell whether one direction can be closed."""
        return self._transport.can_write_eof()

    def get_protocol(self) -> asyncio.BaseProtocol:
        """Return who is told what arrives."""
        return self._transport.get_protocol()

    def is_reading(self) -> bool:
        """Tell whether it reads."""
        return self._transport.is_reading()

    def pause_reading(self) -> None:
        """Read no more."""
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Read again."""
        self._transport.resume_reading()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Set when writing is paused."""
        self._transport.set_write_buffer_limits(high, low)
