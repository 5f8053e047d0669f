"""What the experiment is done to, as the lab sees it: a product that can be opened in a world.

The lab imports no product. Whoever joins the two (`platform_sim.wiring.lab`) supplies these.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol

from platform_sim.lab.scenario.faults import StoreFailure
from platform_sim.lab.scenario.file import Scenario
from platform_sim.lab.scenario.vocabulary import Words
from platform_sim.lifetime.emulator import App
from platform_sim.world.clocks import ReplicaClock, WorldClock
from platform_sim.world.network import Network

__all__ = ["OpenProduct", "Product", "ReplicaParts", "StoreTrouble", "WorldParts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreTrouble:
    """How one store call fails, and the seconds that go with it."""

    how: StoreFailure
    by_s: float


Tell = Callable[..., None]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldParts:
    """What all replicas share.

    Attributes:
        clock: True time.
        network: Reaches the receivers.
        tell: Tells the story: `tell(source, kind, operation_id=None, **fields)`.
        meet: Says how a store call of a replica fails, or None: `meet(replica, call)`.
        index_lag_s: Says how old the due index is now.
        later: Runs an async function outside every replica.
    """

    clock: WorldClock
    network: Network
    tell: Tell
    meet: Callable[[str, str], StoreTrouble | None]
    index_lag_s: Callable[[], float]
    later: Callable[[Callable[[], Awaitable[None]]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaParts:
    """What one replica is made of.

    Attributes:
        name: Its name in the story.
        clock: Its own idea of time.
        random: Its own randomness.
    """

    name: str
    clock: ReplicaClock
    random: Random


class OpenProduct(Protocol):
    """A product in a world."""

    def web(self, replica: ReplicaParts) -> App:
        """Return a new web replica's app."""

    async def redrive(self, replica: ReplicaParts) -> None:
        """Run the scheduled function once."""

    def rows(self) -> Mapping[str, Mapping[str, Any]]:
        """Return every stored row by operation id, as plain data."""

    def break_row(self, operation_id: str, attributes: Mapping[Any, str | int]) -> None:
        """Set stored attributes of a row; an empty string takes one away."""

    def operation_id(self, key: str) -> str:
        """Return the operation id that a key stands for."""


class Product(Protocol):
    """Something that can be opened in a world."""

    def check(self, scenario: Scenario) -> None:
        """Refuse a scenario whose product settings cannot be used.

        Raises:
            BadScenario: The message names the key.
        """

    def words(self) -> Words:
        """Return the words that a scenario may use of it."""

    def open(self, scenario: Scenario, world: WorldParts) -> OpenProduct:
        """Open it; the scenario has passed `check`."""
