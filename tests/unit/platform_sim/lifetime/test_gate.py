"""The gate and its steppers, without a request round them."""

import asyncio
import gc
import inspect
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from typing import Any

import pytest

from platform_sim.lifetime.births import CURRENT_GATE, mind_births
from platform_sim.lifetime.gate import Gate, GateState, Stepper
from tests.support.virtual import run_virtual


class Recorded:
    """A coroutine's own record of what reached it."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    async def run(self) -> str:
        """Wait twice; note every step, and every exception."""
        try:
            self.lines.append("one")
            await asyncio.sleep(1.0)
            self.lines.append("two")
            await asyncio.sleep(1.0)
            self.lines.append("three")
        except BaseException as error:
            self.lines.append(type(error).__name__)
            raise
        finally:
            self.lines.append("finally")
        return "result"


def admitted(gate: Gate, recorded: Recorded) -> Stepper:
    """Return a stepper of the gate."""
    return gate.admit(recorded.run(), None)


def test_an_open_gate_changes_nothing() -> None:
    """The task's result is the coroutine's; every step was counted."""
    gate = Gate()
    recorded = Recorded()

    async def main() -> Any:
        return await asyncio.create_task(admitted(gate, recorded))

    assert run_virtual(main) == "result"
    assert recorded.lines == ["one", "two", "three", "finally"]
    assert gate.resumptions == 3
    assert list(gate.live) == []


def test_a_stepper_is_a_coroutine_to_all_who_look() -> None:
    """What asyncio, anyio and debuggers read is the inner coroutine's."""
    gate = Gate()
    recorded = Recorded()
    stepper = admitted(gate, recorded)

    assert asyncio.iscoroutine(stepper)
    assert inspect.getcoroutinestate(stepper) == inspect.CORO_CREATED
    assert stepper.__qualname__ == "Recorded.run"
    stepper.close()
    assert inspect.getcoroutinestate(stepper) == inspect.CORO_CLOSED
    assert list(gate.live) == []


def test_a_stepper_may_be_awaited() -> None:
    """Task factories of others wrap a coroutine in one of theirs, which awaits it."""
    gate = Gate()
    recorded = Recorded()

    async def main() -> Any:
        async def wrapping(coroutine: Any) -> Any:
            return await coroutine

        return await asyncio.create_task(wrapping(admitted(gate, recorded)))

    assert run_virtual(main) == "result"
    stepper = admitted(gate, recorded)
    assert iter(stepper) is stepper
    stepper.close()


def test_exceptions_are_thrown_in_in_each_of_their_three_forms() -> None:
    """The old form of throw is still what some code calls."""
    gate = Gate()
    error = KeyError("thrown")
    try:
        raise error
    except KeyError as caught:
        traceback = caught.__traceback__
    for form in ((error,), (KeyError, error), (KeyError, error, traceback)):
        waiting = Waiting()
        stepper = gate.admit(waiting.run(), None)
        stepper.send(None)
        with pytest.raises(KeyError, match="thrown"):
            stepper.throw(*form)
        assert waiting.seen == "KeyError"


class Waiting:
    """A coroutine that waits for no event loop."""

    seen = ""

    async def run(self) -> None:
        """Wait once, note what is thrown in."""
        try:
            await self
        except BaseException as error:
            self.seen = type(error).__name__
            raise

    def __await__(self) -> Generator[None, None, None]:
        yield


def test_killed_means_neither_stepped_nor_thrown_into_nor_closed() -> None:
    """Cancelling its task, closing it and collecting it reach the coroutine no more."""
    gate = Gate()
    recorded = Recorded()

    async def main() -> None:
        task: asyncio.Task[Any] = asyncio.create_task(stepper := admitted(gate, recorded))
        await asyncio.sleep(0.5)
        assert gate.kill() == [stepper]
        stepper.close()
        await asyncio.sleep(1.0)
        assert task.cancelled()
        with pytest.raises(asyncio.CancelledError):
            stepper.throw(ValueError())

    run_virtual(main)
    gc.collect()

    assert recorded.lines == ["one"]
    assert gate.resumptions == 1


def test_what_is_admitted_to_a_killed_gate_never_starts() -> None:
    """And nobody warns that it was never awaited."""
    gate = Gate()
    gate.kill()
    recorded = Recorded()

    async def main() -> None:
        task: asyncio.Task[Any] = asyncio.create_task(admitted(gate, recorded))
        await asyncio.wait({task})
        assert task.cancelled()

    run_virtual(main)
    gc.collect()

    assert recorded.lines == []


def test_the_hook_may_kill_before_a_step() -> None:
    """It is told each step once, before it happens."""
    gate = Gate()
    recorded = Recorded()
    told: list[Stepper] = []

    def before_step(stepper: Stepper) -> None:
        told.append(stepper)
        if gate.resumptions == 2:
            gate.kill()

    gate.before_step = before_step

    async def main() -> Stepper:
        task: asyncio.Task[Any] = asyncio.create_task(stepper := admitted(gate, recorded))
        await asyncio.wait({task})
        return stepper

    stepper = run_virtual(main)

    assert told == [stepper, stepper]
    assert recorded.lines == ["one"]


def test_the_gate_tells_when_its_last_coroutine_has_ended() -> None:
    """Once per emptying, not per coroutine."""
    told: list[int] = []
    gate = Gate(on_empty=lambda: told.append(len(recorded.lines)))
    recorded = Recorded()
    other = Recorded()

    async def main() -> None:
        await asyncio.gather(admitted(gate, other), admitted(gate, recorded))

    run_virtual(main)

    assert told == [4]


def test_a_thaw_takes_the_steps_that_were_held() -> None:
    """In the order in which they came, at the thaw's time; freezing twice is freezing once."""
    gate = Gate()
    recorded = Recorded()

    async def main() -> tuple[str, float]:
        task: asyncio.Task[Any] = asyncio.create_task(admitted(gate, recorded))
        await asyncio.sleep(0.5)
        gate.freeze()
        gate.freeze()
        await asyncio.sleep(4.5)
        assert recorded.lines == ["one"]
        gate.thaw()
        gate.thaw()
        return await task, asyncio.get_running_loop().time()

    assert run_virtual(main) == ("result", 6.0)


def test_a_cancellation_that_meets_a_held_step_takes_its_place() -> None:
    """Also when it comes after the thaw and before the step."""
    gate = Gate()
    recorded = Recorded()

    async def main(*, after_thaw: bool) -> None:
        task: asyncio.Task[Any] = asyncio.create_task(admitted(gate, recorded))
        await asyncio.sleep(0.5)
        gate.freeze()
        await asyncio.sleep(1.0)
        if after_thaw:
            gate.thaw()
            task.cancel()
        else:
            task.cancel()
            await asyncio.sleep(1.0)
            gate.thaw()
        await asyncio.wait({task})
        assert task.cancelled()

    for after_thaw in (True, False):
        recorded.lines.clear()
        run_virtual(lambda after=after_thaw: main(after_thaw=after))  # type: ignore[misc]
        assert recorded.lines == ["one", "CancelledError", "finally"]


def test_a_second_cancellation_takes_the_place_of_a_held_one() -> None:
    """Cancelled in the freeze and again after the thaw: the coroutine hears of it once."""
    gate = Gate()
    heard: list[str] = []

    async def stubborn() -> None:
        for _ in range(2):
            try:
                await asyncio.sleep(1.0)
                heard.append("slept")
            except asyncio.CancelledError:
                heard.append("cancelled")

    async def main() -> None:
        task: asyncio.Task[Any] = asyncio.create_task(gate.admit(stubborn(), None))
        await asyncio.sleep(0.5)
        gate.freeze()
        task.cancel()
        await asyncio.sleep(0.1)
        gate.thaw()
        task.cancel()
        await task

    run_virtual(main)

    assert heard == ["cancelled", "slept"]


def test_a_frozen_gate_can_be_killed() -> None:
    """The held steps are never taken; shutting the loop down ends the tasks."""
    gate = Gate()
    recorded = Recorded()

    async def main() -> None:
        task: asyncio.Task[Any] = asyncio.create_task(admitted(gate, recorded))
        await asyncio.sleep(0.5)
        gate.freeze()
        await asyncio.sleep(1.0)
        gate.kill()
        gate.thaw()
        gate.freeze()
        await asyncio.sleep(1.0)
        assert not task.done()

    run_virtual(main)

    assert recorded.lines == ["one"]
    assert gate.state is GateState.KILLED


def test_async_generators_are_noted_where_they_are_first_iterated() -> None:
    """The gate's own, and only while they live."""
    gate = Gate()

    async def generate() -> AsyncIterator[int]:
        yield 1
        yield 2

    async def main() -> None:
        loop = asyncio.get_running_loop()
        mind_births(loop)
        mind_births(loop)
        generator: Any = generate()
        other: Any = generate()
        await anext(other)
        token = CURRENT_GATE.set(gate)
        await anext(generator)
        CURRENT_GATE.reset(token)
        assert list(gate.generators) == [generator]
        left_open.extend([generator, other])

    left_open: list[Any] = []
    run_virtual(main)

    # the loop still knows them, and closed them when it shut down
    assert [generator.ag_frame for generator in left_open] == [None, None]


def test_births_are_minded_outside_a_running_loop_too() -> None:
    """There no loop has a generator hook to pass generators on to."""
    gate = Gate()

    async def generate() -> AsyncIterator[int]:
        yield 1

    loop = asyncio.new_event_loop()
    before = sys.get_asyncgen_hooks()
    try:
        mind_births(loop)
        token = CURRENT_GATE.set(gate)
        generator: Any = generate()
        stepping = anext(generator).__await__()
        with pytest.raises(StopIteration):
            next(stepping)
        CURRENT_GATE.reset(token)
        assert list(gate.generators) == [generator]
        loop.run_until_complete(generator.aclose())
    finally:
        sys.set_asyncgen_hooks(*before)
        loop.close()


def test_the_loops_own_task_factory_still_makes_the_task() -> None:
    """Instrumentation that was there first keeps working, for requests and for others."""
    gate = Gate()
    made: list[str] = []

    def factory(loop: Any, coroutine: Any, **more: Any) -> Any:
        made.append(type(coroutine).__name__)
        return asyncio.Task(coroutine, loop=loop, **more)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_task_factory(factory)
        mind_births(loop)
        await asyncio.create_task(asyncio.sleep(0))
        token = CURRENT_GATE.set(gate)
        task: asyncio.Task[Any] = asyncio.create_task(asyncio.sleep(0))
        admitted_already: asyncio.Task[Any] = asyncio.create_task(
            gate.admit(asyncio.sleep(0), None)
        )
        CURRENT_GATE.reset(token)
        await asyncio.gather(task, admitted_already)

    run_virtual(main)

    assert made[:3] == ["coroutine", "Stepper", "Stepper"]


# The first step, taken before the task comes for it.


def begun(
    body: Callable[[], Coroutine[Any, Any, Any]],
) -> tuple[Gate, Stepper, "asyncio.Task[Any]", bool]:
    """Make a coroutine's first step; its task has not run yet."""
    gate = Gate()
    stepper = gate.admit(body(), None)
    task = stepper.task = asyncio.get_running_loop().create_task(stepper)
    return gate, stepper, task, stepper.begin()


def test_the_first_step_runs_in_the_task_it_belongs_to() -> None:
    """What it waits for then wakes that task; the caller's is the current one again."""
    seen: list[Any] = []

    async def body() -> str:
        seen.append(asyncio.current_task())
        await asyncio.sleep(1.0)
        seen.append(asyncio.current_task())
        return "done"

    async def main() -> None:
        outside = asyncio.current_task()
        _, _, task, ended = begun(body)
        assert (ended, asyncio.current_task()) == (False, outside)
        assert await task == "done"
        assert seen == [task, task]

    run_virtual(main)


def test_a_first_step_that_is_the_last_ends_the_task_with_its_outcome() -> None:
    """A result, or what it raised."""

    async def returning() -> str:
        return "done"

    async def raising() -> str:
        raise KeyError("first")

    async def main() -> None:
        _, _, task, ended = begun(returning)
        assert ended
        assert await task == "done"
        _, _, task, ended = begun(raising)
        assert not ended
        with pytest.raises(KeyError, match="first"):
            await task

    run_virtual(main)


@pytest.mark.parametrize("waits_for", ["a future", "the next turn", "what has come"])
def test_a_cancellation_before_the_task_runs_reaches_what_is_waited_for(waits_for: str) -> None:
    """As it would reach a task that waits."""
    reached: list[str] = []
    came: list[asyncio.Future[None]] = []

    async def body() -> None:
        try:
            if waits_for == "what has come":
                come = asyncio.get_running_loop().create_future()
                came.append(come)
                await come
            await asyncio.sleep(1.0 if waits_for == "a future" else 0)
            await asyncio.sleep(1.0)
        except asyncio.CancelledError:
            reached.append("cancelled")
            raise

    async def main() -> float:
        _, _, task, _ = begun(body)
        for come in came:
            come.set_result(None)
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()
        return asyncio.get_running_loop().time()

    assert run_virtual(main) == 0.0
    assert reached == ["cancelled"]


def test_a_kill_after_the_first_step_lets_nothing_more_run() -> None:
    """The task ends; the coroutine hears nothing."""
    reached: list[str] = []

    async def body() -> None:
        try:
            await asyncio.sleep(1.0)
        finally:
            reached.append("finally")

    async def main() -> None:
        gate, _, task, _ = begun(body)
        gate.kill()
        await asyncio.wait({task})
        assert task.cancelled()

    run_virtual(main)

    assert reached == []
