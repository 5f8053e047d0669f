"""The agenda of a world: everything that is known beforehand, in a fixed order at each instant.

Rules: what stands at one instant is done in the order it was put down, faults before requests
before redrive runs before photographs; the event loop alone would promise no order.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextvars import Context

from platform_sim.lab.scenario.file import Redrive

__all__ = ["Agenda", "ticks_s"]


class Agenda:
    """What will happen, by its instant."""

    def __init__(self) -> None:
        self._at: dict[float, list[Callable[[], object]]] = defaultdict(list)

    def put(self, at_s: float, act: Callable[[], object]) -> None:
        """Put an act down for an instant, after what stands there already."""
        self._at[at_s].append(act)

    def begin(self, loop: asyncio.AbstractEventLoop, started_s: float, context: Context) -> None:
        """Arm a timer for each instant; every act runs in a copy of `context`."""

        def run(acts: list[Callable[[], object]]) -> None:
            for act in acts:
                context.copy().run(act)

        for at_s in sorted(self._at):
            loop.call_at(started_s + at_s, run, self._at[at_s], context=context.copy())


def ticks_s(plan: Redrive, end_s: float) -> Iterator[float]:
    """Yield the instants of a redrive schedule; nothing starts after the end.

    Each is counted from the first, so that no sum of decimal seconds drifts away.
    """
    first_s = plan.every_s if plan.first_at_s is None else plan.first_at_s
    until_s = end_s if plan.until_s is None else min(plan.until_s, end_s)
    number = 0
    while plan.replicas and (at_s := round(first_s + number * plan.every_s, 6)) <= until_s:
        yield at_s
        number += 1
