"""A world for model tests: the real handler, redrive and store on virtual time, and its troubles.

Everything the product does runs as it would in production. What it is passed is the world's:
clocks, randomness, ids, the network and the store's server. A world is driven from outside, one
act after the other; between two acts time stands still. At the end it is healed, redrive runs to
rest, and what is left is judged.
"""

import asyncio
import itertools
import json
from collections.abc import Callable, Coroutine, Mapping
from contextvars import Context
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Self

from handler.app import create_app
from handler.destinations import Destination
from handler.events import Action
from handler.ids import Ids, operation_id_for_key
from handler.redrive import Redrive
from handler.service import Parts, Service
from handler.settings import Settings
from platform_sim.lab.scenario.story import Story, StoryEvent
from platform_sim.lifetime.births import mind_births
from platform_sim.lifetime.gate import Stepper
from platform_sim.lifetime.profile import CutMode, find_profile
from platform_sim.world.clients import Client, Leave
from platform_sim.world.clocks import ReplicaClock, WorldClock
from platform_sim.world.network import Network, Site, Turn
from platform_sim.world.receiver import Receiver
from platform_sim.world.script import Script, Step
from tests.support.leaping_loop import LeapingLoop, Stuck
from tests.support.model_oracle import Oracle, Promised
from tests.support.model_replicas import NetworkSender, SteppedRedrive, SteppedWeb
from tests.support.model_store import ModelStore, ReplicaTransport

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


@dataclass(slots=True, kw_only=True)
class _Trap:
    act: Callable[[Replica], None]
    count: int
    kind: str


class ModelWorld:
    """One world.

    Attributes:
        story: Everything that happened.
        oracle: What was broken by it.
        store: The store's server.
        sites: The receivers as the network reaches them.
        webs, redrives: The replica in each place; a new one has a new name.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.settings = Settings(**{"row_backoff_cap_s": 60.0, **plan.handler})
        self._profile = replace(
            find_profile(plan.profile), allowance_s=plan.allowance_s, cut=plan.cut
        )
        self._loop = LeapingLoop()
        self._loop.set_exception_handler(self._unhandled)
        self._context = Context()
        self._random = Random(1)
        self._numbers = itertools.count(1)
        self._clocks: dict[str, ReplicaClock] = {}
        self._by_name: dict[str, Replica] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._frozen_at_s: dict[Replica, float] = {}
        self._at_step: _Trap | None = None
        self._at_event: _Trap | None = None
        self._last_pass: asyncio.Task[Any] | None = None
        self._last_sender = ""
        self.clock = WorldClock(self._loop, self._loop.time())
        self.story = Story(self.clock)
        self.oracle = Oracle(self.story, self._promised(), self._skew_s)
        self.story.listeners.append(self._listen)
        self.sites = {name: self._site(name) for name in RECEIVERS}
        self.network = Network(self.sites, self._context)
        self.store = ModelStore(story=self.story, clock=self.clock, later=self._later)
        self.webs = [self._new_web(), self._new_web()]
        self.redrives = [self._new_redrive(), self._new_redrive()]
        self.advance(0.0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # Time.

    def advance(self, seconds: float) -> None:
        """Let time pass; what happens at its end happens too."""
        self._drive(asyncio.sleep(seconds))

    def _drive(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        async def drive() -> None:
            mind_births(self._loop)
            await coroutine
            for _ in range(3):  # what became ready at the same instant
                await asyncio.sleep(0)

        self._loop.run_until_complete(drive())

    def _later(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(coroutine, context=self._context.copy())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard, context=self._context)

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
            answer = await self.webs[at].serve(client)
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

        self._later(ask())

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

    # What becomes of replicas.

    def run_redrive(self, place: int = 0, life_s: float | None = None) -> None:
        """Let a redrive run begin, unless one is under way there."""
        self._inside(lambda: self.redrives[place].begin(life_s))

    def kill(self, replica: Replica) -> None:
        """Let no further line of a replica run; a new one takes its place."""
        if replica.name in self.oracle.dead:
            return
        self.oracle.dead.add(replica.name)
        self.oracle.frozen.discard(replica.name)
        self._frozen_at_s.pop(replica, None)
        self._tell_fault("kill", replica)
        self._inside(replica.kill)
        self._replace(replica)

    def freeze(self, replica: Replica) -> None:
        """Hold everything of a replica; a new one takes its place."""
        if replica.name in self.oracle.dead | self.oracle.frozen:
            return
        self._tell_fault("freeze", replica)
        self._inside(replica.freeze)
        self.oracle.frozen.add(replica.name)
        self._frozen_at_s[replica] = self.clock.now_s()
        self._replace(replica)

    def freeze_soon(self, replica: Replica) -> None:
        """Freeze a replica once the step under way is over."""
        if self._loop.is_running():
            self._loop.call_soon(self.freeze, replica, context=self._context.copy())
        else:
            self.freeze(replica)

    def replica(self, kind: str, place: int) -> Replica:
        """Return the replica in a place: `web` or `redrive`."""
        return self.webs[place] if kind == "web" else self.redrives[place]

    def thaw(self) -> None:
        """Let every frozen replica go on."""
        for replica, at_s in self._frozen_at_s.items():
            self._tell_fault("thaw", replica)
            self.oracle.frozen.discard(replica.name)
            self.oracle.disturb(replica.name, frozen_s=self.clock.now_s() - at_s)
            self._inside(replica.thaw)
        self._frozen_at_s.clear()

    def kill_frozen(self) -> None:
        """Let no frozen replica ever thaw."""
        for replica in tuple(self._frozen_at_s):
            self.kill(replica)

    def term(self, replica: Replica, grace_s: float) -> None:
        """Stop a replica in good order; a new one takes its place."""

        async def stop() -> None:
            await replica.term(grace_s)
            self.oracle.dead.add(replica.name)

        self._tell_fault("term", replica)
        self._replace(replica)
        self._later(stop())

    def skew(self, replica: Replica, seconds: float) -> None:
        """Set a replica's wall clock so far ahead."""
        clock = self._clocks[replica.name]
        self.oracle.disturb(replica.name, set_back_s=max(0.0, clock.skew_s - seconds))
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
        self.story.tell("world", "fault", do=do, at=None, replica=replica.name)

    def _inside(self, act: Callable[[], None]) -> None:
        """Act inside the running loop: the one that runs now, or one more turn of it."""
        if self._loop.is_running():
            act()
            return

        async def once() -> None:
            act()

        self._drive(once())

    def _replace(self, replica: Replica) -> None:
        if isinstance(replica, SteppedWeb):
            if replica in self.webs:
                self.webs[self.webs.index(replica)] = self._new_web()
        elif replica in self.redrives:
            self.redrives[self.redrives.index(replica)] = self._new_redrive()

    def _name(self, kind: str) -> str:
        name = f"{kind}-{next(self._numbers)}"
        self._clocks[name] = ReplicaClock(self.clock)
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
            profile=self._profile,
            on_step=self._on_step(name),
            clock=self._clocks[name],
            network=self.network,
            story=self.story,
        )
        self._by_name[name] = web
        self._later(web.start())
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
            network=self.network,
            story=self.story,
        )
        self._by_name[name] = redrive
        return redrive

    def _parts(self, name: str) -> Parts:
        clock = self._clocks[name]
        random = Random(self._random.getrandbits(64))

        def sink(action: Action, fields: Mapping[str, Any]) -> None:
            self.story.tell(name, action.value, **fields)

        return Parts(
            settings=self.settings,
            destinations=_DESTINATIONS,
            clock=clock,
            ids=Ids(replica_id=name, random_bits=random.getrandbits, wall_ms=clock.wall_ms),
            uniform=random.random,
            open_transport=lambda: ReplicaTransport(self.store, name),
            open_sender=lambda: NetworkSender(self.network, self.story, name),
            sinks=(sink,),
        )

    # The end.

    def heal(self) -> None:
        """End every trouble: nothing fails from here on."""
        self._at_step = self._at_event = None
        self.store.troubles.clear()
        self.store.lag_s = 0.0
        for name, site in self.sites.items():
            site.receiver.down = False
            self.behave(name, Turn())
        for replica in (*self.webs, *self.redrives, *self._frozen_at_s):
            self.skew(replica, 0.0)
        self.thaw()
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
            self.run_redrive()
            self._drive(self._run_over())
        else:
            self.oracle.broken.append(f"promise 1: {_RUNS_TO_REST} runs did not settle {owed}")
        wire = (
            request for each in self.sites.values() for request in each.receiver.ledger.requests
        )
        self.oracle.judge_rest(self.store.rows, wire)

    async def _run_over(self) -> None:
        redrive = self.redrives[0]
        give_up_at_s = self.clock.now_s() + 2 * self.settings.redrive_budget_s + 100.0
        while redrive.is_running and self.clock.now_s() < give_up_at_s:
            await asyncio.sleep(0.5)  # noqa: ASYNC110  a run has no event of its own to wait for

    def close(self) -> None:
        """Let go of everything; what is leaked on purpose keeps nothing large alive."""
        self._at_step = self._at_event = None
        self.story.listeners.clear()
        try:
            for replica in self._by_name.values():
                self._inside(replica.kill)
            self._drive(self._cancel_all())
        except Stuck:
            pass
        self._loop.set_exception_handler(lambda _loop, _context: None)
        self._loop.close()
        self.story.events.clear()
        self._by_name.clear()

    async def _cancel_all(self) -> None:
        for site in self.sites.values():
            await site.receiver.aclose()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._loop.shutdown_asyncgens()

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
        return self._clocks[name].skew_s

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
