"""A world for model tests: the real handler, redrive and store on virtual time, and its troubles.

Everything the product does runs as it would in production. What it is passed is the world's:
clocks, randomness, ids, the network and the store's server. A world is driven from outside, one
act after the other; between two acts time stands still. At the end it is healed, redrive runs to
rest, and what is left is judged.
"""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from handler.destinations import Destination
from handler.ids import operation_id_for_key
from handler.settings import Settings
from platform_sim.lab.scenario.story import Story
from platform_sim.lifetime.profile import CutMode, find_profile
from platform_sim.world.clients import Client, Leave
from platform_sim.world.clocks import WorldClock
from platform_sim.world.network import Network, Site, Turn
from platform_sim.world.receiver import Receiver
from platform_sim.world.script import Script, Step
from tests.support.model_driver import Driver
from tests.support.model_fleet import Fleet, Surroundings
from tests.support.model_oracle import Oracle
from tests.support.model_promised import Promised
from tests.support.model_replicas import SteppedRedrive, SteppedWeb
from tests.support.model_store import ModelStore

__all__ = ["RECEIVERS", "ModelWorld", "Plan"]

Replica = SteppedWeb | SteppedRedrive

WINDOW_S = 600.0
_DESTINATIONS: Mapping[str, Destination] = {
    "idem": Destination(url="http://idem/hooks/idem", idempotent=True, dedupe_window_s=WINDOW_S),
    "plain": Destination(url="http://plain/hooks/plain"),
    "ask": Destination(url="http://ask/hooks/ask", lookup_url="http://ask/effects/ask/{id}"),
}
RECEIVERS = tuple(_DESTINATIONS)
"""One that is idempotent, one of which nothing is known, one that can be asked."""
_SETTLED = frozenset({"delivered", "rejected", "parked"})
_RUNS_TO_REST = 60
_LONGEST_TROUBLE_S = 130.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a world is made with; `handler` holds settings by their names."""

    profile: str = "workers"
    allowance_s: float | None = 30.0
    cut: CutMode = CutMode.CANCEL
    handler: Mapping[str, Any] = field(default_factory=dict)


class ModelWorld:
    """One world.

    Attributes:
        story: Everything that happened.
        oracle: What was broken by it.
        store: The store's server.
        sites: The receivers as the network reaches them.
        fleet: The replicas.
        driver: Lets time pass.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.settings = Settings(**{"row_backoff_cap_s": 60.0, **plan.handler})
        self.driver = Driver(self._unhandled)
        self.clock = WorldClock(self.driver.loop, self.driver.loop.time())
        self.story = Story(self.clock)
        self.oracle = Oracle(self.story, self._promised(), self._skew_s)
        self.sites = {name: self._site(name) for name in RECEIVERS}
        self.store = ModelStore(story=self.story, clock=self.clock, later=self.driver.later)
        surroundings = Surroundings(
            settings=self.settings,
            destinations=_DESTINATIONS,
            profile=replace(find_profile(plan.profile), allowance_s=plan.allowance_s, cut=plan.cut),
            clock=self.clock,
            story=self.story,
            network=Network(self.sites, self.driver.context),
            store=self.store,
        )
        self.fleet = Fleet(surroundings, self.driver, self.oracle)
        self.advance(0.0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # Time.

    def advance(self, seconds: float) -> None:
        """Let time pass; what happens at its end happens too."""
        self.driver.advance(seconds)

    def _unhandled(self, _loop: object, context: Mapping[str, Any]) -> None:
        self.oracle.broken.append(f"the event loop was left with: {context}")

    # What people do.

    def post(
        self,
        key: str | None,
        destination: str,
        payload: Any,
        *,
        leave: Leave | None = None,
        at: int = 0,
    ) -> None:
        """Let a client send a request to the web replica in a place."""
        headers = {"content-type": "application/json"}
        if key is not None:
            headers["idempotency-key"] = key
        body = json.dumps({"destination": destination, "payload": payload}).encode()
        client = Client(path="/operations", headers=headers, body=body, leave=leave or Leave())

        async def ask() -> None:
            answer = await self.fleet.webs[at].serve(client)
            told = _id_in(answer.body)
            operation_id = operation_id_for_key("", key) if told is None and key else told
            row = self.store.rows.get(operation_id or "")
            same = row is not None and (
                row["destination"] == destination and row["payload"] == json.dumps(payload).encode()
            )
            self.story.tell(
                "client",
                "answer",
                operation_id=operation_id,
                request=key or "unkeyed",
                status=answer.status,
                stored=row is not None,
                same=same,
            )

        self.driver.later(ask())

    def row(self, key: str) -> Mapping[str, Any]:
        """Return the row that a key stands for, empty when there is none."""
        return self.store.rows.get(operation_id_for_key("", key), {})

    def effects(self, receiver: str, key: str) -> int:
        """Return how many effects a key had."""
        return self.sites[receiver].receiver.effects.counts[operation_id_for_key("", key)]

    def wire(self, receiver: str) -> int:
        """Return how many requests arrived."""
        return len(self.sites[receiver].receiver.ledger.requests)

    # What receivers do.

    def behave(self, receiver: str, *turns: Turn, lookups: tuple[Step, ...] = ()) -> None:
        """Let connections from now on meet these turns, the n-th of a key the n-th."""
        site = self.sites[receiver]
        site.turns, site.lookups = turns, lookups
        site.connections.clear()
        site.asked.clear()

    # The end.

    def heal(self) -> None:
        """End every trouble: nothing fails from here on."""
        self.store.troubles.clear()
        self.store.lag_s = 0.0
        for name, site in self.sites.items():
            site.receiver.down = False
            self.behave(name, Turn())
        self.fleet.heal()
        self.advance(_LONGEST_TROUBLE_S)

    def rest(self) -> None:
        """Heal, run redrive until nothing is owed, and judge what is left."""
        self.heal()
        for _ in range(_RUNS_TO_REST):
            owed = [row for row in self.store.rows.values() if row["state"] not in _SETTLED]
            if not owed:
                break
            due_ms = max(int(str(row.get("due_at", 0))) for row in owed) - self.clock.wall_ms()
            self.advance(max(0.0, due_ms / 1000) + self.settings.skew_margin_s + 1.0)
            self.fleet.run_redrive()
            self.driver.drive(self._run_over())
        else:
            self.oracle.broken.append(f"promise 1: {_RUNS_TO_REST} runs did not settle {owed}")
        wire = (
            request for each in self.sites.values() for request in each.receiver.ledger.requests
        )
        self.oracle.judge_rest(self.store.rows, wire)

    async def _run_over(self) -> None:
        redrive = self.fleet.redrives[0]
        give_up_at_s = self.clock.now_s() + 2 * self.settings.redrive_budget_s + 100.0
        while redrive.is_running and self.clock.now_s() < give_up_at_s:  # noqa: ASYNC110  a run is a task
            await asyncio.sleep(0.5)

    def close(self) -> None:
        """Let go of everything; what is leaked on purpose keeps nothing large alive."""
        self.story.listeners.clear()
        self.fleet.close()
        for site in self.sites.values():
            self.driver.later(site.receiver.aclose())
        self.driver.close()
        self.story.events.clear()

    # What it is made of.

    def _promised(self) -> Promised:
        settings = self.settings
        return Promised(
            budget_s=settings.budget_s,
            reserve_s=settings.reserve_s,
            attempt_limit_s=settings.attempt_limit_s,
            skew_margin_s=settings.skew_margin_s,
            max_passes=settings.max_passes,
            max_age_s=settings.max_age_s,
            idempotent=frozenset({"idem"}),
            lookup=frozenset({"ask"}),
            window_s=WINDOW_S,
            margin_s=min(settings.dedupe_margin_s, WINDOW_S / 10),
        )

    def _skew_s(self, name: str) -> float:
        return self.fleet.skew_s(name)

    def _site(self, name: str) -> Site:
        destination = _DESTINATIONS[name]

        def committed(key: str) -> None:
            self.story.tell(f"receiver:{name}", "committed", operation_id=key)

        receiver = Receiver(now_ms=self.clock.wall_ms, dedupe=False, on_commit=committed)
        script = Script(dedupe=destination.idempotent, dedupe_window_s=destination.dedupe_window_s)
        receiver.learn(name, script)
        return Site(receiver=receiver)


def _id_in(body: bytes) -> str | None:
    try:
        found = json.loads(body).get("id")
    except ValueError:
        return None
    return found if isinstance(found, str) else None
