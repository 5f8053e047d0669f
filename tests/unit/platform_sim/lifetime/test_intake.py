"""Reading ahead: bounded, in order, and honest about a client that left."""

import asyncio
from typing import Any

from platform_sim.lifetime.intake import READ_AHEAD_BYTES, Intake
from tests.support.virtual import run_virtual


class Source:
    """A server's receive over a fixed list of messages; the last one repeats."""

    def __init__(self, *messages: dict[str, Any]) -> None:
        self.messages = list(messages)
        self.reads = 0

    async def receive(self) -> Any:
        """Return the next message after a turn of the loop."""
        await asyncio.sleep(0.1)
        message = self.messages[min(self.reads, len(self.messages) - 1)]
        self.reads += 1
        return message


def chunk(size: int, *, more: bool = True) -> dict[str, Any]:
    """Return a body message."""
    return {"type": "http.request", "body": b"x" * size, "more_body": more}


GONE = {"type": "http.disconnect"}


def test_a_client_that_leaves_is_seen_although_the_app_never_asks() -> None:
    """The pump returns; what had arrived is still there for the app, and then the disconnect."""
    source = Source(chunk(3, more=False), GONE)

    async def main() -> list[Any]:
        intake = Intake(wait_for_app=False)
        await intake.pump(source.receive)
        intake.disconnect()
        return [await intake.receive() for _ in range(3)]

    assert run_virtual(main) == [chunk(3, more=False), GONE, GONE]


def test_reading_stops_when_the_app_does_not_take_the_body() -> None:
    """It goes on by as much as the app takes."""
    half = READ_AHEAD_BYTES // 2
    source = Source(*[chunk(half)] * 9, chunk(1, more=False), GONE)

    async def main() -> tuple[int, int, list[int]]:
        intake = Intake(wait_for_app=False)
        pump = asyncio.create_task(intake.pump(source.receive))
        await asyncio.sleep(5.0)
        ahead = source.reads
        await intake.receive()
        await asyncio.sleep(5.0)
        after_one = source.reads
        sizes = [len((await intake.receive())["body"]) for _ in range(9)]
        await pump
        return ahead, after_one, sizes

    ahead, after_one, sizes = run_virtual(main)

    assert (ahead, after_one) == (2, 3)
    assert sizes == [half] * 8 + [1]


def test_reading_waits_for_the_app_where_the_client_waits_for_100_continue() -> None:
    """Reading is what makes a server send it; that is the app's to decide."""
    source = Source(chunk(3, more=False), GONE)

    async def main() -> tuple[int, Any]:
        intake = Intake(wait_for_app=True)
        pump = asyncio.create_task(intake.pump(source.receive))
        await asyncio.sleep(5.0)
        before = source.reads
        message = await intake.receive()
        await pump
        return before, message

    assert run_virtual(main) == (0, chunk(3, more=False))


def test_messages_after_the_bodys_end_are_dropped() -> None:
    """A server may repeat an empty last message; held ones would grow without bound."""
    source = Source(chunk(0, more=False), chunk(0, more=False), chunk(0, more=False), GONE)

    async def main() -> list[Any]:
        intake = Intake(wait_for_app=False)
        await intake.pump(source.receive)
        intake.disconnect()
        return [await intake.receive() for _ in range(2)]

    assert run_virtual(main) == [chunk(0, more=False), GONE]


def test_the_app_may_wait_before_anything_arrives() -> None:
    """Several of its tasks at once, as a framework's disconnect listener and body reader do."""
    source = Source(chunk(3, more=False), GONE)

    async def main() -> list[Any]:
        intake = Intake(wait_for_app=False)
        waiting = asyncio.gather(intake.receive(), intake.receive())
        await asyncio.sleep(1.0)
        await intake.pump(source.receive)
        intake.disconnect()
        return list(await waiting)

    assert run_virtual(main) == [chunk(3, more=False), GONE]
