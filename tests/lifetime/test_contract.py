"""The contract as the app meets it: what may be passed, when it may be called, what is let go."""

import asyncio
from typing import Any

import anyio
import pytest

from platform_sim.lifetime.emulator import App, Emulator
from platform_sim.lifetime.errors import NoLiveInvocation
from platform_sim.lifetime.profile import WORKERS
from platform_sim.lifetime.wait_until import EXTENSION, remaining, wait_until
from platform_sim.view.event import EventKind
from tests.support.asgi import AsgiClient, answer, call, lifetime_of, respond
from tests.support.stage import Stage
from tests.support.virtual import run_virtual


async def nothing() -> None:
    """Do nothing."""


def test_http_and_lifespan_scopes_carry_the_contract_and_others_pass_untouched() -> None:
    """The strict start-up check needs it in the lifespan scope."""
    seen: dict[str, Any] = {}

    async def app(scope: Any, receive: Any, send: Any) -> None:
        del receive
        seen[scope["type"]] = scope.get("extensions")
        if scope["type"] == "http":
            await respond(send)

    async def main() -> None:
        emulator = Emulator(app, profile=WORKERS)
        await call(emulator)
        for kind in ("lifespan", "websocket"):
            await emulator({"type": kind, "extensions": {"other": {}}}, nothing, nothing)  # type: ignore[arg-type]

    run_virtual(main)

    assert set(seen["http"][EXTENSION]) == {"wait_until", "remaining", "platform", "stopping"}
    assert seen["lifespan"][EXTENSION]["platform"] == "workers"
    assert seen["lifespan"]["other"] == {}
    assert seen["websocket"] == {"other": {}}


def test_an_app_that_refuses_to_start_is_heard() -> None:
    """What the app raises in its lifespan reaches the server unchanged."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        del scope, receive, send
        raise LookupError("no table")

    async def main() -> None:
        with pytest.raises(LookupError, match="no table"):
            await Emulator(app, profile=WORKERS)({"type": "lifespan"}, nothing, nothing)  # type: ignore[arg-type]

    run_virtual(main)


def test_outside_any_request_both_functions_say_so() -> None:
    """Also in the lifespan, where the contract is present."""

    async def main() -> None:
        with pytest.raises(NoLiveInvocation, match="wait_until was called outside any request"):
            wait_until(nothing())
        with pytest.raises(NoLiveInvocation, match="remaining was called outside any request"):
            remaining()

    run_virtual(main)


@pytest.mark.parametrize("wrong", [None, 3, nothing, print])
def test_what_cannot_be_awaited_is_refused(wrong: Any) -> None:
    """A function that was not called is the usual mistake; the message says what to do."""

    def app(stage: Stage) -> App:
        async def handler(scope: Any) -> None:
            with pytest.raises(TypeError, match="call the async function"):
                lifetime_of(scope)["wait_until"](wrong)
            stage.write("refused")

        return answer(handler)

    async def main() -> Stage:
        stage = Stage(app)
        await call(stage.emulator)
        return stage

    stage = run_virtual(main)

    assert stage.log == [(0.0, "refused")]
    assert stage.events(EventKind.REGISTERED) == []


def test_a_call_that_comes_after_the_ceiling_is_refused() -> None:
    """Cleanup code cannot buy itself more time."""

    def app(stage: Stage) -> App:
        async def work(lifetime: Any) -> None:
            try:
                await asyncio.sleep(50.0)
            finally:
                try:
                    lifetime["wait_until"](stage.work("more", 50.0))
                except NoLiveInvocation as error:
                    stage.write(str(error))

        async def handler(scope: Any) -> None:
            lifetime_of(scope)["wait_until"](work(lifetime_of(scope)))

        return answer(handler)

    async def main() -> Stage:
        stage = Stage(app)
        await call(stage.emulator)
        await stage.rest()
        return stage

    stage = run_virtual(main)

    ((refused_at, message),) = stage.log
    assert refused_at == 30.0
    assert message == (
        "wait_until came too late: request 1 is over (ceiling). Register work while the "
        "response or earlier work holds it."
    )


def test_a_future_that_comes_too_late_is_refused_and_left_alone() -> None:
    """Only a coroutine that nobody will await is closed."""
    futures: list[asyncio.Future[None]] = []

    def app(stage: Stage) -> App:
        async def work(lifetime: Any) -> None:
            try:
                await asyncio.sleep(50.0)
            finally:
                futures.append(asyncio.get_running_loop().create_future())
                with pytest.raises(NoLiveInvocation):
                    lifetime["wait_until"](futures[0])
                stage.write("refused")

        async def handler(scope: Any) -> None:
            lifetime_of(scope)["wait_until"](work(lifetime_of(scope)))

        return answer(handler)

    async def main() -> Stage:
        stage = Stage(app)
        await call(stage.emulator)
        await stage.rest()
        return stage

    stage = run_virtual(main)

    assert stage.log == [(30.0, "refused")]
    assert not futures[0].cancelled()


def test_a_worker_thread_is_told_to_call_on_the_event_loop() -> None:
    """The context reaches the thread, the event loop does not."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        del receive
        with pytest.raises(NoLiveInvocation, match="worker thread"):
            await anyio.to_thread.run_sync(lifetime_of(scope)["wait_until"], nothing())
        await respond(send)

    async def main() -> int | None:
        return (await call(Emulator(app, profile=WORKERS))).status

    assert anyio.run(main) == 200


def test_the_same_work_given_twice_is_registered_once() -> None:
    """It ends once, and holds the context once."""

    def app(stage: Stage) -> App:
        async def handler(scope: Any) -> None:
            work = asyncio.create_task(stage.work("bg", 1.0))
            lifetime_of(scope)["wait_until"](work)
            lifetime_of(scope)["wait_until"](work)

        return answer(handler)

    async def main() -> Stage:
        stage = Stage(app)
        await call(stage.emulator)
        await stage.rest()
        return stage

    stage = run_virtual(main)

    assert len(stage.events(EventKind.REGISTERED)) == len(stage.events(EventKind.TASK_DONE)) == 1
    assert stage.end() == (1.0, "done")


def test_any_awaitable_may_be_registered() -> None:
    """A future, a gathering of coroutines, an object with __await__."""

    class Waiting:
        def __await__(self) -> Any:
            return asyncio.sleep(2.0).__await__()

    def app(stage: Stage) -> App:
        async def handler(scope: Any) -> None:
            wait_until = lifetime_of(scope)["wait_until"]
            future = asyncio.get_running_loop().create_future()
            asyncio.get_running_loop().call_later(1.0, future.set_result, None)
            wait_until(future)
            wait_until(asyncio.gather(stage.work("a", 1.5), stage.work("b", 0.5)))
            wait_until(Waiting())

        return answer(handler)

    async def main() -> Stage:
        stage = Stage(app)
        await call(stage.emulator)
        await stage.rest()
        return stage

    stage = run_virtual(main)

    assert stage.story(EventKind.TASK_DONE) == [
        (1.0, "task_done", "Future"),
        (1.5, "task_done", "gather(Stage.work, Stage.work)"),
        (2.0, "task_done", "Waiting"),
    ]
    assert stage.end() == (2.0, "done")


def test_gathered_work_is_cut_under_its_own_names() -> None:
    """What asyncio.gather gathers counts as given to wait_until."""

    def app(stage: Stage) -> App:
        async def handler(scope: Any) -> None:
            one = asyncio.create_task(stage.work("one", 50.0), name="one")
            inner = asyncio.gather(one, shared[0])
            lifetime_of(scope)["wait_until"](asyncio.gather(inner, stage.work("two", 50.0)))

        return answer(handler)

    shared: list[Any] = []

    async def main() -> Stage:
        stage = Stage(app)
        shared.append(asyncio.get_running_loop().create_future())
        await call(stage.emulator)
        await stage.rest()
        return stage

    stage = run_virtual(main)

    (cut,) = stage.events(EventKind.CUT)
    assert cut.fields["names"] == ["one", "Stage.work"]
    assert sorted(stage.log) == [(30.0, "one cancelled"), (30.0, "two cancelled")]
    assert stage.events(EventKind.TASK_ABANDONED, EventKind.FLOATING_CANCELLED) == []
    assert stage.end() == (30.0, "ceiling")


def test_work_of_others_is_let_go_at_the_ceiling_and_goes_on() -> None:
    """A shared task or a plain future only holds the context: cutting it would harm others."""

    def app(stage: Stage) -> App:
        async def handler(scope: Any) -> None:
            lifetime_of(scope)["wait_until"](shared[0])
            lifetime_of(scope)["wait_until"](stage.work("own", 50.0))

        return answer(handler)

    shared: list[Any] = []

    async def main() -> tuple[Stage, bool]:
        stage = Stage(app)
        shared.append(asyncio.create_task(stage.work("shared", 40.0), name="shared"))
        await call(stage.emulator)
        await stage.rest()
        alive = not shared[0].done()
        await shared[0]
        return stage, alive

    stage, alive = run_virtual(main)

    assert alive
    assert stage.log == [(30.0, "own cancelled"), (40.0, "shared")]
    assert stage.story(EventKind.TASK_ABANDONED) == [(30.0, "task_abandoned", "shared")]
    (cut,) = stage.events(EventKind.CUT)
    assert "shared (not of this request: let go)" in cut.fields["text"]


def test_work_of_another_request_is_let_go_as_well() -> None:
    """The second request holds itself by the first one's task, and must not cut it."""

    def app(stage: Stage) -> App:
        async def handler(scope: Any) -> None:
            if scope["path"] == "/a":
                shared.append(asyncio.create_task(stage.work("a's", 35.0), name="a's"))
                await asyncio.sleep(10.0)
            lifetime_of(scope)["wait_until"](shared[0])

        return answer(handler)

    shared: list[Any] = []

    async def main() -> Stage:
        stage = Stage(app)
        first = AsgiClient(stage.emulator, path="/a").start()
        await asyncio.sleep(1.0)
        await call(stage.emulator, path="/b")
        await first
        await stage.rest()
        return stage

    stage = run_virtual(main)

    assert stage.log == [(35.0, "a's")]
    assert stage.story(EventKind.TASK_ABANDONED) == [(31.0, "task_abandoned", "a's")]
    assert stage.story(EventKind.CONTEXT_END) == [
        (31.0, "context_end", "ceiling"),
        (35.0, "context_end", "done"),
    ]


def test_only_work_of_others_leaves_nothing_to_cut() -> None:
    """The context ends at the ceiling all the same."""

    def app(stage: Stage) -> App:
        del stage

        async def handler(scope: Any) -> None:
            lifetime_of(scope)["wait_until"](asyncio.get_running_loop().create_future())

        return answer(handler)

    async def main() -> Stage:
        stage = Stage(app)
        await call(stage.emulator)
        await stage.rest()
        return stage

    stage = run_virtual(main)

    assert stage.end() == (30.0, "ceiling")
    assert len(stage.events(EventKind.TASK_ABANDONED)) == 1
