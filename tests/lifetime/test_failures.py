"""Failures: of registered work beside its siblings, and of the app before and after its answer."""

import asyncio
from typing import Any

import pytest

from platform_sim.lifetime.emulator import App
from platform_sim.view.event import EventKind
from tests.support.asgi import AsgiClient, answer, call, lifetime_of, respond
from tests.support.stage import Stage
from tests.support.virtual import run_virtual


async def fail(after_s: float, message: str) -> None:
    """Fail after a while."""
    if after_s:
        await asyncio.sleep(after_s)
    raise ValueError(message)


def test_a_failing_task_never_stops_its_siblings() -> None:
    """s03: failures at 0.5 and 1.0 are recorded, the one of 2.0 completes."""

    def app(stage: Stage) -> App:
        async def handler(scope: Any) -> None:
            wait_until = lifetime_of(scope)["wait_until"]
            wait_until(fail(0.5, "a"))
            wait_until(stage.work("b", 2.0))
            wait_until(fail(1.0, "c"))

        return answer(handler)

    async def main() -> tuple[Stage, AsgiClient]:
        stage = Stage(app)
        client = await call(stage.emulator)
        await stage.rest()
        return stage, client

    stage, client = run_virtual(main)

    assert client.status == 200
    assert stage.log == [(2.0, "b")]
    failed = [(e.at_s, e.fields["error"]) for e in stage.events(EventKind.TASK_FAILED)]
    assert failed == [(0.5, "ValueError('a')"), (1.0, "ValueError('c')")]
    assert stage.end() == (2.0, "done")


def test_work_that_failed_before_the_answer_does_not_touch_it() -> None:
    """s04: already failed when the answer leaves at 0.5."""

    def app(stage: Stage) -> App:
        async def handler(scope: Any) -> None:
            lifetime_of(scope)["wait_until"](fail(0, "early"))
            await asyncio.sleep(0.5)
            stage.write("handler returns")

        return answer(handler)

    async def main() -> tuple[Stage, AsgiClient]:
        stage = Stage(app)
        client = await call(stage.emulator)
        await stage.rest()
        return stage, client

    stage, client = run_virtual(main)

    assert (client.status, client.sent[-1][0]) == (200, 0.5)
    assert [event.at_s for event in stage.events(EventKind.TASK_FAILED)] == [0.0]
    assert stage.end() == (0.5, "done")


def test_work_goes_on_when_its_handler_fails() -> None:
    """s16: the server answers 500 in the app's place; the work ends at 2.0."""

    def app(stage: Stage) -> App:
        async def handler(scope: Any) -> None:
            lifetime_of(scope)["wait_until"](stage.work("bg", 2.0))
            await asyncio.sleep(0)
            raise LookupError("handler failed")

        return answer(handler)

    async def main() -> Stage:
        stage = Stage(app)
        with pytest.raises(LookupError, match="handler failed"):
            await call(stage.emulator)
        stage.write("server heard of it")
        await stage.rest()
        return stage

    stage = run_virtual(main)

    assert stage.log == [(0.0, "server heard of it"), (2.0, "bg")]
    assert stage.end() == (2.0, "failed")
    (event,) = stage.events(EventKind.APP_FAILED)
    assert event.fields["error"] == "LookupError('handler failed')"
    assert not event.fields["after_response"]
    assert f'File "{__file__}"' in event.fields["traceback"]
    (end,) = stage.events(EventKind.RESPONSE_END)
    assert end.fields == {"how": "failed", "remaining_s": 30.0}


def test_a_failure_after_the_answer_is_recorded_and_reaches_no_client() -> None:
    """The server's call has returned by then; the failure is still not lost."""

    def app(stage: Stage) -> App:
        async def run(scope: Any, receive: Any, send: Any) -> None:
            del receive
            lifetime_of(scope)["wait_until"](stage.work("bg", 2.0))
            await respond(send)
            await fail(1.0, "late")

        return run

    async def main() -> tuple[Stage, AsgiClient]:
        stage = Stage(app)
        client = await call(stage.emulator)
        await stage.rest()
        return stage, client

    stage, client = run_virtual(main)

    assert client.status == 200
    (event,) = stage.events(EventKind.APP_FAILED)
    assert (event.at_s, event.fields["after_response"]) == (1.0, True)
    assert stage.end() == (2.0, "done")


def test_an_app_that_never_answers_leaves_that_to_the_server() -> None:
    """The call returns to the server without an answer, as it would without us."""

    def app(stage: Stage) -> App:
        async def run(scope: Any, receive: Any, send: Any) -> None:
            del scope, receive, send
            stage.write("returns")

        return run

    async def main() -> tuple[Stage, AsgiClient]:
        stage = Stage(app)
        client = await call(stage.emulator)
        await stage.rest()
        return stage, client

    stage, client = run_virtual(main)

    assert client.sent == []
    (end,) = stage.events(EventKind.RESPONSE_END)
    assert end.fields["how"] == "missing"
    assert stage.end() == (0.0, "done")


def test_an_app_that_cancels_itself_is_a_failure_the_server_hears_of() -> None:
    """As without us: uvicorn answers 500 to a cancelled app call."""

    def app(stage: Stage) -> App:
        del stage

        async def handler(scope: Any) -> None:
            del scope
            await asyncio.sleep(1.0)
            raise asyncio.CancelledError

        return answer(handler)

    async def main() -> Stage:
        stage = Stage(app)
        task = AsgiClient(stage.emulator).start()
        await asyncio.wait({task})
        assert task.cancelled()
        await stage.rest()
        return stage

    stage = run_virtual(main)

    assert stage.end() == (1.0, "failed")


def test_work_that_the_app_cancels_is_told_apart_from_a_cut() -> None:
    """The app may change its mind; the platform had no part in it."""

    def app(stage: Stage) -> App:
        async def handler(scope: Any) -> None:
            work = asyncio.create_task(stage.work("bg", 2.0))
            lifetime_of(scope)["wait_until"](work)
            await asyncio.sleep(0.5)
            work.cancel()

        return answer(handler)

    async def main() -> Stage:
        stage = Stage(app)
        await call(stage.emulator)
        await stage.rest()
        return stage

    stage = run_virtual(main)

    (event,) = stage.events(EventKind.TASK_CANCELLED)
    assert (event.at_s, event.fields["by"]) == (0.5, "app")
    assert stage.events(EventKind.CUT) == []
    assert stage.end() == (0.5, "done")


def lingering(stage: Stage) -> App:
    """Register work that finishes, work that fails and work that stays when it is cancelled."""

    async def finishing() -> None:
        try:
            await asyncio.sleep(50.0)
        except asyncio.CancelledError:
            await asyncio.sleep(0.04)
            stage.write("finishing finished")

    async def failing() -> None:
        try:
            await asyncio.sleep(50.0)
        except asyncio.CancelledError:
            raise RuntimeError("while cleaning up") from None

    async def ignoring() -> None:
        while True:
            try:
                await asyncio.sleep(0.03)
            except asyncio.CancelledError:
                stage.write("ignored the cut")

    async def handler(scope: Any) -> None:
        for work in (finishing(), failing(), ignoring()):
            lifetime_of(scope)["wait_until"](work)

    return answer(handler)


def test_what_cut_work_still_does_in_the_grace_is_recorded() -> None:
    """One finishes, one fails, one ignores the cut and is killed when the grace ends."""

    async def main() -> Stage:
        stage = Stage(lingering)
        await call(stage.emulator)
        await stage.rest()
        return stage

    stage = run_virtual(main)

    assert stage.log == [(30.0, "ignored the cut"), (30.04, "finishing finished")]
    kinds = (
        EventKind.TASK_CANCELLED,
        EventKind.TASK_DONE,
        EventKind.TASK_FAILED,
        EventKind.TASK_KILLED,
        EventKind.CONTEXT_END,
    )
    assert stage.story(*kinds) == [
        (30.0, "task_cancelled", "finishing"),
        (30.0, "task_cancelled", "failing"),
        (30.0, "task_cancelled", "ignoring"),
        (30.0, "task_failed", "failing"),
        (30.04, "task_done", "finishing"),
        (30.1, "task_killed", "ignoring"),
        (30.1, "context_end", "ceiling"),
    ]
    after = stage.events(EventKind.TASK_FAILED, EventKind.TASK_DONE)
    assert [event.fields["after_cut"] for event in after] == [True, True]
