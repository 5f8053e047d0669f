"""A world: built from a scenario, everything in it happens on virtual time, and it ends.

Rules: the world's own tasks run outside every
replica's context, so no kill reaches them. What must be known at an instant is photographed just
after it. A world that does not come to rest is stopped: its replicas are killed and it ends early.

Not here: the replicas (`cast`), what faults do (`strikes`), the virtual time (`loop`).
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from contextvars import Context
from functools import partial
from typing import Any

from platform_sim.lab.scenario.agenda import Agenda, ticks_s
from platform_sim.lab.scenario.asks import Ask, asks_of, client_of
from platform_sim.lab.scenario.camera import Camera
from platform_sim.lab.scenario.cast import Cast
from platform_sim.lab.scenario.file import Scenario
from platform_sim.lab.scenario.played import Played
from platform_sim.lab.scenario.probe import Probe
from platform_sim.lab.scenario.product import OpenProduct, Product, WorldParts
from platform_sim.lab.scenario.story import CURRENT_REQUEST, Story, StoryEvent
from platform_sim.lab.scenario.strikes import Strikes
from platform_sim.lab.scenario.troubles import Troubles
from platform_sim.lifetime.profile import Profile
from platform_sim.world.clients import Answer
from platform_sim.world.clocks import WorldClock
from platform_sim.world.network import Network, Site
from platform_sim.world.receiver import Receiver
from platform_sim.world.script import Script

__all__ = ["World"]

_JUST_AFTER_S = 0.001


class World:
    """The world of one run; made and played once, inside its event loop.

    Attributes:
        clock: True time.
        story: What happened so far.
        network: Reaches the receivers.
        sites: The receivers by name.
        cast: The replicas.
        opened: The product.
    """

    clock: WorldClock
    story: Story
    network: Network
    sites: Mapping[str, Site]
    opened: OpenProduct
    cast: Cast

    def __init__(
        self, scenario: Scenario, profile: Profile, product: Product, probe: Probe
    ) -> None:
        self.scenario = scenario
        self.profile = profile
        self._product = product
        self._probe = probe
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._asks = tuple(asks_of(scenario))
        self._requests = {ask.name: ask.request for ask in self._asks}
        self._over = probe.over
        self._ended_early: str | None = None

    async def play(self) -> Played:
        """Run it to its end.

        Raises:
            Exception: A defect of the world itself.
        """
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._note_defect)
        self._context = Context()
        self.clock = WorldClock(loop, loop.time())
        self.story = Story(self.clock)
        self.story.on_full = self.stop
        self.sites = {name: self._site(name) for name in self.scenario.receivers}
        self.network = Network(self.sites, self._context)
        strikes = Strikes(self)
        self._troubles = Troubles(self.scenario, self.clock, self.story, strikes.strike)
        self.story.listeners += [strikes.note_pass, self._note_replies]
        self.opened = self._product.open(self.scenario, self._parts())
        self._camera = Camera(self.story, self.sites, self.opened)
        self.cast = Cast(
            self.scenario,
            self.profile,
            self._probe,
            opened=self.opened,
            clock=self.clock,
            network=self.network,
            story=self.story,
        )
        await self.cast.start()
        self._schedule().begin(loop, self.clock.started_s, self._context)
        try:
            async with asyncio.timeout(self.scenario.run_for_s + 2 * _JUST_AFTER_S):
                await self._over.wait()
        except TimeoutError:
            pass
        return await self._end()

    def stop(self, reason: str) -> None:
        """End the world early."""
        if self._ended_early is None:
            self._ended_early = reason
            for replica in self.cast.ever:
                replica.kill()
            self._over.set()

    def names(self) -> Mapping[str, str]:
        """Return the operation ids that are known so far, by the requests' names."""
        derived = {
            ask.name: self.opened.operation_id(ask.key.strip())
            for ask in self._asks
            if ask.key is not None
        }
        return {**derived, **self.story.names}

    # Parts.

    def _parts(self) -> WorldParts:
        return WorldParts(
            clock=self.clock,
            network=self.network,
            tell=self.story.tell,
            meet=self._troubles.meet,
            index_lag_s=self._troubles.index_lag_s,
            later=self.later,
        )

    def _site(self, name: str) -> Site:
        described = self.scenario.receivers[name]

        def committed(key: str) -> None:
            self.story.tell(f"receiver:{name}", "committed", operation_id=key)

        receiver = Receiver(now_ms=self.clock.wall_ms, dedupe=False, on_commit=committed)
        script = Script(dedupe=described.does_dedupe, dedupe_window_s=described.dedupe_window_s)
        receiver.learn(name, script)
        return Site(receiver=receiver, turns=described.replies, lookups=described.lookups)

    def _note_replies(self, event: StoryEvent) -> None:
        name = CURRENT_REQUEST.get()
        if event.kind == "accepted" and name is not None and event.operation_id is not None:
            request = self._requests[name]
            if request.replies is not None:
                self.sites[request.destination].own_turns[event.operation_id] = request.replies

    # What happens when.

    def _schedule(self) -> Agenda:
        agenda = Agenda()
        for fault in self._troubles.timed:
            assert fault.at_s is not None
            agenda.put(fault.at_s, partial(self._troubles.begin, fault))
        for ask in self._asks:
            for at_s in ask.at_s:
                agenda.put(at_s, partial(self._ask, ask))
        plan = self.scenario.redrive
        for tick_s in ticks_s(plan, self.scenario.run_for_s):
            for place, replica in enumerate(self.cast.redrives.values()):
                agenda.put(tick_s + place * plan.stagger_s, partial(replica.begin, plan.life_s))
        asked = [expect.at_s for expect in self.scenario.expect]
        asked += [total.at_s for total in self.scenario.totals]
        for instant in dict.fromkeys(asked):
            if instant is not None:
                agenda.put(instant + _JUST_AFTER_S, partial(self._camera.take, instant))
        return agenda

    def at(self, at_s: float, act: Callable[[], object]) -> None:
        """Do something at an instant that was not known beforehand."""
        asyncio.get_running_loop().call_at(
            self.clock.started_s + at_s, act, context=self._context.copy()
        )

    def later(self, act: Callable[[], Awaitable[None]]) -> None:
        """Run an async function outside every replica."""

        async def run() -> None:
            try:
                await act()
            except Exception as defect:  # noqa: BLE001  raised again at the end
                self.story.defects.append(defect)

        task = asyncio.get_running_loop().create_task(run(), context=self._context.copy())
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop, context=self._context)

    def _ask(self, ask: Ask) -> None:
        async def send() -> None:
            CURRENT_REQUEST.set(ask.name)
            replica = ask.request.replica
            self.story.tell("client", "request", request=ask.name, replica=replica)
            answer = await self.cast.webs[replica].serve(client_of(ask))
            self._tell_answer(ask, answer)

        self.later(send)

    def _tell_answer(self, ask: Ask, answer: Answer) -> None:
        told = _decoded(answer.body)
        operation_id = told.get("id")
        left = None if answer.left_after_s is None else ask.request.client.how.value
        self.story.tell(
            "client",
            "answer",
            operation_id=operation_id,
            request=ask.name,
            status=answer.status,
            state=told.get("state"),
            stored=operation_id in self.opened.rows(),
            left=left,
        )

    # The end.

    def _note_defect(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        # Only what a callback raised: a task nobody awaits is told of whenever it is collected.
        if "handle" in context and isinstance(context.get("exception"), Exception):
            self.story.defects.append(context["exception"])

    async def _end(self) -> Played:
        end = self._camera.now(self.scenario.run_for_s)
        names = self.names()
        self.story.listeners.clear()
        for replica in self.cast.ever:
            replica.end()
        for task in tuple(self._tasks):
            task.cancel()
        for site in self.sites.values():
            await site.receiver.aclose()
        if self.story.defects:
            raise self.story.defects[0]
        return Played(
            scenario=self.scenario,
            story=self.story,
            end=end,
            photographs=self._camera.photographs,
            names=names,
            startup_errors=tuple(self.cast.startup_errors),
            ended_early=self._ended_early,
        )


def _decoded(body: bytes) -> dict[str, Any]:
    try:
        decoded = json.loads(body)
    except ValueError:
        return {}
    if not isinstance(decoded, dict):
        return {}
    return {name: value for name, value in decoded.items() if isinstance(value, str)}
