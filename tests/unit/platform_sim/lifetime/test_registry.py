"""Names of work, as people will read them."""

import asyncio
from typing import Any

from platform_sim.lifetime.registry import name_of
from tests.support.virtual import run_virtual


async def deliver() -> None:
    """Be delivered."""


def test_work_is_called_what_its_author_called_it() -> None:
    """A task's own name, else its coroutine's function, else its type."""

    async def main() -> list[str]:
        async def inner() -> None:
            pass

        works: list[Any] = [
            asyncio.create_task(deliver(), name="delivery of 42"),
            asyncio.create_task(deliver()),
            asyncio.create_task(deliver(), name="None"),
            asyncio.create_task(inner()),
            asyncio.get_running_loop().create_future(),
            asyncio.gather(asyncio.create_task(deliver()), asyncio.create_task(inner())),
        ]
        names = [name_of(work) for work in works]
        await asyncio.gather(*works[:4], works[5])
        return names

    assert run_virtual(main) == [
        "delivery of 42",
        "deliver",
        "deliver",
        "inner",
        "Future",
        "gather(deliver, inner)",
    ]
