"""Work that was started and never given to wait_until: it holds nothing and ends with the rest."""

import asyncio
import contextvars
from collections.abc import Callable
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from platform_sim.lifetime.emulator import App
from platform_sim.lifetime.profile import GENERIC, CutMode
from platform_sim.view.event import EventKind
from tests.support.asgi import AsgiClient, answer, call, lifetime_of, respond
from tests.support.stage import Stage
from tests.support.virtual import run_virtual


def test_floating_work_dies_with_the_response() -> None:
    """s18: nothing holds the context, so the task is cut where it waits, and named."""
    kept: list[Any] = []

    def app(stage: Stage) -> App:
        async def handler(scope: Any) -> None:
            del scope
            kept.append(asyncio.create_task(stage.work("floating", 0.5), name="mailer"))

        return answer(handler)

    async def main() -> Stage:
        stage = Stage(app)
        await call(stage.emulator)
        await stage.rest()
        return stage

    stage = run_virtual(main)

    assert stage.log == [(0.0, "floating cancelled")]
    assert stage.end() == (0.0, "done")
    (cut,) = stage.events(EventKind.CUT)
    assert cut.fields["text"] == (
        f"cancel at 0.0 (done): mailer (never given to wait_until; created at {__file__}:32 "
        "in handler); "
        "window 30.0 s counted from the answer at 0.0"
    )
    assert stage.story(EventKind.FLOATING_CANCELLED) == [(0.0, "floating_cancelled", "mailer")]


def streaming(stage: Stage) -> App:
    """s14: a stream of 4 s, registered work of 1 s, floating work of 3 s and 6 s."""
    keep: list[Any] = []

    async def run(scope: Any, receive: Any, send: Any) -> None:
        del receive
        lifetime_of(scope)["wait_until"](stage.work("bg", 1.0))
        keep.extend(
            asyncio.create_task(stage.work(f"floating{n}s", float(n)), name=f"floating{n}s")
            for n in (3, 6)
        )
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(8):
            await asyncio.sleep(0.5)
            await send({"type": "http.response.body", "body": b"x", "more_body": True})
        await send({"type": "http.response.body"})
        stage.write("stream closed")

    return run


def test_a_stream_holds_the_context_for_floating_work() -> None:
    """s14: the 3 s task ends inside the stream, the 6 s task is cut with it at 4.0."""

    async def main() -> Stage:
        stage = Stage(streaming)
        await call(stage.emulator)
        await stage.rest()
        return stage

    stage = run_virtual(main)

    assert stage.log == [
        (1.0, "bg"),
        (3.0, "floating3s"),
        (4.0, "stream closed"),
        (4.0, "floating6s cancelled"),
    ]
    assert stage.end() == (4.0, "done")


def test_a_reset_ends_the_stream_and_all_floating_work() -> None:
    """s14, reset at 2.2: registered work is over by then, so everything ends there."""

    async def main() -> Stage:
        stage = Stage(streaming)
        client = AsgiClient(stage.emulator)
        serving = client.start()
        await asyncio.sleep(2.2)
        client.leave()
        await serving
        await stage.rest()
        return stage

    stage = run_virtual(main)

    assert stage.log == [(1.0, "bg"), (2.2, "floating3s cancelled"), (2.2, "floating6s cancelled")]
    assert stage.end() == (2.2, "client_left")


def test_registered_work_holds_the_context_for_floating_work() -> None:
    """The floating 1 s task ends beside registered work of 2 s, the 3 s task is cut with it."""
    keep: list[Any] = []

    def app(stage: Stage) -> App:
        async def handler(scope: Any) -> None:
            lifetime_of(scope)["wait_until"](stage.work("bg", 2.0))
            keep.extend(asyncio.create_task(stage.work(f"{n}s", n)) for n in (1.0, 3.0))

        return answer(handler)

    async def main() -> Stage:
        stage = Stage(app)
        await call(stage.emulator)
        await stage.rest()
        return stage

    stage = run_virtual(main)

    assert stage.log == [(1.0, "1.0s"), (2.0, "bg"), (2.0, "3.0s cancelled")]
    assert stage.end() == (2.0, "done")


def with_background_task(stage: Stage) -> App:
    """Answer with a plain Starlette BackgroundTask of 1 s."""

    async def home(request: Request) -> Response:
        del request
        return PlainTextResponse("ok", background=BackgroundTask(stage.work, "background", 1.0))

    return Starlette(routes=[Route("/", home)])


@pytest.mark.parametrize("cut", [CutMode.CANCEL, CutMode.KILL])
def test_a_background_task_is_cut_with_its_response(cut: CutMode) -> None:
    """It runs in the app call, after the body: the platform knows nothing of it."""

    async def main() -> tuple[Stage, AsgiClient]:
        stage = Stage(with_background_task, cut=cut)
        client = await call(stage.emulator)
        await stage.rest()
        return stage, client

    stage, client = run_virtual(main)

    assert (client.status, client.body) == (200, b"ok")
    assert stage.log == ([(0.0, "background cancelled")] if cut is CutMode.CANCEL else [])
    assert stage.end() == (0.0, "done")
    (event,) = stage.events(EventKind.CUT)
    assert event.fields["names"] == ["the app call"]
    assert "the app call, still running at " in event.fields["text"]
    assert "in work (a BackgroundTask, say: never given to wait_until)" in event.fields["text"]


def test_a_background_task_runs_to_its_end_in_a_plain_process() -> None:
    """The generic profile counts floating work as registered."""

    async def main() -> tuple[Stage, float]:
        stage = Stage(with_background_task, profile=GENERIC)
        await call(stage.emulator)
        released_at = asyncio.get_running_loop().time()
        await stage.rest()
        return stage, released_at

    stage, released_at = run_virtual(main)

    assert released_at == 0.0
    assert stage.log == [(1.0, "background")]
    assert stage.end() == (1.0, "done")


def test_a_ceiling_bounds_a_plain_process_too() -> None:
    """An allowance given to the generic profile cuts floating work at its ceiling."""

    async def main() -> Stage:
        stage = Stage(with_background_task, profile=GENERIC, allowance_s=0.25)
        await call(stage.emulator)
        await stage.rest()
        return stage

    stage = run_virtual(main)

    assert stage.log == [(0.25, "background cancelled")]
    assert stage.end() == (0.25, "ceiling")


class _Passing(BaseHTTPMiddleware):
    """Middleware that passes everything on, with a task group as BaseHTTPMiddleware has it."""

    async def dispatch(self, request: Request, call_next: Any) -> Response:
        response: Response = await call_next(request)
        return response


@pytest.mark.parametrize("layers", [0, 1, 3, 6])
def test_a_framework_taking_itself_down_after_the_answer_is_no_lost_work(layers: int) -> None:
    """Task groups need some turns of the loop to close; nothing of that waits, nothing is cut."""

    async def chunks() -> Any:
        yield b"a"
        await asyncio.sleep(1.0)
        yield b"b"

    async def home(request: Request) -> Response:
        del request
        return StreamingResponse(chunks())

    def app(stage: Stage) -> App:
        del stage
        return Starlette(routes=[Route("/", home)], middleware=[Middleware(_Passing)] * layers)

    async def main() -> tuple[Stage, AsgiClient]:
        stage = Stage(app)
        client = await call(stage.emulator)
        await stage.rest()
        return stage, client

    stage, client = run_virtual(main)

    assert client.body == b"ab"
    assert stage.events(EventKind.CUT) == []
    assert stage.end() == (1.0, "done")


def test_work_registered_right_after_the_answer_is_accepted() -> None:
    """Code that has not waited since the answer is still inside the response's last turn."""

    def app(stage: Stage) -> App:
        async def run(scope: Any, receive: Any, send: Any) -> None:
            del receive
            await respond(send)
            await asyncio.sleep(0)
            lifetime_of(scope)["wait_until"](stage.work("bg", 2.0))
            await stage.work("app", 1.0, 5.0)

        return run

    async def main() -> Stage:
        stage = Stage(app)
        await call(stage.emulator)
        await stage.rest()
        return stage

    stage = run_virtual(main)

    assert stage.log == [(1.0, "app"), (2.0, "bg"), (2.0, "app cancelled")]
    assert stage.end() == (2.0, "done")


def test_helpers_of_registered_work_are_counted_and_not_called_floating() -> None:
    """A task group inside registered work is part of it: cut with it, under its name."""

    def app(stage: Stage) -> App:
        async def group() -> None:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(stage.work("one", 50.0))
                tasks.create_task(nested())

        async def nested() -> None:
            await asyncio.create_task(stage.work("two", 50.0))

        async def handler(scope: Any) -> None:
            lifetime_of(scope)["wait_until"](group())

        return answer(handler)

    async def main() -> Stage:
        stage = Stage(app)
        await call(stage.emulator)
        await stage.rest()
        return stage

    stage = run_virtual(main)

    (cut,) = stage.events(EventKind.CUT)
    assert (cut.fields["names"], cut.fields["helpers"]) == (["group"], 3)
    assert stage.events(EventKind.FLOATING_CANCELLED) == []
    assert sorted(stage.log) == [(30.0, "one cancelled"), (30.0, "two cancelled")]
    assert stage.end() == (30.0, "ceiling")


def test_a_task_born_in_an_empty_context_belongs_to_nobody() -> None:
    """How a library starts a worker that outlives the request which happened to need it."""
    kept: list[Any] = []

    def app(stage: Stage) -> App:
        async def handler(scope: Any) -> None:
            del scope
            make: Callable[..., Any] = asyncio.get_running_loop().create_task
            kept.append(contextvars.Context().run(make, stage.work("worker", 1.0)))

        return answer(handler)

    async def main() -> Stage:
        stage = Stage(app)
        await call(stage.emulator)
        await stage.rest()
        await kept[0]
        return stage

    stage = run_virtual(main)

    assert stage.log == [(1.0, "worker")]
    assert stage.end() == (0.0, "done")
