"""Freezing: nothing of a request happens until the thaw, and then what was due happens at once."""

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import Context

import anyio

from platform_sim.lifetime.births import CURRENT_GATE, mind_births
from platform_sim.lifetime.frozen import freeze, thaw
from platform_sim.lifetime.gate import Gate
from tests.support.virtual import run_virtual

Log = list[tuple[float, str]]


def born(gate: Gate, work: Callable[[], Awaitable[None]]) -> "asyncio.Task[None]":
    """Run work as code of the gate's request."""
    loop = asyncio.get_running_loop()
    mind_births(loop)
    context = Context()
    context.run(CURRENT_GATE.set, gate)

    async def run() -> None:
        await work()

    return loop.create_task(run(), context=context)


def now() -> float:
    """Return the virtual time."""
    return round(asyncio.get_running_loop().time(), 3)


def test_what_was_due_while_frozen_happens_at_the_thaw() -> None:
    """As in a machine that was suspended."""

    async def main() -> Log:
        log: Log = []
        gate = Gate()

        async def work() -> None:
            await asyncio.sleep(1.0)
            log.append((now(), "slept"))
            await asyncio.sleep(1.0)
            log.append((now(), "again"))

        task = born(gate, work)
        await asyncio.sleep(0.5)
        freeze(asyncio.get_running_loop(), gate)
        freeze(asyncio.get_running_loop(), gate)  # a second one changes nothing
        await asyncio.sleep(9.5)
        thaw(asyncio.get_running_loop(), gate)
        thaw(asyncio.get_running_loop(), gate)
        await task
        return log

    assert run_virtual(main) == [(10.0, "slept"), (11.0, "again")]


def test_calls_that_were_queued_wait_too() -> None:
    """Also those of the turn that is being run; one that was cancelled meanwhile stays away."""

    async def main() -> Log:
        log: Log = []
        gate = Gate()
        loop = asyncio.get_running_loop()
        handles: list[asyncio.Handle] = []

        def write(what: str) -> None:
            log.append((now(), what))

        async def work() -> None:
            loop.call_soon(write, "kept")
            handles.append(loop.call_soon(write, "cancelled"))
            handles.append(loop.call_later(1.0, write, "cancelled timer"))
            freeze(loop, gate)

        task = born(gate, work)
        await asyncio.sleep(5.0)
        seen = list(log)
        for handle in handles:
            handle.cancel()
        thaw(loop, gate)
        await task
        await asyncio.sleep(5.0)
        return [*seen, (-1.0, "thaw"), *log]

    assert run_virtual(main) == [(-1.0, "thaw"), (5.0, "kept")]


def test_a_timer_set_in_the_step_that_froze_does_not_fire_before_the_thaw() -> None:
    """A cancel scope opened after the freeze would cancel a task that cannot end, for ever."""

    async def main() -> Log:
        log: Log = []
        gate = Gate()

        async def work() -> None:
            freeze(asyncio.get_running_loop(), gate)
            with anyio.move_on_after(1.0) as scope:
                await anyio.sleep(3.0)
            log.append((now(), f"cancelled: {scope.cancelled_caught}"))

        task = born(gate, work)
        await asyncio.sleep(20.0)
        thaw(asyncio.get_running_loop(), gate)
        await task
        return log

    assert run_virtual(main) == [(20.0, "cancelled: True")]


def test_a_gate_that_thaws_in_the_same_turn_goes_on() -> None:
    """Nothing is held that nobody would put back."""

    async def main() -> Log:
        log: Log = []
        gate = Gate()

        async def work() -> None:
            await asyncio.sleep(1.0)
            log.append((now(), "slept"))

        task = born(gate, work)
        await asyncio.sleep(0.5)
        freeze(asyncio.get_running_loop(), gate)
        thaw(asyncio.get_running_loop(), gate)
        await task
        return log

    assert run_virtual(main) == [(1.0, "slept")]


def test_a_killed_gate_is_not_frozen() -> None:
    """Nothing of it runs anyway."""

    async def main() -> str:
        gate = Gate()
        gate.kill()
        freeze(asyncio.get_running_loop(), gate)
        thaw(asyncio.get_running_loop(), gate)
        return gate.state.value

    assert run_virtual(main) == "killed"
