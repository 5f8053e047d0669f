"""Code that blocks the event loop costs its own pass: budget and ceiling go on meanwhile.

Real time: on virtual time nothing can stall. What is asserted holds however slow the machine is.
"""

import asyncio
import time
from dataclasses import replace

from handler.budget import Deadline, SystemClock
from handler.destinations import Operation
from handler.outcome import Outcome
from platform_sim.host.stall import watching_stalls
from platform_sim.lifetime.emulator import Emulator
from platform_sim.lifetime.profile import WORKERS
from platform_sim.view.event import EventKind
from platform_sim.view.recorder import Recorder
from storage.states import State
from tests.support.apps import Setting, call, no_jitter
from tests.support.clock import LoopClock
from tests.support.processes import until

STALL_S = 0.3


class RealClock(LoopClock, SystemClock):
    """The machine's clocks, for a setting that keeps virtual ones otherwise."""

    def wall_ms(self) -> int:
        """Return epoch milliseconds."""
        return SystemClock.wall_ms(self)


def test_a_stall_is_charged_to_the_budget_of_its_pass() -> None:
    """The pass has that much less for everything after, and stops when there is nothing left."""
    left_s: list[tuple[float, float]] = []

    async def deliver(operation: Operation, budget: Deadline) -> Outcome:
        del operation
        before_s = budget.remaining_s()
        time.sleep(STALL_S)  # noqa: ASYNC251  blocking is the point
        left_s.append((before_s, budget.remaining_s()))
        return Outcome.UNDELIVERED

    recorder = Recorder()
    setting = Setting(
        settings=no_jitter(
            budget_s=1.0, reserve_s=0.2, min_pass_s=0.1, backoff_base_s=0.01, backoff_cap_s=0.02
        ),
        destinations={"a": deliver},
        clock=RealClock(),
    )

    async def main() -> None:
        profile = replace(WORKERS, allowance_s=1.5)
        emulator = Emulator(setting.app(), profile=profile, observer=recorder)
        with watching_stalls(STALL_S / 6, emulator):
            await call(emulator, "POST", "/operations", body=b'{"destination":"a","payload":1}')
            await until(lambda: not emulator.alive, what="the end of the pass")
            await until(lambda: recorder.of(EventKind.STALL), what="the report")

    asyncio.run(main())

    assert all(after_s <= before_s - STALL_S for before_s, after_s in left_s)
    assert left_s[0][0] <= 1.0
    assert 1 <= len(left_s) <= 3  # of 0.3 s each, in a budget of 0.8 s without the reserve
    assert setting.marker().state is State.UNDELIVERED
    stalls = [each for each in recorder.of(EventKind.STALL) if each.fields["file"] == __file__]
    assert {stall.fields["function"].rpartition(".")[2] for stall in stalls} == {"deliver"}
    assert {stall.invocation_id for stall in stalls} == {"1"}
