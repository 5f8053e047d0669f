"""At one instant things happen in the order they were put down."""

import asyncio
from contextvars import Context
from functools import partial

from platform_sim.lab.scenario.agenda import Agenda
from tests.support.virtual import run_virtual


def test_acts_of_one_instant_keep_their_order() -> None:
    """A heap of timers would not promise it."""

    async def main() -> list[tuple[float, int]]:
        log: list[tuple[float, int]] = []
        loop = asyncio.get_running_loop()
        agenda = Agenda()

        def write(number: int) -> None:
            log.append((loop.time(), number))

        for number in range(20):
            agenda.put(float(2 - number % 2), partial(write, number))
        agenda.begin(loop, loop.time(), Context())
        await asyncio.sleep(5.0)
        return log

    odd = [(1.0, number) for number in range(1, 20, 2)]
    even = [(2.0, number) for number in range(0, 20, 2)]

    assert run_virtual(main) == odd + even
