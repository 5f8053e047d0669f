"""Where an experiment takes part in the run of a scenario.

Rules: a probe looks on and may kill; it changes nothing else. What it is told happens before the
first step of what it is about.

Not here: what an experiment does there.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from platform_sim.lifetime.gate import Gate
from platform_sim.lifetime.invocation import Invocation

__all__ = ["OnRequest", "OnRun", "Probe"]

OnRequest = Callable[[Invocation], None]
OnRun = Callable[[Gate, Callable[[], None]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """What an experiment is told, and what it tells.

    Attributes:
        on_request: Is given each request of a web replica before its first step.
        on_run: Is given the gate of each redrive run before its first step, and what kills the
            run.
        over: Ends the scenario early when it is set.
    """

    on_request: OnRequest | None = None
    on_run: OnRun | None = None
    over: asyncio.Event = field(default_factory=asyncio.Event)
