"""At one instant things happen in the order they were put down."""

import asyncio
from contextvars import Context
from functools import partial

import pytest

from platform_sim.lab.scenario.agenda import Agenda, ticks_s
from platform_sim.lab.scenario.file import Redrive
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


@pytest.mark.parametrize(
    ("plan", "ticks"),
    [
        (Redrive(every_s=40.0), [40.0, 80.0]),
        (Redrive(every_s=40.0, first_at_s=0.0), [0.0, 40.0, 80.0]),
        (Redrive(every_s=40.0, until_s=79.0), [40.0]),
        (Redrive(every_s=40.0, until_s=900.0), [40.0, 80.0]),
        (Redrive(every_s=40.0, replicas=0), []),
        (Redrive(every_s=0.1, until_s=0.3), [0.1, 0.2, 0.3]),
    ],
)
def test_a_redrive_schedule_ticks_from_its_first_run_to_its_last(
    plan: Redrive, ticks: list[float]
) -> None:
    """Without drift, and never after the end."""
    assert list(ticks_s(plan, 100.0)) == ticks
