"""The lifespan of a web replica's app: started, shut down in order, or killed without a line."""

import asyncio
import gc
import warnings
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from platform_sim.lab.scenario.lifespan import Lifespan
from tests.support.virtual import run_virtual

App = Callable[[Any, Any, Any], Awaitable[None]]


def telling(lines: list[str], *, startup_s: float = 0.0) -> App:
    """Return an app that tells each line of its lifespan that runs, also those of its tasks."""

    async def work() -> None:
        try:
            while True:
                await asyncio.sleep(1.0)
                lines.append("worked")
        finally:
            lines.append("work is over")

    async def app(_scope: Any, receive: Any, send: Any) -> None:
        task = asyncio.create_task(work())
        try:
            await receive()
            await asyncio.sleep(startup_s)
            await send({"type": "lifespan.startup.complete"})
            await receive()
            task.cancel()
            await asyncio.wait([task])
            await send({"type": "lifespan.shutdown.complete"})
        finally:
            lines.append("over")

    return app


def test_an_orderly_close_runs_the_shutdown_to_its_end() -> None:
    """And its tasks hear of it."""
    lines: list[str] = []

    async def main() -> None:
        lifespan = Lifespan(telling(lines))
        await lifespan.start()
        await asyncio.sleep(1.5)
        await lifespan.close()

    run_virtual(main)

    assert lines == ["worked", "work is over", "over"]


def test_a_kill_lets_no_line_run_not_even_when_it_is_collected() -> None:
    """No `finally`, nor a task's, nor a warning about what was left."""
    lines: list[str] = []

    async def main() -> None:
        lifespan = Lifespan(telling(lines))
        await lifespan.start()
        lifespan.kill()
        del lifespan
        gc.collect()
        await asyncio.sleep(5.0)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run_virtual(main)
        gc.collect()

    assert lines == []


def test_a_killed_lifespan_is_closed_already() -> None:
    """Nobody is there to be told, and who waits for the shutdown is told that it will not come."""
    lines: list[str] = []

    async def main() -> None:
        killed, closing = Lifespan(telling(lines)), Lifespan(telling(lines))
        for lifespan in (killed, closing):
            await lifespan.start()
        killed.kill()
        await killed.close()
        closing.freeze()
        closer = asyncio.create_task(closing.close())
        await asyncio.sleep(1.0)
        closing.kill()
        await closer

    run_virtual(main)

    assert lines == []


def test_a_kill_inside_the_start_up_ends_the_start() -> None:
    """It neither came up nor refused."""
    lines: list[str] = []

    async def main() -> tuple[bool, str | None]:
        lifespan = Lifespan(telling(lines, startup_s=9.0))
        asyncio.get_running_loop().call_later(0.5, lifespan.kill)
        return await lifespan.start(), lifespan.refusal

    assert run_virtual(main) == (False, None)
    assert lines == []


def test_what_is_frozen_goes_on_at_the_thaw() -> None:
    """Its tasks as well."""
    lines: list[str] = []

    async def main() -> None:
        lifespan = Lifespan(telling(lines))
        await lifespan.start()
        lifespan.freeze()
        await asyncio.sleep(5.5)
        lines.append("thaw")
        lifespan.thaw()
        await asyncio.sleep(0.2)
        await lifespan.close()

    run_virtual(main)

    assert lines == ["thaw", "worked", "work is over", "over"]


@pytest.mark.parametrize(
    ("message", "refusal"),
    [
        ({"type": "lifespan.startup.failed", "message": "no table"}, "no table"),
        ({"type": "lifespan.startup.failed"}, ""),
        (None, "ValueError('broken')"),
    ],
)
def test_an_app_that_does_not_start_says_why(message: Any, refusal: str) -> None:
    """By its message, or by what it raises before it has sent one."""

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        if message is None:
            raise ValueError("broken")
        await send(message)

    async def main() -> tuple[bool, str | None]:
        lifespan = Lifespan(app)
        started = await lifespan.start()
        await lifespan.close()
        return started, lifespan.refusal

    assert run_virtual(main) == (False, refusal)


def test_a_lifespan_that_was_not_started_has_nothing_to_end() -> None:
    """A replica may be killed or stopped before."""

    async def main() -> None:
        lifespan = Lifespan(telling([]))
        await lifespan.close()
        lifespan.kill()

    run_virtual(main)
