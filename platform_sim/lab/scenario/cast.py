"""The cast of a world: its web replicas and redrive replicas, with a clock and randomness each.

Rules: all randomness comes from the scenario's seed, in the order in which replicas are made; one
that takes another's place keeps its name and its clock.

Not here: what a replica is (`replicas`).
"""

from collections.abc import Mapping
from functools import partial
from random import Random

from platform_sim.lab.scenario.file import Scenario
from platform_sim.lab.scenario.probe import Probe
from platform_sim.lab.scenario.product import OpenProduct, ReplicaParts
from platform_sim.lab.scenario.replicas import (
    RedriveReplica,
    WebReplica,
    with_middlewares,
    without_lifetime,
)
from platform_sim.lab.scenario.story import Story
from platform_sim.lifetime.profile import Profile
from platform_sim.world.clocks import ReplicaClock, WorldClock
from platform_sim.world.network import Network

__all__ = ["Cast"]


class Cast:
    """The replicas of one world.

    Attributes:
        webs, redrives: By name.
        clocks: The replicas' clocks by name.
        ever: Every replica there was, those included whose place another has taken.
        startup_errors: Why apps refused to start.
    """

    def __init__(
        self,
        scenario: Scenario,
        profile: Profile,
        probe: Probe,
        *,
        opened: OpenProduct,
        clock: WorldClock,
        network: Network,
        story: Story,
    ) -> None:
        self.webs: dict[str, WebReplica] = {}
        self.redrives: dict[str, RedriveReplica] = {}
        self.clocks: dict[str, ReplicaClock] = {}
        self.ever: list[WebReplica | RedriveReplica] = []
        self.startup_errors: list[str] = []
        self._scenario = scenario
        self._profile = profile
        self._probe = probe
        self._opened = opened
        self._clock = clock
        self._network = network
        self._story = story
        self._random = Random(scenario.seed)  # noqa: S311  replayable, not secret

    async def start(self) -> None:
        """Start every web replica, and make every redrive replica ready to run."""
        for number in range(1, self._scenario.platform.web_replicas + 1):
            await self.start_web(f"web-{number}")
        for number in range(1, self._scenario.redrive.replicas + 1):
            name = f"redrive-{number}"
            parts = self._parts(name)
            self.redrives[name] = RedriveReplica(
                name,
                partial(self._opened.redrive, parts),
                clock=parts.clock,
                network=self._network,
                story=self._story,
                on_run=self._probe.on_run,
            )
            self.ever.append(self.redrives[name])

    async def start_web(self, name: str) -> None:
        """Start a web replica, in place of the one that had this name."""
        parts = self._parts(name)
        app = self._opened.web(parts)
        if not self._scenario.platform.lifetime:
            app = without_lifetime(app)
        web = WebReplica(
            name,
            with_middlewares(app, self._scenario.platform.middlewares),
            profile=self._profile,
            clock=parts.clock,
            network=self._network,
            story=self._story,
            on_request=self._probe.on_request,
        )
        self.webs[name] = web
        self.ever.append(web)
        await web.start()
        if web.startup_error is not None:
            self.startup_errors.append(web.startup_error)

    def replicas(self) -> Mapping[str, WebReplica | RedriveReplica]:
        """Return every replica by name."""
        return {**self.webs, **self.redrives}

    def _parts(self, name: str) -> ReplicaParts:
        clock = self.clocks.setdefault(name, ReplicaClock(self._clock))
        return ReplicaParts(
            name=name,
            clock=clock,
            random=Random(self._random.getrandbits(64)),  # noqa: S311  replayable, not secret
        )
