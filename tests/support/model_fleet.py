"""The replicas of a model world: two web replicas, two redrive replicas, and what befalls them.

Rules: a replica that is killed, frozen or stopped is replaced at once by a new one with a new name
and fresh clocks; what was frozen may thaw beside it. Everything the product does runs as it would
in production; it is passed the world's clocks, randomness, ids, network and store.
"""

import asyncio
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from handler.app import create_app
from handler.destinations import Destination
from handler.events import Action
from handler.ids import Ids
from handler.redrive import Redrive
from handler.service import Parts, Service
from handler.settings import Settings
from platform_sim.lab.scenario.story import Story, StoryEvent
from platform_sim.lifetime.gate import Stepper
from platform_sim.lifetime.profile import Profile
from platform_sim.world.clocks import ReplicaClock, WorldClock
from platform_sim.world.network import Network
from tests.support.model_driver import Driver
from tests.support.model_oracle import Oracle
from tests.support.model_replicas import NetworkSender, SteppedRedrive, SteppedWeb
from tests.support.model_store import ModelStore, ReplicaTransport

__all__ = ["Fleet", "Replica", "Surroundings"]

Replica = SteppedWeb | SteppedRedrive


@dataclass(slots=True, kw_only=True)
class _Trap:
    act: Callable[[Replica], None]
    count: int
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What every replica is passed."""

    settings: Settings
    destinations: Mapping[str, Destination]
    profile: Profile
    clock: WorldClock
    story: Story
    network: Network
    store: ModelStore


class Fleet:
    """All replicas.

    Attributes:
        webs, redrives: The replica in each place.
    """

    def __init__(self, surroundings: Surroundings, driver: Driver, oracle: Oracle) -> None:
        self._oracle = oracle
        self._around = surroundings
        self._driver = driver
        self._story = surroundings.story
        self._random = Random(1)
        self._numbers = itertools.count(1)
        self._clocks: dict[str, ReplicaClock] = {}
        self._by_name: dict[str, Replica] = {}
        self._frozen_at_s: dict[Replica, float] = {}
        self._at_step: _Trap | None = None
        self._at_event: _Trap | None = None
        self._last_pass: asyncio.Task[Any] | None = None
        self._last_sender = ""
        self._story.listeners.append(self._listen)
        self.webs = [self._new_web(), self._new_web()]
        self.redrives = [self._new_redrive(), self._new_redrive()]

    def run_redrive(self, place: int = 0, life_s: float | None = None) -> None:
        """Let a redrive run begin, unless one is under way there."""
        self._driver.inside(lambda: self.redrives[place].begin(life_s))

    def kill(self, replica: Replica) -> None:
        """Let no further line of a replica run; a new one takes its place."""
        if replica.name in self._oracle.dead:
            return
        self._oracle.dead.add(replica.name)
        self._oracle.frozen.discard(replica.name)
        self._frozen_at_s.pop(replica, None)
        self._tell_fault("kill", replica)
        self._driver.inside(replica.kill)
        self._replace(replica)

    def freeze(self, replica: Replica) -> None:
        """Hold everything of a replica; a new one takes its place."""
        if replica.name in self._oracle.dead | self._oracle.frozen:
            return
        self._tell_fault("freeze", replica)
        self._driver.inside(replica.freeze)
        self._oracle.frozen.add(replica.name)
        self._frozen_at_s[replica] = self._around.clock.now_s()
        self._replace(replica)

    def freeze_soon(self, replica: Replica) -> None:
        """Freeze a replica once the step under way is over."""
        if self._driver.loop.is_running():
            self._driver.loop.call_soon(self.freeze, replica, context=self._driver.context.copy())
        else:
            self.freeze(replica)

    def replica(self, kind: str, place: int) -> Replica:
        """Return the replica in a place: `web` or `redrive`."""
        return self.webs[place] if kind == "web" else self.redrives[place]

    def thaw(self) -> None:
        """Let every frozen replica go on."""
        frozen = tuple(self._frozen_at_s.items())
        self._frozen_at_s.clear()
        for replica, at_s in frozen:
            self._tell_fault("thaw", replica)
            self._oracle.frozen.discard(replica.name)
            self._oracle.disturb(replica.name, frozen_s=self._around.clock.now_s() - at_s)
            self._driver.inside(replica.thaw)

    def kill_frozen(self) -> None:
        """Let no frozen replica ever thaw."""
        for replica in tuple(self._frozen_at_s):
            self.kill(replica)

    def term(self, replica: Replica, grace_s: float) -> None:
        """Stop a replica in good order; a new one takes its place."""

        async def stop() -> None:
            await replica.term(grace_s)
            self._oracle.dead.add(replica.name)

        self._tell_fault("term", replica)
        self._replace(replica)
        self._driver.later(stop())

    def skew(self, replica: Replica, seconds: float) -> None:
        """Set a replica's wall clock so far ahead."""
        clock = self._clocks[replica.name]
        self._oracle.disturb(replica.name, set_back_s=max(0.0, clock.skew_s - seconds))
        clock.skew_s = seconds

    def cancel_pass(self) -> None:
        """Cancel the pass that began last, from outside."""
        if self._last_pass is not None and not self._last_pass.done():
            self._last_pass.cancel()

    def at_step(self, count: int, act: Callable[[Replica], None], kind: str = "") -> None:
        """Do something to a replica at the `count`-th resumption of any from now.

        Args:
            count: Which one, from 1.
            act: What is done to the replica that is being resumed.
            kind: How the replica's name begins: `web` or `redrive`; any when empty.
        """
        self._at_step = _Trap(act=act, count=count, kind=kind)

    def at_event(self, kind: str, act: Callable[[Replica], None], count: int = 1) -> None:
        """Do something to a replica at its first resumption after the `count`-th event of a kind.

        After a receiver's event this strikes the replica whose attempt began last.
        """
        self._at_event = _Trap(act=act, count=count, kind=kind)

    def _on_step(self, name: str) -> Callable[[Stepper], None]:
        def stepped(_stepper: Stepper) -> None:
            trap = self._at_step
            if trap is not None and name.startswith(trap.kind):
                trap.count -= 1
                if trap.count == 0:
                    self._at_step = None
                    trap.act(self._by_name[name])

        return stepped

    def _listen(self, event: StoryEvent) -> None:
        if event.kind == "pass_started":
            self._last_pass = asyncio.current_task()
        if event.kind == "attempt_started":
            self._last_sender = event.source
        trap = self._at_event
        if trap is None or trap.kind != event.kind:
            return
        replica = self._by_name.get(event.source, self._by_name.get(self._last_sender))
        if replica is None:
            return
        trap.count -= 1
        if trap.count == 0:
            self._at_event = None
            self.at_step(1, trap.act, replica.name)

    def _tell_fault(self, do: str, replica: Replica) -> None:
        self._story.tell("world", "fault", do=do, at=None, replica=replica.name)

    def _replace(self, replica: Replica) -> None:
        if isinstance(replica, SteppedWeb):
            if replica in self.webs:
                self.webs[self.webs.index(replica)] = self._new_web()
        elif replica in self.redrives:
            self.redrives[self.redrives.index(replica)] = self._new_redrive()

    def _name(self, kind: str) -> str:
        name = f"{kind}-{next(self._numbers)}"
        self._clocks[name] = ReplicaClock(self._around.clock)
        return name

    def _new_web(self) -> SteppedWeb:
        name = self._name("web")
        parts = self._parts(name)
        app = create_app(
            parts.settings,
            destinations=parts.destinations,
            clock=parts.clock,
            ids=parts.ids,
            uniform=parts.uniform,
            open_transport=parts.open_transport,
            open_sender=parts.open_sender,
            sinks=parts.sinks,
        )
        web = SteppedWeb(
            name,
            app,
            profile=self._around.profile,
            on_step=self._on_step(name),
            clock=self._clocks[name],
            network=self._around.network,
            story=self._story,
        )
        self._by_name[name] = web
        self._driver.later(web.start())
        return web

    def _new_redrive(self) -> SteppedRedrive:
        name = self._name("redrive")
        parts = self._parts(name)

        async def run() -> None:
            service = Service(parts)
            try:
                await Redrive(service).run()
            finally:
                await service.aclose()

        redrive = SteppedRedrive(
            name,
            run,
            on_step=self._on_step(name),
            clock=self._clocks[name],
            network=self._around.network,
            story=self._story,
        )
        self._by_name[name] = redrive
        return redrive

    def _parts(self, name: str) -> Parts:
        clock = self._clocks[name]
        random = Random(self._random.getrandbits(64))

        def sink(action: Action, fields: Mapping[str, Any]) -> None:
            self._story.tell(name, action.value, **fields)

        return Parts(
            settings=self._around.settings,
            destinations=self._around.destinations,
            clock=clock,
            ids=Ids(replica_id=name, random_bits=random.getrandbits, wall_ms=clock.wall_ms),
            uniform=random.random,
            open_transport=lambda: ReplicaTransport(self._around.store, name),
            open_sender=lambda: NetworkSender(self._around.network, self._story, name),
            sinks=(sink,),
        )

    def skew_s(self, name: str) -> float:
        """Return how far a replica's wall clock is ahead."""
        return self._clocks[name].skew_s

    def heal(self) -> None:
        """Spring no trap, set every clock right, let what is frozen go on."""
        self._at_step = self._at_event = None
        for replica in (*self.webs, *self.redrives, *self._frozen_at_s):
            self.skew(replica, 0.0)
        self.thaw()

    def close(self) -> None:
        """Kill everything."""
        self._at_step = self._at_event = None
        for replica in self._by_name.values():
            self._driver.inside(replica.kill)
        self._by_name.clear()
