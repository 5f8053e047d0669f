"""Running a scenario: the world is built, everything in it happens on virtual time, and it ends.

Rules: one event loop of its own, whose time is virtual; nothing waits in real time. All
randomness comes from the scenario's seed. The world's own tasks run outside every replica's
context, so no kill reaches them. What must be known at an instant is photographed just after it.

Not here: judging what happened (`judge`, `invariants`).
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from contextvars import Context
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import looptime

from platform_sim.lab.scenario.file import Act, BadScenario, Fault, Request, Scenario
from platform_sim.lab.scenario.product import Product, ReplicaParts, WorldParts
from platform_sim.lab.scenario.replicas import (
    RedriveReplica,
    WebReplica,
    with_middlewares,
    without_lifetime,
)
from platform_sim.lab.scenario.story import CURRENT_REQUEST, Story, StoryEvent
from platform_sim.lab.scenario.troubles import Troubles
from platform_sim.lifetime.errors import BadProfile
from platform_sim.lifetime.profile import CutMode, Profile, find_profile
from platform_sim.world.clients import Client, Leave
from platform_sim.world.clocks import ReplicaClock, WorldClock
from platform_sim.world.ledger import WireRequest
from platform_sim.world.network import Network, Site
from platform_sim.world.receiver import Receiver
from platform_sim.world.script import Script

__all__ = ["Photograph", "Played", "play"]

_JUST_AFTER_S = 0.001
Rows = Mapping[str, Mapping[str, Any]]


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
    rows: Rows
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
    """

    scenario: Scenario
    story: Story
    end: Photograph
    photographs: Mapping[float, Photograph]
    names: Mapping[str, str]
    startup_errors: tuple[str, ...]


def play(scenario: Scenario, product: Product) -> Played:
    """Run a scenario to its end.

    Raises:
        BadScenario: It names a profile or a setting that there is not.
    """
    profile = profile_of(scenario)
    product.check(scenario)
    with asyncio.Runner(loop_factory=looptime.new_event_loop) as runner:
        return runner.run(_World(scenario, profile, product).play())


def profile_of(scenario: Scenario) -> Profile:
    """Return the profile a scenario runs under, with its overrides.

    Raises:
        BadScenario: There is no such profile or cut.
    """
    platform = scenario.platform
    try:
        profile = find_profile(platform.profile)
        if platform.allowance_s is not None:
            profile = replace(profile, allowance_s=platform.allowance_s)
        if platform.shutdown_grace_s is not None:
            profile = replace(profile, shutdown_grace_s=platform.shutdown_grace_s)
    except BadProfile as error:
        raise BadScenario(f"platform.profile: {error}") from error
    if platform.cut is not None:
        if platform.cut not in set(CutMode):
            known = ", ".join(CutMode)
            raise BadScenario(f"platform.cut: {platform.cut!r} is none of {known}")
        profile = replace(profile, cut=CutMode(platform.cut))
    return profile


class _World:
    """The world of one run."""

    def __init__(self, scenario: Scenario, profile: Profile, product: Product) -> None:
        self._scenario = scenario
        self._profile = profile
        self._product = product
        self._random = Random(scenario.seed)  # noqa: S311  replayable, not secret
        self._webs: dict[str, WebReplica] = {}
        self._redrives: dict[str, RedriveReplica] = {}
        self._clocks: dict[str, ReplicaClock] = {}
        self._passes: dict[str, asyncio.Task[Any]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._photographs: dict[float, Photograph] = {}
        self._startup_errors: list[str] = []

    async def play(self) -> Played:
        """Run it."""
        loop = asyncio.get_running_loop()
        self._context = Context()
        self._clock = WorldClock(loop, loop.time())
        self._story = Story(self._clock)
        self._story.listeners.append(self._note_pass)
        self._troubles = Troubles(self._scenario, self._clock, self._story, self._strike)
        self._sites = {name: self._site(name) for name in self._scenario.receivers}
        self._network = Network(self._sites, self._context)
        self._open = self._product.open(self._scenario, self._parts())
        await self._start_replicas()
        self._schedule()
        await asyncio.sleep(self._scenario.run_for_s + 2 * _JUST_AFTER_S)
        return await self._end()

    def _parts(self) -> WorldParts:
        return WorldParts(
            clock=self._clock,
            network=self._network,
            tell=self._story.tell,
            meet=self._troubles.meet,
            index_lag_s=self._troubles.index_lag_s,
            later=self._later,
        )

    def _site(self, name: str) -> Site:
        described = self._scenario.receivers[name]

        def committed(key: str) -> None:
            self._story.tell(f"receiver:{name}", "committed", operation_id=key)

        receiver = Receiver(now_ms=self._clock.wall_ms, dedupe=False, on_commit=committed)
        dedupes = described.idempotent if described.dedupes is None else described.dedupes
        receiver.learn(name, Script(dedupe=dedupes, dedupe_window_s=described.dedupe_window_s))
        return Site(receiver=receiver, turns=described.replies, lookups=described.lookups)

    # Replicas.

    def _replica(self, name: str) -> ReplicaParts:
        clock = self._clocks.setdefault(name, ReplicaClock(self._clock))
        return ReplicaParts(
            name=name,
            clock=clock,
            random=Random(self._random.getrandbits(64)),  # noqa: S311  replayable, not secret
        )

    async def _start_replicas(self) -> None:
        for number in range(1, self._scenario.platform.web_replicas + 1):
            await self._start_web(f"web-{number}")
        for number in range(1, self._scenario.redrive.replicas + 1):
            name = f"redrive-{number}"
            parts = self._replica(name)
            self._redrives[name] = RedriveReplica(
                name,
                lambda parts=parts: self._open.redrive(parts),  # type: ignore[misc]
                clock=parts.clock,
                network=self._network,
                story=self._story,
            )

    def _replicas(self) -> Mapping[str, WebReplica | RedriveReplica]:
        return {**self._webs, **self._redrives}

    async def _start_web(self, name: str) -> None:
        parts = self._replica(name)
        app = self._open.web(parts)
        if not self._scenario.platform.lifetime:
            app = without_lifetime(app)
        web = WebReplica(
            name,
            with_middlewares(app, self._scenario.platform.middlewares),
            profile=self._profile,
            clock=parts.clock,
            network=self._network,
            story=self._story,
        )
        self._webs[name] = web
        await web.start()
        if web.startup_error is not None:
            self._startup_errors.append(web.startup_error)

    # What happens when.

    def _schedule(self) -> None:
        for name, request in named_requests(self._scenario):
            for at_s in (request.at_s, *request.repeats_at_s):
                self._at(at_s, lambda name=name, request=request: self._ask(name, request))  # type: ignore[misc]
        for fault in self._troubles.timed:
            assert fault.at_s is not None
            self._at(fault.at_s, lambda fault=fault: self._troubles.begin(fault))  # type: ignore[misc]
        self._schedule_redrive()
        asked = {expect.at_s for expect in self._scenario.expect}
        asked |= {total.at_s for total in self._scenario.totals}
        for at_s in [instant for instant in asked if instant is not None]:
            self._at(at_s + _JUST_AFTER_S, lambda at_s=at_s: self._photograph(at_s))  # type: ignore[misc]

    def _schedule_redrive(self) -> None:
        plan = self._scenario.redrive
        at_s = plan.every_s if plan.first_at_s is None else plan.first_at_s
        until_s = self._scenario.run_for_s if plan.until_s is None else plan.until_s
        while at_s <= until_s:
            for place, replica in enumerate(self._redrives.values()):
                self._at(
                    at_s + place * plan.stagger_s,
                    lambda replica=replica: replica.begin(plan.life_s),  # type: ignore[misc]
                )
            at_s += plan.every_s

    def _at(self, at_s: float, act: Callable[[], object]) -> None:
        loop = asyncio.get_running_loop()
        loop.call_at(self._clock.started_s + at_s, act, context=self._context.copy())

    def _later(self, act: Callable[[], Awaitable[None]]) -> None:
        async def run() -> None:
            await act()

        task = asyncio.get_running_loop().create_task(run(), context=self._context.copy())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard, context=self._context)

    def _ask(self, name: str, request: Request) -> None:
        async def ask() -> None:
            CURRENT_REQUEST.set(name)
            self._story.tell("client", "request", request=name, replica=request.replica)
            answer = await self._webs[request.replica].serve(_client(request))
            operation_id = _operation_id(answer.body)
            self._story.tell(
                "client",
                "answer",
                operation_id=operation_id,
                request=name,
                status=answer.status,
                stored=operation_id in self._open.rows(),
            )

        self._later(ask)

    def _photograph(self, at_s: float) -> None:
        self._photographs[at_s] = self._now(at_s)

    def _now(self, at_s: float) -> Photograph:
        receivers = {name: site.receiver for name, site in self._sites.items()}
        return Photograph(
            at_s=at_s,
            rows={key: dict(row) for key, row in self._open.rows().items()},
            wire={name: tuple(each.ledger.requests) for name, each in receivers.items()},
            effects={name: dict(each.effects.counts) for name, each in receivers.items()},
            events=len(self._story.events),
        )

    # Faults.

    def _note_pass(self, event: StoryEvent) -> None:
        task = asyncio.current_task() if event.kind == "pass_started" else None
        if task is not None and event.operation_id is not None:
            self._passes[event.operation_id] = task

    def _strike(self, fault: Fault, event: StoryEvent | None) -> None:
        match fault.do:
            case Act.DOWN | Act.UP:
                assert fault.receiver is not None
                self._sites[fault.receiver].receiver.down = fault.do is Act.DOWN
            case Act.CANCEL | Act.BREAK_ROW:
                self._strike_operation(fault, event)
            case _:
                self._strike_replica(fault)

    def _strike_operation(self, fault: Fault, event: StoryEvent | None) -> None:
        assert fault.operation is not None
        known = self._names()
        operation_id = known.get(fault.operation) or (event.operation_id if event else None)
        if operation_id is None:
            return
        if fault.do is Act.BREAK_ROW:
            self._open.break_row(operation_id, fault.attributes)
        elif operation_id in self._passes:
            self._passes[operation_id].cancel()

    def _strike_replica(self, fault: Fault) -> None:
        assert fault.replica is not None
        name = fault.replica
        replica = self._replicas()[name]
        match fault.do:
            case Act.KILL:
                replica.kill()
                if fault.back_after_s is not None and name in self._webs:
                    self._at(
                        self._clock.now_s() + fault.back_after_s,
                        lambda: self._later(lambda: self._start_web(name)),
                    )
            case Act.FREEZE:
                replica.freeze()
            case Act.THAW:
                replica.thaw()
            case Act.TERM:
                self._later(lambda: replica.term(fault.grace_s))
            case _:
                self._clocks[name].skew_s = fault.by_s

    # The end.

    def _names(self) -> Mapping[str, str]:
        derived = {
            name: self._open.operation_id(request.key)
            for name, request in named_requests(self._scenario)
            if request.key is not None
        }
        return {**derived, **self._story.names}

    async def _end(self) -> Played:
        end = self._now(self._scenario.run_for_s)
        names = self._names()
        self._story.listeners.clear()
        for replica in self._replicas().values():
            replica.kill()
        for task in tuple(self._tasks):
            task.cancel()
        for site in self._sites.values():
            await site.receiver.aclose()
        return Played(
            scenario=self._scenario,
            story=self._story,
            end=end,
            photographs=self._photographs,
            names=names,
            startup_errors=tuple(self._startup_errors),
        )


def named_requests(scenario: Scenario) -> list[tuple[str, Request]]:
    """Return every single request with its name; rows are counted out, `{n}` is filled in."""
    found = []
    for place, request in enumerate(scenario.requests, start=1):
        for number in range(1, request.count + 1):
            key = request.key.replace("{n}", str(number)) if request.key is not None else None
            if key is not None and request.count > 1 and key == request.key:
                key = f"{key}-{number}"
            name = request.name or request.key or f"request-{place}"
            name = name.replace("{n}", str(number))
            if request.count > 1 and "{n}" not in (request.name or request.key or ""):
                name = f"{name}-{number}"
            single = replace_request(request, key, request.at_s + (number - 1) * request.every_s)
            found.append((name, single))
    return found


def replace_request(request: Request, key: str | None, at_s: float) -> Request:
    """Return one request of a row."""
    return Request(
        at_s=at_s,
        destination=request.destination,
        name=request.name,
        key=key,
        payload=request.payload,
        replica=request.replica,
        client=request.client,
        repeats_at_s=request.repeats_at_s,
    )


def _client(request: Request) -> Client:
    headers = {"content-type": "application/json"}
    if request.key is not None:
        headers["idempotency-key"] = request.key
    body = json.dumps({"destination": request.destination, "payload": request.payload}).encode()
    leave = Leave(
        after_s=request.client.leaves_after_s, at_answer=request.client.leaves_at == "answer"
    )
    return Client(path="/operations", headers=headers, body=body, leave=leave)


def _operation_id(body: bytes) -> str | None:
    try:
        decoded = json.loads(body)
    except ValueError:
        return None
    found = decoded.get("id") if isinstance(decoded, dict) else None
    return found if isinstance(found, str) else None
