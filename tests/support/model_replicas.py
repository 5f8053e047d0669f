"""Replicas of a model world: the lab's, each of whose resumptions can be a point where it ends."""

from collections.abc import Callable
from typing import Any

from handler.outcome import NoAnswer, NotSent, Reply, Result
from handler.sender import Request, Trace
from platform_sim.lab.scenario.replicas import RedriveReplica, WebReplica
from platform_sim.lab.scenario.story import Story
from platform_sim.lifetime.emulator import App, Emulator
from platform_sim.lifetime.gate import Stepper
from platform_sim.lifetime.invocation import Invocation
from platform_sim.lifetime.profile import Profile
from platform_sim.world.network import Broken, Network, Unreachable

__all__ = ["NetworkSender", "SteppedRedrive", "SteppedWeb"]

OnStep = Callable[[Stepper], None]


class SteppedWeb(WebReplica):
    """A web replica that tells of every resumption of its requests' code."""

    def __init__(
        self, name: str, app: App, *, profile: Profile, on_step: OnStep, **parts: Any
    ) -> None:
        super().__init__(name, app, profile=profile, **parts)
        self.name = name

        def on_start(invocation: Invocation) -> None:
            invocation.gate.before_step = on_step

        self._emulator = Emulator(app, profile=profile, observer=self, on_start=on_start)


class SteppedRedrive(RedriveReplica):
    """A redrive replica that tells of every resumption of its run's code."""

    def __init__(self, name: str, run: Any, *, on_step: OnStep, **parts: Any) -> None:
        super().__init__(name, run, **parts)
        self.name = name
        self._on_step = on_step

    @property
    def is_running(self) -> bool:
        """Whether a run is under way."""
        return self._task is not None and not self._task.done()

    def begin(self, life_s: float | None) -> None:
        """Begin a run, cancelled after `life_s`."""
        super().begin(life_s)
        if self._gate is not None:
            self._gate.before_step = self._on_step


class NetworkSender:
    """A sender into the world's network; it tells the instant a byte of a request leaves."""

    def __init__(self, network: Network, story: Story, replica: str) -> None:
        self._network = network
        self._story = story
        self._replica = replica

    async def send(self, request: Request, trace: Trace) -> Result:
        """Send once."""
        key = request.headers.get("idempotency-key", "")

        def byte_leaves() -> None:
            trace.byte_left = True
            self._story.tell(self._replica, "byte_left", operation_id=key or None)

        try:
            reply = await self._network.request(
                replica=self._replica,
                method=request.method,
                url=request.url,
                key=key,
                body=request.body or b"",
                byte_leaves=byte_leaves,
            )
        except Unreachable as error:
            return NotSent(reason=str(error))
        except Broken as error:
            return NoAnswer(reason=str(error))
        headers = {name.lower(): value for name, value in reply.headers.items()}
        return Reply(status=reply.status, headers=headers)

    async def aclose(self) -> None:
        """Close every connection."""
        self._network.hang_up(self._replica)
