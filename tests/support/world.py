"""A world for journeys: app, redrive and a scripted, deduplicating receiver on virtual time."""

from dataclasses import dataclass, field

import anyio

from handler.destinations import Destination
from handler.settings import Settings
from platform_sim.world.receiver import Receiver
from platform_sim.world.script import Commit, Script, Step, Then
from tests.support.apps import URL, Setting, no_jitter
from tests.support.clock import EPOCH_MS, LoopClock
from tests.support.senders import ReceiverSender
from tests.support.transports import Fate

__all__ = ["World", "answers", "kill", "silent"]


def answers(
    status: int = 200, *, after_s: float = 0.0, headers: dict[str, str] | None = None
) -> Step:
    """Return a step that answers; a 2xx commits just before."""
    return Step(status=status, delay_s=after_s, headers=headers or {})


def silent(commit: Commit = Commit.NEVER, *, after_s: float = 0.0) -> Step:
    """Return a step that never answers; its effect, if any, happens at arrival or after a delay."""
    return Step(then=Then.HANG, commit=commit, delay_s=after_s)


@dataclass(slots=True, kw_only=True)
class World:
    """One receiver at destination `a`, one store, any number of replicas.

    Attributes:
        steps: What the receiver does, request by request of one key.
        settings: Of app and redrive.
        idempotent: What destination `a` says about itself.
        dedupe: Whether the receiver recognises a key.
    """

    steps: tuple[Step, ...] = (Step(),)
    settings: Settings = field(default_factory=no_jitter)
    idempotent: bool = True
    dedupe: bool = True
    receiver: Receiver = field(init=False)
    setting: Setting = field(init=False)

    def __post_init__(self) -> None:
        clock = LoopClock()
        self.receiver = Receiver(now_ms=clock.wall_ms, sleep=anyio.sleep, dedupe=self.dedupe)
        self.receiver.learn("a", Script(steps=self.steps))
        self.setting = Setting(
            settings=self.settings,
            destinations={"a": Destination(url=URL, idempotent=self.idempotent)},
            clock=clock,
            sender=ReceiverSender(self.receiver),
        )

    @property
    def wire(self) -> int:
        """Return how many requests reached the receiver."""
        return len(self.receiver.ledger.requests)

    @property
    def effects(self) -> dict[str, int]:
        """Return how often each key had its effect."""
        return dict(+self.receiver.effects.counts)

    @property
    def arrivals_s(self) -> list[float]:
        """Return when each request arrived, in seconds of virtual time."""
        return [(entry.at_ms - EPOCH_MS) / 1000 for entry in self.receiver.ledger.requests]

    async def until(self, at_s: float) -> None:
        """Let time pass until an instant."""
        await anyio.sleep(at_s - anyio.current_time())

    async def redrive_to_rest(self, *, every_s: float = 60.0, runs: int = 20) -> int:
        """Run redrive on a schedule until nothing waits; return how many runs it took."""
        for run in range(1, runs + 1):
            await anyio.sleep(every_s - anyio.current_time() % every_s)
            await self.setting.redrive()
            if all(marker.settled_at_ms is not None for marker in self.setting.markers()):
                return run
        raise AssertionError(f"not at rest after {runs} runs: {self.setting.markers()}")


def kill(world: World) -> None:
    """Stop a process: its tasks end, and none of their writes reach the store any more."""
    world.setting.transport.fault = lambda _: Fate(delay_s=float("inf"))
    for task in world.setting.platform.tasks:
        task.cancel()
