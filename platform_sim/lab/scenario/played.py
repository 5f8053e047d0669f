"""What a scenario that was run leaves behind: its story, and what was so at some instants.

Plain data; made by `world`, read by `report`, `judge` and `invariants`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from platform_sim.lab.scenario.file import Scenario
from platform_sim.lab.scenario.story import Story
from platform_sim.world.ledger import WireRequest

__all__ = ["Photograph", "Played"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Photograph:
    """What was so at an instant.

    Attributes:
        at_s: The instant.
        rows: Every stored row.
        wire: Every wire request, by receiver.
        effects: Effects by receiver and key.
        events: How many events had been told.
    """

    at_s: float
    rows: Mapping[str, Mapping[str, Any]]
    wire: Mapping[str, tuple[WireRequest, ...]]
    effects: Mapping[str, Mapping[str, int]]
    events: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """A scenario that was run.

    Attributes:
        scenario: Which one.
        story: Everything that happened.
        end: What was so at the end.
        photographs: What was so at the instants that were asked for.
        names: Operation ids by the requests' names.
        startup_errors: Why replicas refused to start.
        ended_early: Why the world was stopped before its end, or None.
    """

    scenario: Scenario
    story: Story
    end: Photograph
    photographs: Mapping[float, Photograph]
    names: Mapping[str, str]
    startup_errors: tuple[str, ...] = ()
    ended_early: str | None = None
