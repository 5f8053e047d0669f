"""Strikes: what a fault does to replicas, receivers, passes and rows, at its instant.

Rules: a strike happens inside the code that reached its point, or in the world's own; it never
awaits there. What needs time (a TERM, a restart) goes on in the world.

Not here: when a fault strikes (`troubles`), trouble with the store (the product's wiring).
"""

import asyncio
from typing import TYPE_CHECKING, Any

from platform_sim.lab.scenario.faults import Act, Fault
from platform_sim.lab.scenario.story import StoryEvent

if TYPE_CHECKING:
    from platform_sim.lab.scenario.world import World

__all__ = ["Strikes"]


class Strikes:
    """Does what faults say, in one world."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._passes: dict[str, asyncio.Task[Any]] = {}

    def note_pass(self, event: StoryEvent) -> None:
        """Remember the task of each operation's latest pass."""
        task = asyncio.current_task() if event.kind == "pass_started" else None
        if task is not None and event.operation_id is not None:
            self._passes[event.operation_id] = task

    def strike(self, fault: Fault, event: StoryEvent | None) -> None:
        """Do what a fault says."""
        match fault.do:
            case Act.DOWN | Act.UP:
                self._strike_receiver(fault)
            case Act.CANCEL | Act.BREAK_ROW:
                self._strike_operation(fault, event)
            case _:
                self._strike_replica(fault)

    def _strike_receiver(self, fault: Fault) -> None:
        assert fault.receiver is not None
        receiver = self._world.sites[fault.receiver].receiver
        receiver.down = fault.do is Act.DOWN
        if receiver.down and fault.until_s is not None:
            self._world.at(fault.until_s, lambda: setattr(receiver, "down", False))

    def _strike_operation(self, fault: Fault, event: StoryEvent | None) -> None:
        assert fault.operation is not None
        known = self._world.names()
        operation_id = known.get(fault.operation) or (event.operation_id if event else None)
        if operation_id is None:
            return
        if fault.do is Act.BREAK_ROW:
            if operation_id in self._world.opened.rows():
                self._world.opened.break_row(operation_id, fault.attributes)
        elif operation_id in self._passes:
            self._passes[operation_id].cancel()

    def _strike_replica(self, fault: Fault) -> None:
        assert fault.replica is not None
        world, name = self._world, fault.replica
        replica = world.cast.replicas()[name]
        match fault.do:
            case Act.KILL:
                replica.kill()
                self._replace_later(fault)
            case Act.FREEZE:
                replica.freeze()
            case Act.THAW:
                replica.thaw()
            case Act.TERM:
                grace_s = fault.grace_s
                if grace_s is None:
                    grace_s = world.profile.shutdown_grace_s
                world.later(lambda: replica.term(grace_s))
                self._replace_later(fault)
            case _:
                world.cast.clocks[name].skew_s = fault.by_s

    def _replace_later(self, fault: Fault) -> None:
        world, name = self._world, fault.replica
        if fault.back_after_s is not None and name in world.cast.webs:
            world.at(
                world.clock.now_s() + fault.back_after_s,
                lambda: world.later(lambda: world.cast.start_web(name)),
            )
