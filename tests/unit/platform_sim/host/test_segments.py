"""What is written in one turn leaves in one segment, and nothing is lost or reordered."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from platform_sim.host.segments import Segments
from tests.support.virtual import run_virtual


class Wire(asyncio.Transport):
    """A transport that notes what is asked of it."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[Any] = []

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("_") or name == "asked":
            return super().__getattribute__(name)

        def note(*arguments: Any) -> Any:
            self.asked.append((name, *arguments))
            return 7

        return note


def asked_of(act: Callable[[Segments], Awaitable[None]]) -> list[Any]:
    """Return what reached the wire."""
    wire = Wire()

    async def main() -> None:
        await act(Segments(wire, asyncio.get_running_loop()))
        await asyncio.sleep(0)

    run_virtual(main)
    return wire.asked


def test_one_turn_is_one_segment() -> None:
    """Empty writes are none."""

    async def act(segments: Segments) -> None:
        segments.write(b"head")
        segments.write(b"")
        segments.writelines([b"bo", bytearray(b"dy")])
        await asyncio.sleep(0)
        segments.write(b"alone")

    assert asked_of(act) == [("write", b"headbody"), ("write", b"alone")]


@pytest.mark.parametrize("end", ["close", "write_eof"])
def test_what_is_left_is_written_before_the_end(end: str) -> None:
    """And only once."""

    async def act(segments: Segments) -> None:
        segments.write(b"last")
        getattr(segments, end)()

    assert asked_of(act) == [("write", b"last"), (end,)]


def test_another_protocol_gets_the_connection_after_what_was_written() -> None:
    """As with an upgrade."""
    protocol = asyncio.Protocol()

    async def act(segments: Segments) -> None:
        segments.write(b"switching")
        segments.set_protocol(protocol)

    assert asked_of(act) == [("write", b"switching"), ("set_protocol", protocol)]


def test_an_abort_loses_what_is_left() -> None:
    """That is what it is for."""

    async def act(segments: Segments) -> None:
        segments.write(b"never")
        segments.abort()

    assert asked_of(act) == [("abort",)]


def test_bytes_that_wait_are_counted() -> None:
    """With those of the real transport."""

    async def act(segments: Segments) -> None:
        segments.write(b"12345")
        assert segments.get_write_buffer_size() == 5 + 7

    asked_of(act)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("get_extra_info", ("socket", None)),
        ("is_closing", ()),
        ("can_write_eof", ()),
        ("get_protocol", ()),
        ("is_reading", ()),
        ("pause_reading", ()),
        ("resume_reading", ()),
        ("set_write_buffer_limits", (2, 1)),
    ],
)
def test_everything_else_is_the_real_transport_s(name: str, arguments: tuple[Any, ...]) -> None:
    """Asked for with the same arguments."""

    async def act(segments: Segments) -> None:
        getattr(segments, name)(*arguments)

    assert asked_of(act) == [(name, *arguments)]
