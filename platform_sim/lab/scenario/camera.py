"""The camera: takes photographs of a world, of what is stored and what its receivers saw.

Not here: when one is taken (`world`), and what is read from it (`report`).
"""

from collections.abc import Mapping

from platform_sim.lab.scenario.played import Photograph
from platform_sim.lab.scenario.product import OpenProduct
from platform_sim.lab.scenario.story import Story
from platform_sim.world.network import Site

__all__ = ["Camera"]


class Camera:
    """Takes and keeps photographs.

    Args:
        story: How far it had been told is noted.
        sites: The receivers by name.
        opened: The product.
    """

    def __init__(self, story: Story, sites: Mapping[str, Site], opened: OpenProduct) -> None:
        self.photographs: dict[float, Photograph] = {}
        self._story = story
        self._sites = sites
        self._opened = opened

    def take(self, at_s: float) -> None:
        """Take and keep a photograph for an instant."""
        self.photographs[at_s] = self.now(at_s)

    def now(self, at_s: float) -> Photograph:
        """Return a photograph of what is so now."""
        receivers = {name: site.receiver for name, site in self._sites.items()}
        return Photograph(
            at_s=at_s,
            rows={key: dict(row) for key, row in self._opened.rows().items()},
            wire={name: tuple(each.ledger.requests) for name, each in receivers.items()},
            effects={name: dict(+each.effects.counts) for name, each in receivers.items()},
            events=len(self._story.events),
        )
