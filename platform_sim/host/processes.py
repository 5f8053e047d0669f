"""Processes: a supervisor that starts children in order, keeps them alive and stops them all.

Its rules:

- A child is started when the one before it is ready. If one fails, those started are stopped.
- A child that dies is started again after a short pause that doubles while it keeps dying; one that
  must not be (its memory is gone with it) is reported with what that means.
- Stopping asks tier by tier, the highest first, so that what needs the store ends before the store.
  Whoever does not end within the grace is killed.
- Nobody outlives the supervisor, however it ends: children watch its lifeline.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby

from platform_sim.host.child import Child, ChildSpec, describe_exit
from platform_sim.host.errors import ChildError
from platform_sim.host.lifeline import Lifeline
from platform_sim.host.ready import Ready

__all__ = ["SUPERVISOR", "Say", "Supervisor", "Timing"]

Say = Callable[[str, str], None]
"""Gets a role and one line: what that child wrote, or what happened to it."""

SUPERVISOR = "outlast"
"""The role under which the supervisor itself speaks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """How long the supervisor waits, all in seconds.

    Attributes:
        ready_s: For a child's ready line.
        grace_s: From asking a child to end until it is killed.
        pause_s: Before a child that died is started again, the first time.
        pause_cap_s: The longest such pause.
        settled_s: A child that lived this long starts over with the first pause.
    """

    ready_s: float = 30.0
    grace_s: float = 5.0
    pause_s: float = 0.2
    pause_cap_s: float = 5.0
    settled_s: float = 10.0


class Supervisor:
    """Starts, watches and stops children.

    Args:
        say: Told everything that happens.
        timing: How long it waits for what.
    """

    def __init__(self, say: Say, *, timing: Timing | None = None) -> None:
        self.timing = timing or Timing()
        self._say = say
        self._lifeline = Lifeline()
        self._children: dict[str, Child] = {}
        self._keepers: dict[str, asyncio.Task[None]] = {}

    async def start(self, spec: ChildSpec) -> Ready:
        """Start a child and watch over it from now on.

        Raises:
            ChildError: It did not become ready; it is stopped.
        """
        child, ready = await self._start(spec)
        self._keepers[spec.role] = asyncio.ensure_future(self._keep(child))
        return ready

    async def run(self, spec: ChildSpec, *, within_s: float) -> None:
        """Run a child that ends by itself, such as a check before others start.

        Raises:
            ChildError: It failed, or took longer than that many seconds.
        """
        child = await self._spawn(spec)
        await child.success(within_s)

    def pid(self, role: str) -> int:
        """Return the process id of the child that has this role now."""
        return self._children[role].pid

    async def stop(self) -> None:
        """Stop every child, the highest tier first; bounded by one grace for each tier."""
        for keeper in self._keepers.values():
            keeper.cancel()
        await asyncio.gather(*self._keepers.values(), return_exceptions=True)
        children = sorted(self._children.values(), key=_tier, reverse=True)
        for _, together in groupby(children, key=_tier):
            await asyncio.gather(*(child.stop(self.timing.grace_s) for child in together))
        self._lifeline.close()

    def kill(self) -> None:
        """Kill every child at once: for whoever will not wait for `stop`."""
        for child in self._children.values():
            child.kill()

    async def _spawn(self, spec: ChildSpec) -> Child:
        def hear(line: str) -> None:
            self._say(spec.role, line)

        child = self._children[spec.role] = await Child.spawn(spec, self._lifeline, hear)
        return child

    async def _start(self, spec: ChildSpec) -> tuple[Child, Ready]:
        child = await self._spawn(spec)
        try:
            return child, await child.ready(self.timing.ready_s)
        except ChildError:
            await child.stop(self.timing.grace_s)
            raise

    async def _keep(self, child: Child) -> None:
        loop = asyncio.get_running_loop()
        spec, pause_s = child.spec, self.timing.pause_s
        while True:
            started = loop.time()
            end = describe_exit(await child.wait())
            if not spec.restart:
                self._say(SUPERVISOR, f"{spec.role} ({child.pid}) {end}. {spec.loss}")
                return
            if loop.time() - started >= self.timing.settled_s:
                pause_s = self.timing.pause_s
            lost = f". {spec.loss}" if spec.loss else ""
            again = f"starting it again in {pause_s:g} s"
            self._say(SUPERVISOR, f"{spec.role} ({child.pid}) {end}; {again}{lost}")
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, self.timing.pause_cap_s)
            try:
                child, ready = await self._start(spec)
            except ChildError as failed:
                self._say(SUPERVISOR, str(failed))
                child = self._children[spec.role]
            else:
                self._say(SUPERVISOR, f"{spec.role} is back ({ready.pid})")


def _tier(child: Child) -> int:
    return child.spec.tier
