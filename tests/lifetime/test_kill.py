"""The kill: no further line of the request runs, whatever it uses, and nothing of others breaks."""

import asyncio
import contextlib
import contextvars
import functools
import gc
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from platform_sim.lifetime.cut import EndReason
from platform_sim.lifetime.emulator import App
from platform_sim.lifetime.gate import Stepper
from platform_sim.lifetime.invocation import Invocation
from platform_sim.lifetime.profile import CutMode
from platform_sim.view.event import EventKind
from tests.support.asgi import AsgiClient, answer, call, lifetime_of, respond
from tests.support.stage import Stage
from tests.support.virtual import run_virtual


async def sheltered(stage: Stage) -> None:
    """Hold everything that usually makes sure that a last line runs."""

    @contextlib.asynccontextmanager
    async def managed() -> AsyncIterator[None]:
        try:
            yield
        finally:
            stage.write("context manager")

    async def last_words(words: str) -> None:
        await asyncio.sleep(0.01)
        stage.write(words)

    async def child() -> None:
        try:
            await asyncio.sleep(50.0)
        finally:
            await asyncio.shield(last_words("child, asyncio shield"))

    try:
        async with managed(), anyio.create_task_group() as group, asyncio.TaskGroup() as tasks:
            group.start_soon(child)
            tasks.create_task(child())
            with anyio.CancelScope(shield=True):
                async with asyncio.timeout(45.0):
                    await asyncio.sleep(50.0)
    except BaseException:
        stage.write("except")
        raise
    finally:
        with anyio.CancelScope(shield=True):
            await last_words("anyio shield")


def sheltering(stage: Stage) -> App:
    """Register sheltered work."""

    async def handler(scope: Any) -> None:
        lifetime_of(scope)["wait_until"](sheltered(stage))

    return answer(handler)


async def run_stage(stage: Stage, *, more_s: float = 100.0) -> Stage:
    """Make one request, wait for its end, and then for all that could still happen."""
    await call(stage.emulator)
    await stage.rest()
    await asyncio.sleep(more_s)
    gc.collect()
    return stage


def test_a_cancelled_request_runs_its_last_lines() -> None:
    """The control: the same work under the other cut mode says all it has to say."""

    async def main() -> Stage:
        return await run_stage(Stage(sheltering, cut=CutMode.CANCEL))

    stage = run_virtual(main)

    assert sorted({what for _, what in stage.log}) == [
        "anyio shield",
        "child, asyncio shield",
        "context manager",
        "except",
    ]


def test_a_killed_request_runs_no_further_line() -> None:
    """No finally, no except, no shield: not by timers, nor collection, nor the loop's end."""

    async def main() -> Stage:
        return await run_stage(Stage(sheltering, cut=CutMode.KILL))

    stage = run_virtual(main)
    gc.collect()

    assert stage.log == []
    assert stage.end() == (30.0, "ceiling")


def test_what_outlives_the_cancel_grace_is_killed() -> None:
    """A shielded cleanup longer than the grace never says its last line."""

    def app(stage: Stage) -> App:
        async def work() -> None:
            try:
                await asyncio.sleep(50.0)
            finally:
                stage.write("cleaning up")
                await asyncio.shield(asyncio.sleep(0.11))
                stage.write("clean")

        async def handler(scope: Any) -> None:
            lifetime_of(scope)["wait_until"](work())

        return answer(handler)

    async def main() -> Stage:
        return await run_stage(Stage(app))

    stage = run_virtual(main)

    assert stage.log == [(30.0, "cleaning up")]
    assert stage.story(EventKind.TASK_KILLED) == [(30.1, "task_killed", "work")]
    assert stage.end() == (30.1, "ceiling")


def test_async_generators_of_a_killed_request_are_never_closed() -> None:
    """The loop closes all others when it shuts down, which would run their finally."""

    def app(stage: Stage) -> App:
        async def chunks() -> AsyncIterator[bytes]:
            try:
                yield b"a"
                await asyncio.sleep(50.0)
                yield b"b"
            finally:
                stage.write("generator closed")

        async def run(scope: Any, receive: Any, send: Any) -> None:
            del receive
            generator = chunks()
            lifetime_of(scope)["wait_until"](asyncio.sleep(50.0))
            first = await anext(generator)
            await respond(send, chunks=[first])
            async for _ in generator:
                pass

        return run

    async def main(cut: CutMode) -> Stage:
        return await run_stage(Stage(app, cut=cut))

    killed = run_virtual(functools.partial(main, CutMode.KILL))
    gc.collect()
    cancelled = run_virtual(functools.partial(main, CutMode.CANCEL))

    assert killed.log == []
    assert cancelled.log == [(30.0, "generator closed")]


def test_an_async_generator_that_others_hold_is_never_closed_either() -> None:
    """Dropped after the kill, it is not finalised."""
    held: list[Any] = []

    def app(stage: Stage) -> App:
        async def chunks() -> AsyncIterator[int]:
            try:
                yield 1
            finally:
                stage.write("generator closed")

        async def handler(scope: Any) -> None:
            held.append(chunks())
            await anext(held[0])
            lifetime_of(scope)["wait_until"](stage.work("bg", 50.0))

        return answer(handler)

    async def main() -> Stage:
        stage = Stage(app, cut=CutMode.KILL)
        await call(stage.emulator)
        await stage.rest()
        held.clear()
        gc.collect()
        await asyncio.sleep(1.0)
        return stage

    stage = run_virtual(main)

    assert stage.log == []
    assert stage.end() == (30.0, "ceiling")


SCRIPT = """
import asyncio, sys
from dataclasses import replace
from platform_sim.lifetime.emulator import Emulator
from platform_sim.lifetime.profile import WORKERS, CutMode
from tests.support.asgi import answer, call, lifetime_of

async def chunks():
    try:
        yield 1
        await asyncio.sleep(60)
    finally:
        print("generator closed")

async def work():
    try:
        async for _ in chunks():
            await asyncio.sleep(60)
    finally:
        print("finally")

async def handler(scope):
    lifetime_of(scope)["wait_until"](work())

async def main():
    emulator = Emulator(
        answer(handler), profile=replace(WORKERS, allowance_s=0.05, cut=CutMode(sys.argv[1]))
    )
    await call(emulator)
    await emulator.drain(within_s=10)
    print("main is over")

asyncio.run(main())
print("loop is closed")
"""


@pytest.mark.live
@pytest.mark.parametrize("cut", [CutMode.CANCEL, CutMode.KILL])
def test_the_interpreter_exits_without_running_a_line_of_a_killed_request(cut: CutMode) -> None:
    """asyncio.run ends too: it waits for every task to end."""
    run = subprocess.run(
        [sys.executable, "-X", "dev", "-c", SCRIPT, cut],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )

    last_lines = ["finally", "generator closed"] if cut is CutMode.CANCEL else []
    assert run.stdout.split("\n")[:-1] == [*last_lines, "main is over", "loop is closed"]
    assert run.stderr == ""


def test_callbacks_and_timers_of_a_killed_request_are_lines_of_it() -> None:
    """call_later, call_soon and done callbacks are dropped with its coroutines."""

    def app(stage: Stage) -> App:
        async def work() -> None:
            loop = asyncio.get_running_loop()
            child = asyncio.create_task(asyncio.sleep(29.0))
            child.add_done_callback(lambda _: loop.call_soon(stage.write, "soon"))
            loop.call_later(10.0, stage.write, "timer at 10")
            loop.call_later(50.0, stage.write, "timer at 50")
            await asyncio.sleep(20.0)
            other = asyncio.create_task(asyncio.sleep(50.0))
            other.add_done_callback(functools.partial(lambda what, _: stage.write(what), "done"))
            other.add_done_callback(kept.discard)
            kept.add(other)
            await asyncio.sleep(50.0)

        kept: set[Any] = set()

        async def handler(scope: Any) -> None:
            lifetime_of(scope)["wait_until"](work())

        return answer(handler)

    async def main() -> Stage:
        return await run_stage(Stage(app, cut=CutMode.KILL))

    stage = run_virtual(main)

    assert stage.log == [(10.0, "timer at 10"), (29.0, "soon")]


def test_a_context_ends_once() -> None:
    """Whoever ends it a second time is not heard: a kill after the cut adds nothing."""
    invocations: list[Invocation] = []

    async def main() -> Stage:
        stage = Stage(sheltering, on_start=invocations.append)
        await call(stage.emulator)
        await asyncio.sleep(1.0)
        invocations[0].end(EndReason.SHUTDOWN)
        invocations[0].end(EndReason.KILLED, mode=CutMode.KILL)
        await stage.rest()
        invocations[0].end(EndReason.KILLED, mode=CutMode.KILL)
        return stage

    stage = run_virtual(main)

    assert stage.end() == (1.02, "shutdown")
    assert stage.events(EventKind.TASK_KILLED) == []


def test_nothing_is_told_of_a_request_after_its_end() -> None:
    """Neither its client's leaving nor the ending of its killed tasks."""
    invocations: list[Invocation] = []

    def app(stage: Stage) -> App:
        async def handler(scope: Any) -> None:
            lifetime_of(scope)["wait_until"](stage.work("bg", 50.0))
            await asyncio.sleep(50.0)

        return answer(handler)

    async def main() -> Stage:
        stage = Stage(app, on_start=invocations.append)
        client = AsgiClient(stage.emulator)
        serving = client.start()
        await asyncio.sleep(1.0)
        invocations[0].end(EndReason.KILLED, mode=CutMode.KILL)
        invocations[0].client_left()
        await serving
        return stage

    stage = run_virtual(main)

    assert [event.kind for event in stage.recorder.events][-3:] == [
        EventKind.TASK_KILLED,
        EventKind.APP_KILLED,
        EventKind.CONTEXT_END,
    ]


def test_a_call_that_is_due_at_the_kill_is_dropped() -> None:
    """Queued by the request in the very turn in which it is killed."""

    def app(stage: Stage) -> App:
        async def handler(scope: Any) -> None:
            del scope
            asyncio.get_running_loop().call_soon(stage.write, "queued")
            invocations[0].end(EndReason.KILLED, mode=CutMode.KILL)
            stage.write("the step that killed ends")
            await asyncio.sleep(0)
            stage.write("after the kill")

        return answer(handler)

    invocations: list[Invocation] = []

    async def main() -> Stage:
        return await run_stage(
            Stage(app, on_start=invocations.append),
        )

    stage = run_virtual(main)

    assert stage.log == [(0.0, "the step that killed ends")]
    assert stage.end() == (0.0, "killed")


def test_a_kill_cancels_nothing_that_others_wait_for() -> None:
    """Two requests await one future; the first is killed inside asyncio.timeout."""
    shared: list[asyncio.Future[str]] = []

    def app(stage: Stage) -> App:
        async def work(path: str) -> None:
            async with asyncio.timeout(35.0 if path == "/a" else 60.0):
                stage.write(f"{path} {await shared[0]}")

        async def handler(scope: Any) -> None:
            lifetime_of(scope)["wait_until"](work(scope["path"]))

        return answer(handler)

    async def main() -> Stage:
        stage = Stage(app, cut=CutMode.KILL)
        shared.append(asyncio.get_running_loop().create_future())
        await call(stage.emulator, path="/a")
        await asyncio.sleep(20.0)
        await call(stage.emulator, path="/b")
        await asyncio.sleep(25.0)
        shared[0].set_result("came")
        await stage.rest()
        return stage

    stage = run_virtual(main)

    assert stage.log == [(45.0, "/b came")]


@pytest.mark.parametrize("library", ["asyncio", "anyio"])
def test_a_task_group_of_others_closes_although_its_task_was_killed(library: str) -> None:
    """The killed task ends when the group's owner cancels it, and the owner goes on."""
    groups: list[Any] = []

    def app(stage: Stage) -> App:
        async def handler(scope: Any) -> None:
            del scope
            if library == "anyio":
                groups[0].start_soon(stage.work, "in the group", 50.0)
            else:
                groups.append(groups[0].create_task(stage.work("in the group", 50.0)))
            await asyncio.sleep(0)

        return answer(handler)

    async def main() -> tuple[Stage, float]:
        stage = Stage(app, cut=CutMode.KILL)
        if library == "anyio":
            async with anyio.create_task_group() as group:
                groups.append(group)
                await call(stage.emulator)
                await anyio.sleep(7.0)
                group.cancel_scope.cancel()
        else:
            async with asyncio.TaskGroup() as tasks:
                groups.append(tasks)
                await call(stage.emulator)
                await asyncio.sleep(7.0)
                groups[1].cancel()
        return stage, asyncio.get_running_loop().time()

    stage, closed_at = run_virtual(main)

    assert stage.log == []
    assert closed_at == 7.0


def test_a_task_born_in_a_killed_request_never_starts() -> None:
    """As when a connection that the request opened calls back and starts a task."""
    contexts: list[contextvars.Context] = []

    def app(stage: Stage) -> App:
        async def handler(scope: Any) -> None:
            contexts.append(contextvars.copy_context())
            lifetime_of(scope)["wait_until"](stage.work("bg", 50.0))

        return answer(handler)

    async def main() -> Stage:
        stage = await run_stage(Stage(app, cut=CutMode.KILL))
        task = asyncio.get_running_loop().create_task(stage.work("late", 0.0), context=contexts[0])
        await asyncio.wait({task})
        assert task.cancelled()
        return stage

    stage = run_virtual(main)

    assert stage.log == []


def test_a_task_born_in_a_request_that_ended_unharmed_is_nobodys() -> None:
    """A connection pool that a request opened may go on working for others."""
    contexts: list[contextvars.Context] = []

    def app(stage: Stage) -> App:
        del stage

        async def handler(scope: Any) -> None:
            del scope
            contexts.append(contextvars.copy_context())

        return answer(handler)

    async def main() -> Stage:
        stage = Stage(app)
        await call(stage.emulator)
        await stage.rest()
        await asyncio.get_running_loop().create_task(stage.work("late", 1.0), context=contexts[0])
        return stage

    stage = run_virtual(main)

    assert stage.log == [(1.0, "late")]


def busy(stage: Stage) -> App:
    """Do a bit of everything, writing a line after each wait."""

    async def child(name: str) -> None:
        try:
            await stage.work(name, 0.3, 0.2)
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(0.05)
                stage.write(f"{name} clean")

    async def work() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(child, "a")
            group.start_soon(child, "b")
            with anyio.move_on_after(0.4):
                await stage.work("moved on", 9.0)
        lock = asyncio.Lock()
        async with lock, asyncio.timeout(1.0):
            await stage.work("locked", 0.1)

    async def run(scope: Any, receive: Any, send: Any) -> None:
        stage.write((await receive())["type"])
        lifetime_of(scope)["wait_until"](work())
        await stage.work("handler", 0.1)
        await respond(send)
        stage.write("answered")

    return run


def test_a_kill_at_any_resumption_leaves_exactly_the_lines_before_it() -> None:
    """Every run cut at its n-th resumption has written a beginning of what an uncut run writes."""

    async def main(kill_at: int | None) -> tuple[Stage, int]:
        invocations: list[Invocation] = []

        def hook(invocation: Invocation) -> None:
            def before_step(stepper: Stepper) -> None:
                del stepper
                if invocation.gate.resumptions == kill_at:
                    invocation.end(EndReason.KILLED, mode=CutMode.KILL)

            invocations.append(invocation)
            invocation.gate.before_step = before_step

        stage = Stage(busy, on_start=hook)
        client = AsgiClient(stage.emulator)
        await asyncio.wait({client.start()})
        await stage.rest()
        await asyncio.sleep(10.0)
        return stage, invocations[0].gate.resumptions

    whole, count = run_virtual(functools.partial(main, None))
    logs = []
    for kill_at in range(1, count + 1):
        stage, reached = run_virtual(functools.partial(main, kill_at))
        assert reached == kill_at
        assert stage.end()[1] == "killed"
        logs.append(stage.log)

    assert whole.end()[1] == "done"
    assert count > 10
    assert logs[0] == []
    assert all(log == whole.log[: len(log)] for log in logs)
    assert [len(log) for log in logs] == sorted(len(log) for log in logs)


def test_frozen_steps_are_held_until_the_thaw() -> None:
    """Time goes on outside; a cancellation that comes meanwhile is held as well."""
    invocations: list[Invocation] = []

    def app(stage: Stage) -> App:
        async def handler(scope: Any) -> None:
            lifetime_of(scope)["wait_until"](stage.work("a", 1.0, 1.0))
            task = asyncio.create_task(stage.work("b", 2.5), name="b")
            lifetime_of(scope)["wait_until"](task)
            asyncio.get_running_loop().call_later(2.0, task.cancel)

        return answer(handler)

    async def main() -> Stage:
        stage = Stage(app, on_start=invocations.append)
        await call(stage.emulator)
        await asyncio.sleep(0.5)
        invocations[0].gate.freeze()
        await asyncio.sleep(4.5)
        stage.write("thaw")
        invocations[0].gate.thaw()
        await stage.rest()
        return stage

    stage = run_virtual(main)

    assert stage.log == [(5.0, "thaw"), (5.0, "a"), (5.0, "b cancelled"), (6.0, "a")]
    assert stage.end() == (6.0, "done")
