"""What ASGI messages mean, and in whose context the server's own code runs."""

import asyncio
import contextvars
from typing import Any

import pytest

from platform_sim.lifetime.emulator import App
from platform_sim.lifetime.exchange import run_in
from platform_sim.view.event import EventKind
from tests.support.asgi import AsgiClient, call, lifetime_of
from tests.support.stage import Stage
from tests.support.virtual import run_virtual

NAME: contextvars.ContextVar[str] = contextvars.ContextVar("name", default="nobody")

START = {"type": "http.response.start", "status": 200, "headers": []}


def sending(stage: Stage, *messages: dict[str, Any]) -> App:
    """Return an app that sends these messages, a second apart, and then waits a while."""

    async def run(scope: Any, receive: Any, send: Any) -> None:
        del receive
        lifetime_of(scope)["wait_until"](stage.work("bg", 20.0))
        for message in messages:
            await asyncio.sleep(1.0)
            await send(dict(message))
        await asyncio.sleep(10.0)

    return run


@pytest.mark.parametrize(
    "messages",
    [
        ({"type": "http.response.body"},),
        (
            {"type": "http.response.body", "body": b"a", "more_body": True},
            {"type": "http.response.body"},
        ),
        ({"type": "http.response.pathsend", "path": "/tmp/x"},),
        (
            {"type": "http.response.debug", "info": {}},
            {"type": "http.response.body"},
        ),
    ],
)
def test_the_response_ends_with_its_last_message(messages: tuple[dict[str, Any], ...]) -> None:
    """Whichever message that is."""

    async def main() -> Stage:
        stage = Stage(lambda stage: sending(stage, START, *messages))
        await call(stage.emulator)
        await stage.rest()
        return stage

    stage = run_virtual(main)

    (end,) = stage.events(EventKind.RESPONSE_END)
    assert end.at_s == 1.0 + len(messages)


@pytest.mark.parametrize("body", ["http.response.body", "http.response.pathsend"])
def test_trailers_belong_to_the_response(body: str) -> None:
    """Announced at the start, they and not the body end it."""
    messages = (
        {**START, "trailers": True},
        {"type": body, "path": "/tmp/x"},
        {"type": "http.response.trailers", "headers": [], "more_trailers": True},
        {"type": "http.response.trailers", "headers": []},
    )

    async def main() -> Stage:
        stage = Stage(lambda stage: sending(stage, *messages))
        await call(stage.emulator)
        await stage.rest()
        return stage

    stage = run_virtual(main)

    (end,) = stage.events(EventKind.RESPONSE_END)
    assert end.at_s == 4.0


def test_a_message_after_the_last_is_the_servers_business() -> None:
    """It is passed on, and no second end is made of it."""
    last = {"type": "http.response.body"}

    async def main() -> Stage:
        stage = Stage(lambda stage: sending(stage, START, last, last))
        await call(stage.emulator)
        await stage.rest()
        return stage

    stage = run_virtual(main)

    assert len(stage.events(EventKind.RESPONSE_END)) == 1
    assert stage.events(EventKind.APP_FAILED) == []


def test_what_the_server_starts_while_sending_is_not_the_requests() -> None:
    """A keep-alive timer or the next request's task must outlive the kill of this one."""
    names: list[str] = []

    async def main() -> Stage:
        stage = Stage(lambda stage: sending(stage, START, {"type": "http.response.body"}))
        client = AsgiClient(stage.emulator)
        plain_send = client._send
        later: list[asyncio.Task[None]] = []

        async def send(message: Any) -> None:
            names.append(NAME.get())
            later.append(asyncio.create_task(stage.work("the server's", 25.0)))
            await plain_send(message)

        client._send = send  # type: ignore[method-assign]
        NAME.set("server")
        await client.run()
        await stage.rest()
        await asyncio.gather(*later)
        return stage

    stage = run_virtual(main)

    assert names == ["server", "server"]
    assert stage.log == [(20.0, "bg"), (26.0, "the server's"), (27.0, "the server's")]


def test_a_server_that_waits_while_sending_is_waited_for() -> None:
    """Flow control suspends the app in its own send, and a cancellation reaches it there."""
    reached: list[str] = []

    async def waiting() -> str:
        NAME.set("inside")
        try:
            await asyncio.sleep(1.0)
        except asyncio.CancelledError:
            reached.append(NAME.get())
            await asyncio.sleep(1.0)
            return "cancelled"
        return "done"

    async def begun() -> str:
        context, coroutine = contextvars.copy_context(), waiting()
        return await run_in(context, coroutine, context.run(coroutine.send, None))

    async def main() -> tuple[str, str, float, str]:
        done = await begun()
        task = asyncio.create_task(begun())
        await asyncio.sleep(0.5)
        task.cancel()
        return done, await task, asyncio.get_running_loop().time(), NAME.get()

    assert run_virtual(main) == ("done", "cancelled", 2.5, "nobody")
    assert reached == ["inside"]


def test_an_app_that_answers_at_once_is_never_read_for() -> None:
    """No reading task is made for it; one that pauses is read for from then on."""

    def at_once(stage: Stage) -> App:
        del stage

        async def run(scope: Any, receive: Any, send: Any) -> None:
            del receive
            if scope["path"] == "/slow":
                await asyncio.sleep(1.0)
            await send(dict(START))
            await send({"type": "http.response.body"})

        return run

    made: list[Any] = []

    def factory(loop: Any, coroutine: Any, **more: Any) -> Any:
        made.append(coroutine)
        return asyncio.Task(coroutine, loop=loop, **more)

    async def main() -> tuple[int, int, int, int]:
        asyncio.get_running_loop().set_task_factory(factory)
        stage = Stage(at_once)
        fast = await call(stage.emulator)
        fast_tasks = len(made)
        slow = await call(stage.emulator, path="/slow")
        return fast.reads, fast_tasks, slow.reads, len(made) - fast_tasks

    assert run_virtual(main) == (0, 1, 2, 2)


def test_reading_ends_with_the_response() -> None:
    """Also where the server's receive is not woken by the answer."""

    async def main() -> int:
        stage = Stage(lambda stage: sending(stage, START, {"type": "http.response.body"}))
        client = AsgiClient(stage.emulator)
        client._changed.set = lambda: None  # type: ignore[method-assign]
        await client.run()
        await stage.rest()
        await asyncio.sleep(0)
        return len(asyncio.all_tasks())

    assert run_virtual(main) == 1


@pytest.mark.parametrize(
    ("headers", "reads"),
    [((), 2), (((b"Expect", b"100-continue"),), 0), (((b"expect", b"something"),), 2)],
)
def test_a_client_that_waits_for_100_continue_is_not_read_for(
    headers: tuple[tuple[bytes, bytes], ...], reads: int
) -> None:
    """Reading is what would tell it to go on."""

    def app(stage: Stage) -> App:
        return sending(stage, START, {"type": "http.response.body"})

    async def main() -> int:
        stage = Stage(app)
        client = await call(stage.emulator, headers=headers)
        return client.reads

    assert run_virtual(main) == reads
