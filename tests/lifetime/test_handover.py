"""A body passed through: the platform sends it, and it holds nothing."""

import asyncio
import functools
from collections.abc import AsyncIterator
from typing import Any

import pytest

from platform_sim.lifetime.emulator import App
from platform_sim.lifetime.handover import HANDOVER
from platform_sim.lifetime.profile import CutMode
from platform_sim.view.event import EventKind
from tests.support.asgi import AsgiClient, call, lifetime_of
from tests.support.stage import Stage
from tests.support.virtual import run_virtual


async def origin(stage: Stage, chunks: int = 8, *, fails: bool = False) -> AsyncIterator[bytes]:
    """Be another server's body: a chunk each half second."""
    try:
        for _ in range(chunks):
            await asyncio.sleep(0.5)
            yield b"x"
        if fails:
            raise ConnectionResetError("origin is gone")
    finally:
        stage.write("origin closed")


def passing(stage: Stage, *, work_s: float = 1.0, pause_s: float = 0.0, **more: Any) -> App:
    """Pass the origin's body through, with registered work and floating work of 0.5 s and 3 s."""
    keep: list[Any] = []

    async def run(scope: Any, receive: Any, send: Any) -> None:
        del receive
        assert HANDOVER in scope["extensions"]
        lifetime_of(scope)["wait_until"](stage.work("bg", work_s))
        keep.extend(
            asyncio.create_task(stage.work(f"floating{n}", n), name=f"floating{n}")
            for n in (0.5, 3.0)
        )
        if pause_s:
            await asyncio.sleep(pause_s)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": HANDOVER, "chunks": origin(stage, **more)})
        stage.write("handed over")

    return run


def test_a_body_that_is_passed_through_does_not_hold_the_context() -> None:
    """s15: floating work dies with the registered work at 1.0, the body goes on to 4.0."""

    async def main() -> tuple[Stage, AsgiClient]:
        stage = Stage(passing)
        client = await call(stage.emulator)
        stage.write("served")
        return stage, client

    stage, client = run_virtual(main)

    assert stage.log == [
        (0.0, "handed over"),
        (0.5, "floating0.5"),
        (1.0, "bg"),
        (1.0, "floating3.0 cancelled"),
        (4.0, "origin closed"),
        (4.0, "served"),
    ]
    assert (client.status, client.body, client.answered) == (200, b"x" * 8, True)
    assert stage.end() == (1.0, "done")
    ends = stage.events(EventKind.RESPONSE_END, EventKind.BODY_OVER)
    assert [(event.at_s, event.fields["how"]) for event in ends] == [
        (0.0, "handed_over"),
        (4.0, "complete"),
    ]


def test_the_window_is_counted_from_the_hand_over() -> None:
    """Work beside a body of 4 s gets the allowance from 0.0, not from 4.0."""

    async def main() -> Stage:
        stage = Stage(functools.partial(passing, work_s=50.0))
        await call(stage.emulator)
        await stage.rest()
        return stage

    stage = run_virtual(main)

    assert stage.end() == (30.0, "ceiling")


@pytest.mark.parametrize("pause_s", [0.0, 0.1])
def test_a_client_that_leaves_ends_the_body_and_no_work(pause_s: float) -> None:
    """s15, reset: left at 0.3; the registered work still ends at 1.0."""

    async def main() -> Stage:
        stage = Stage(functools.partial(passing, pause_s=pause_s))
        client = AsgiClient(stage.emulator)
        serving = client.start()
        await asyncio.sleep(0.3)
        client.leave()
        await serving
        stage.write("served")
        await stage.rest()
        return stage

    stage = run_virtual(main)

    assert stage.log == [
        (pause_s, "handed over"),
        (0.3, "origin closed"),
        (0.3, "served"),
        (0.5, "floating0.5"),
        (1.0, "bg"),
        (1.0, "floating3.0 cancelled"),
    ]
    assert stage.end() == (1.0, "done")
    (passed,) = stage.events(EventKind.BODY_OVER)
    assert (passed.at_s, passed.fields["how"]) == (0.3, "left")


def test_a_body_for_a_client_that_has_left_is_never_drawn() -> None:
    """Handed over at 0.5 to nobody; the registered work goes on."""

    async def main() -> Stage:
        stage = Stage(functools.partial(passing, pause_s=0.5))
        client = AsgiClient(stage.emulator)
        serving = client.start()
        await asyncio.sleep(0.3)
        client.leave()
        await serving
        await stage.rest()
        return stage

    stage = run_virtual(main)

    assert "origin closed" not in [what for _, what in stage.log]
    assert stage.events(EventKind.BODY_OVER) == []
    assert stage.end() == (1.0, "done")


def test_a_kill_of_the_request_leaves_the_body_alone() -> None:
    """It is the platform's: no line of the request produces it."""

    async def main() -> tuple[Stage, AsgiClient]:
        stage = Stage(functools.partial(passing, work_s=50.0), cut=CutMode.KILL, allowance_s=2.0)
        client = await call(stage.emulator)
        await stage.rest()
        return stage, client

    stage, client = run_virtual(main)

    assert client.body == b"x" * 8
    assert stage.log[-1] == (4.0, "origin closed")
    assert stage.end() == (2.0, "ceiling")


def test_a_body_that_fails_reaches_the_server_and_not_the_work() -> None:
    """The server then drops the connection, as for any answer that stays unfinished."""

    async def main() -> tuple[Stage, AsgiClient]:
        stage = Stage(functools.partial(passing, work_s=5.0, chunks=2, fails=True))
        client = AsgiClient(stage.emulator)
        with pytest.raises(ConnectionResetError, match="origin is gone"):
            await client.run()
        await stage.rest()
        return stage, client

    stage, client = run_virtual(main)

    assert (client.body, client.answered) == (b"xx", False)
    assert (5.0, "bg") in stage.log
    (passed,) = stage.events(EventKind.BODY_OVER)
    assert (passed.at_s, passed.fields["how"]) == (1.0, "failed")


def test_a_server_that_gives_up_ends_the_body() -> None:
    """A request task that is cancelled forwards no more."""

    async def main() -> Stage:
        stage = Stage(passing)
        serving = AsgiClient(stage.emulator).start()
        await asyncio.sleep(1.2)
        serving.cancel()
        await asyncio.wait({serving})
        await asyncio.sleep(0)
        return stage

    stage = run_virtual(main)

    assert stage.log[-1] == (1.2, "origin closed")


def test_after_the_hand_over_the_app_sends_no_body_of_its_own() -> None:
    """The body is the platform's: a second one would mix with it."""

    def app(stage: Stage) -> App:
        async def run(scope: Any, receive: Any, send: Any) -> None:
            del scope, receive
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": HANDOVER, "chunks": origin(stage, 1)})
            with pytest.raises(RuntimeError, match="handed over"):
                await send({"type": "http.response.body", "body": b"mine"})

        return run

    async def main() -> AsgiClient:
        return await call(Stage(app).emulator)

    assert run_virtual(main).body == b"x"


def test_an_iterator_that_cannot_be_closed_will_do() -> None:
    """Any async iterator of bytes."""

    class Three:
        def __init__(self) -> None:
            self._left = 3

        def __aiter__(self) -> "Three":
            return self

        async def __anext__(self) -> bytes:
            if not self._left:
                raise StopAsyncIteration
            self._left -= 1
            return b"y"

    def app(stage: Stage) -> App:
        del stage

        async def run(scope: Any, receive: Any, send: Any) -> None:
            del scope, receive
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": HANDOVER, "chunks": Three()})

        return run

    async def main() -> AsgiClient:
        return await call(Stage(app).emulator)

    assert run_virtual(main).body == b"yyy"
