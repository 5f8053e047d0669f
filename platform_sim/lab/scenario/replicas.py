"""Replicas of a world: processes that exist only as coroutines, and can be killed, frozen, stopped.

Rules: a kill lets no further line of the replica run and closes its connections; a freeze steps
nothing of it and keeps them; TERM gives what runs its grace and then kills. A web replica that is
gone refuses connections until it is replaced; one that is frozen keeps them waiting.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import Context
from typing import Any

from starlette.middleware.base import BaseHTTPMiddleware

from platform_sim.lab.scenario.lifespan import Lifespan, shut
from platform_sim.lab.scenario.probe import OnRequest, OnRun
from platform_sim.lab.scenario.story import Story
from platform_sim.lifetime.births import CURRENT_GATE, mind_births
from platform_sim.lifetime.cut import EndReason
from platform_sim.lifetime.emulator import App, Emulator
from platform_sim.lifetime.frozen import freeze, thaw
from platform_sim.lifetime.gate import Gate, GateState
from platform_sim.lifetime.profile import CutMode, Profile
from platform_sim.lifetime.wait_until import EXTENSION
from platform_sim.view.event import Event
from platform_sim.world.clients import Answer, Client
from platform_sim.world.clocks import ReplicaClock
from platform_sim.world.network import Network

__all__ = ["RedriveReplica", "WebReplica", "with_middlewares", "without_lifetime"]


class WebReplica:
    """One web process: an app under the emulator.

    Attributes:
        startup_error: Why the app refused to start, or None.
    """

    def __init__(
        self,
        name: str,
        app: App,
        *,
        profile: Profile,
        clock: ReplicaClock,
        network: Network,
        story: Story,
        on_request: OnRequest | None = None,
    ) -> None:
        self.startup_error: str | None = None
        self._name = name
        self._profile = profile
        self._clock = clock
        self._network = network
        self._story = story
        self._emulator = Emulator(app, profile=profile, observer=self, on_start=on_request)
        self._taking = False
        self._awake = asyncio.Event()
        self._awake.set()
        self._draining = False
        self._lifespan = Lifespan(self._emulator)

    def observe(self, event: Event) -> None:
        """Pass the platform's events on to the story."""
        fields = {**event.fields, "invocation": event.invocation_id}
        self._story.tell(self._name, f"platform_{event.kind.value}", **fields)

    async def start(self) -> None:
        """Run the app's start-up."""
        self._taking = await self._lifespan.start()
        self.startup_error = self._lifespan.refusal
        if self.startup_error is not None:
            self._story.tell(self._name, "startup_refused", message=self.startup_error)

    async def serve(self, client: Client) -> Answer:
        """Serve one client; a replica that is gone refuses the connection."""
        if not self._taking:
            return Answer(status=None)
        return await client.ask(self._serve)

    async def _serve(self, scope: Any, receive: Any, send: Any) -> None:
        await self._awake.wait()
        if self._taking or self._draining:
            await self._emulator(scope, receive, send)

    def kill(self) -> None:
        """Let no further line of it run, of its lifespan neither."""
        self._cut()
        self._lifespan.kill()

    def _cut(self) -> None:
        """Kill the requests and close the connections; the lifespan is as it was."""
        self._taking = self._draining = False
        self._clock.thaw()
        self._awake.set()
        for invocation in self._emulator.alive:
            thaw(asyncio.get_running_loop(), invocation.gate)
            invocation.end(EndReason.KILLED, mode=CutMode.KILL)
            if invocation.gate.state is not GateState.KILLED:  # in its grace after a cancellation
                shut(invocation.gate)
        self._network.hang_up(self._name)

    def freeze(self) -> None:
        """Step nothing of it."""
        self._clock.freeze()
        self._awake.clear()
        for invocation in self._emulator.alive:
            freeze(asyncio.get_running_loop(), invocation.gate)
        self._lifespan.freeze()

    def thaw(self) -> None:
        """Let it go on."""
        self._clock.thaw()
        self._lifespan.thaw()
        for invocation in self._emulator.alive:
            thaw(asyncio.get_running_loop(), invocation.gate)
        self._awake.set()

    async def term(self, grace_s: float) -> None:
        """Stop taking requests, give what runs its grace, kill it and run the app's shutdown."""
        self._draining, self._taking = self._taking, False
        await self._emulator.drain(within_s=grace_s)
        self._cut()
        await self._lifespan.close()

    def end(self) -> None:
        """Stop with the world: what the world's loop still finds of the lifespan, it cancels."""
        if self._lifespan.frozen:
            self._lifespan.kill()
        self._cut()


class RedriveReplica:
    """One place where the scheduled function runs, a run at a time."""

    def __init__(
        self,
        name: str,
        run: Callable[[], Awaitable[None]],
        *,
        clock: ReplicaClock,
        network: Network,
        story: Story,
        on_run: OnRun | None = None,
    ) -> None:
        self._name = name
        self._run = run
        self._on_run = on_run
        self._clock = clock
        self._network = network
        self._story = story
        self._frozen = False
        self._gate: Gate | None = None
        self._task: asyncio.Future[None] | None = None

    def begin(self, life_s: float | None) -> None:
        """Begin a run, cancelled after `life_s`; skipped while the last runs, or frozen."""
        if self._frozen or (self._task is not None and not self._task.done()):
            self._story.tell(self._name, "run_skipped")
            return
        loop = asyncio.get_running_loop()
        mind_births(loop)
        self._gate = gate = Gate()
        context = Context()
        context.run(CURRENT_GATE.set, gate)
        self._story.tell(self._name, "run_started")
        if self._on_run is not None:
            self._on_run(gate, self.kill)
        self._task = task = loop.create_task(_finish(self._run), context=context)
        task.add_done_callback(self._ended)
        if life_s is not None:
            timer = loop.call_later(life_s, self._expire, task)
            task.add_done_callback(lambda _: timer.cancel())

    def _expire(self, task: "asyncio.Future[None]") -> None:
        self._story.tell(self._name, "run_cut")
        task.cancel()

    def _ended(self, task: "asyncio.Future[None]") -> None:
        failed = None if task.cancelled() else task.exception()
        self._story.tell(self._name, "run_ended", error=repr(failed) if failed else None)

    def kill(self) -> None:
        """Let no further line of the run under way happen."""
        self._frozen = False
        self._clock.thaw()
        if self._gate is not None and self._task is not None and not self._task.done():
            shut(self._gate)
            self._task = None
            self._network.hang_up(self._name)

    def freeze(self) -> None:
        """Step nothing of it."""
        self._frozen = True
        self._clock.freeze()
        if self._gate is not None:
            freeze(asyncio.get_running_loop(), self._gate)

    def thaw(self) -> None:
        """Let it go on."""
        self._frozen = False
        self._clock.thaw()
        if self._gate is not None:
            thaw(asyncio.get_running_loop(), self._gate)

    async def term(self, grace_s: float) -> None:
        """Cancel the run under way, give it its grace, then kill."""
        task = self._task
        if task is not None and not task.done():
            task.cancel()
            await asyncio.wait([task], timeout=grace_s)
        self.kill()

    def end(self) -> None:
        """Stop with the world."""
        self.kill()


async def _finish(run: Callable[[], Awaitable[None]]) -> None:
    await run()


def without_lifetime(app: App) -> App:
    """Wrap an app so that it never sees the lifetime extension."""

    async def wrapped(scope: Any, receive: Any, send: Any) -> None:
        extensions = dict(scope.get("extensions") or {})
        extensions.pop(EXTENSION, None)
        await app({**scope, "extensions": extensions}, receive, send)

    return wrapped


def with_middlewares(app: App, count: int) -> App:
    """Put pass-through BaseHTTPMiddlewares before an app."""

    async def pass_through(request: Any, call_next: Any) -> Any:
        return await call_next(request)

    for _ in range(count):
        app = BaseHTTPMiddleware(app, dispatch=pass_through)
    return app
