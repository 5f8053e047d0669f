"""The world outside an app under a sweep.

Rules: it takes virtual time, keeps what reached it, and no cut of the app stops it. A call
that has left arrives, whatever becomes of its caller; the reply takes as long as the way out. An
app or its stand-ins reach the outside of the running trial with `outside_world()`.

Not here: receivers that fail on purpose (`platform_sim.world.receiver`).
"""

import asyncio
from contextvars import Context, ContextVar
from dataclasses import dataclass
from typing import Any

from platform_sim.lab.sweep.errors import SweepError

__all__ = ["CURRENT_OUTSIDE", "Arrival", "OutsideWorld", "outside_world"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """One call that arrived.

    Attributes:
        at_s: Virtual seconds.
        name: What was called.
        payload: What was sent.
    """

    at_s: float
    name: str
    payload: Any


class OutsideWorld:
    """What is outside the app in one trial.

    Attributes:
        arrivals: What arrived, in order.
    """

    def __init__(self) -> None:
        self.arrivals: list[Arrival] = []
        self._under_way: set[asyncio.Task[None]] = set()

    async def call(self, name: str, payload: Any = None, *, takes_s: float = 0.1) -> None:
        """Call something outside and wait for its reply.

        Args:
            name: What is called.
            payload: What is sent.
            takes_s: Seconds there and back; it arrives half-way.
        """
        loop = asyncio.get_running_loop()
        replied = loop.create_future()

        async def carry() -> None:
            await asyncio.sleep(takes_s / 2)
            self.arrivals.append(Arrival(at_s=loop.time(), name=name, payload=payload))
            await asyncio.sleep(takes_s / 2)
            if not replied.done():
                replied.set_result(None)

        # A context of its own: what is under way outside is nobody's request.
        task = loop.create_task(carry(), context=Context())
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard, context=Context())
        await replied

    def payloads(self, name: str) -> list[Any]:
        """Return what arrived under a name, in order."""
        return [arrival.payload for arrival in self.arrivals if arrival.name == name]


CURRENT_OUTSIDE: ContextVar[OutsideWorld | None] = ContextVar("outlast_outside", default=None)
"""The outside of the trial whose context this is."""


def outside_world() -> OutsideWorld:
    """Return the world outside the app in the trial that is running.

    Raises:
        SweepError: None is running.
    """
    found = CURRENT_OUTSIDE.get()
    if found is None:
        raise SweepError("outside_world() works only inside a cut sweep")
    return found
