"""Killing what a trial cuts: a request or a run, all of its tasks, for good.

Rules: no further line of it runs. A request whose cut by the platform is under way already (it was
cancelled, and is in its grace) is killed as well.

Not here: when (`cutter`).
"""

import asyncio

from platform_sim.lifetime.cut import EndReason
from platform_sim.lifetime.gate import Gate, GateState
from platform_sim.lifetime.invocation import Invocation
from platform_sim.lifetime.profile import CutMode
from platform_sim.lifetime.residue import drop_residue

__all__ = ["kill_gate", "kill_request"]


def kill_request(invocation: Invocation) -> None:
    """Kill a request."""
    invocation.end(EndReason.KILLED, CutMode.KILL)
    if invocation.gate.state is not GateState.KILLED:
        kill_gate(invocation.gate)


def kill_gate(gate: Gate) -> None:
    """Kill everything behind a gate."""
    drop_residue(asyncio.get_running_loop(), gate, gate.kill())
