"""The cut of a coroutine whose task does not exist yet, as with tasks that start eagerly."""

import asyncio
import contextvars

import pytest

from platform_sim.lifetime.clock import Clock
from platform_sim.lifetime.cut import EndReason
from platform_sim.lifetime.ending import Ending
from platform_sim.lifetime.gate import Gate
from platform_sim.lifetime.narrator import Narrator
from platform_sim.lifetime.profile import CutMode
from platform_sim.lifetime.registry import Registry
from platform_sim.view.event import EventKind
from platform_sim.view.recorder import Recorder
from tests.support.virtual import run_virtual


async def work() -> None:
    """Be some work."""


@pytest.mark.parametrize("mode", [CutMode.CANCEL, CutMode.KILL])
def test_what_has_no_task_yet_is_killed_and_cannot_be_cancelled(mode: CutMode) -> None:
    """Cancelling needs a task; when the grace ends it is killed like all else."""
    recorder = Recorder()
    gate = Gate()
    killed: list[float] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        clock = Clock(loop, loop.time())
        app = gate.admit(work(), None)
        ending = Ending(
            EndReason.SHUTDOWN,
            mode,
            gate=gate,
            registry=Registry(gate),
            app=app,
            window=None,
            narrator=Narrator("1", clock, recorder),
        )
        ending.cut(
            clock,
            grace_s=0.1,
            outside=contextvars.Context(),
            on_killed=lambda: killed.append(loop.time()),
        )
        await asyncio.sleep(1.0)
        ending.finish()

    run_virtual(main)

    assert killed == [0.1 if mode is CutMode.CANCEL else 0.0]
    (cut,) = recorder.of(EventKind.CUT)
    assert cut.fields["text"] == f"{mode} at 0.0 (shutdown): the app call"
    assert len(recorder.of(EventKind.APP_KILLED)) == 1
