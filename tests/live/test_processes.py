"""The supervisor and its children, with real processes as small as they can be."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from platform_sim.host.child import ChildSpec
from platform_sim.host.errors import ChildError
from platform_sim.host.processes import Supervisor, Timing
from tests.support.processes import alive, poll

pytestmark = pytest.mark.live

READY = 'import os, sys, time; print(\'{"ready": "x", "pid": %d}\' % os.getpid(), flush=True)\n'
WAIT = "time.sleep(600)\n"
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
QUICK = Timing(ready_s=10, grace_s=5, pause_s=0.01, pause_cap_s=0.02, settled_s=0)


def child(
    code: str, *, role: str = "x", tier: int = 0, restart: bool = True, loss: str = ""
) -> ChildSpec:
    """Return a child that runs a few lines of Python."""
    argv = (sys.executable, "-S", "-c", code)
    return ChildSpec(
        role=role, argv=argv, environment=os.environ, tier=tier, restart=restart, loss=loss
    )


class Heard(list[tuple[str, str]]):
    """Everything a supervisor said."""

    def say(self, role: str, line: str) -> None:
        """Note one line."""
        self.append((role, line))

    async def until(self, text: str) -> str:
        """Wait until a line holds `text` and return it."""
        async with asyncio.timeout(10):
            while True:
                for _, line in self:
                    if text in line:
                        return line
                await asyncio.sleep(0.01)


@asynccontextmanager
async def supervising(timing: Timing = QUICK) -> AsyncIterator[tuple[Supervisor, Heard]]:
    """Have a supervisor and stop it at the end."""
    heard = Heard()
    supervisor = Supervisor(heard.say, timing=timing)
    try:
        yield supervisor, heard
    finally:
        await supervisor.stop()


def run(main: Callable[[], Awaitable[None]]) -> None:
    """Run a test's coroutine."""
    asyncio.run(asyncio.wait_for(main(), 30))


def test_a_child_is_started_when_it_says_so_and_stopped_with_the_supervisor() -> None:
    """The ready line carries its pid; afterwards there is no such process."""
    pids: list[int] = []

    async def main() -> None:
        async with supervising() as (supervisor, _):
            ready = await supervisor.start(child(READY + WAIT))
            pids.extend((ready.pid, supervisor.pid("x")))

    run(main)

    assert pids[0] == pids[1]
    assert not alive(pids[0])


def test_what_a_child_writes_is_passed_on() -> None:
    """Lines of stdout and stderr come with the child's role; the ready line does not."""

    async def main() -> None:
        code = "print('early')\n" + READY + "print('late', file=sys.stderr, flush=True)\n" + WAIT
        async with supervising() as (supervisor, heard):
            await supervisor.start(child(code))
            await heard.until("late")

        assert set(heard) == {("x", "early"), ("x", "late")}

    run(main)


def test_a_line_too_long_to_hold_does_not_stop_the_listening() -> None:
    """A child must never block on a pipe that nobody reads."""

    async def main() -> None:
        code = READY + "print('y' * 3_000_000); print('after', flush=True)\n" + WAIT
        async with supervising() as (supervisor, heard):
            await supervisor.start(child(code))
            await heard.until("after")

    run(main)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import sys; sys.exit('no such table')", r"x ended with exit code 1 before it was ready"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", r"x was killed by SIGKILL"),
        ("import time; time.sleep(600)", r"x was not ready within 0\.3 s"),
    ],
)
def test_a_child_that_does_not_become_ready_is_reported_and_gone(code: str, message: str) -> None:
    """The message says what it did instead and shows its last words."""

    async def main() -> None:
        async with supervising(Timing(ready_s=0.3 if "600" in code else 10)) as (supervisor, _):
            with pytest.raises(ChildError, match=message) as failed:
                await supervisor.start(child(code))

            assert ("no such table" in str(failed.value)) == ("no such table" in code)
            assert not alive(supervisor.pid("x"))

    run(main)


def test_a_child_that_dies_is_started_again() -> None:
    """The message names signal and pause; the new process has the old role."""

    async def main() -> None:
        async with supervising() as (supervisor, heard):
            first = (await supervisor.start(child(READY + WAIT))).pid
            os.kill(first, signal.SIGKILL)
            await heard.until("is back")
            second = supervisor.pid("x")

            assert (second != first, alive(first), alive(second)) == (True, False, True)
            assert heard[0][1] == (
                f"x ({first}) was killed by SIGKILL; starting it again in 0.01 s"
            )

    run(main)


def test_a_child_that_cannot_start_again_is_tried_with_growing_pauses(tmp_path: Path) -> None:
    """It comes back when the cause is gone, without anybody's help."""
    broken = tmp_path / "broken"

    async def main() -> None:
        code = f"import os, sys\nif os.path.exists({str(broken)!r}): sys.exit('still broken')\n"
        async with supervising(Timing(pause_s=0.01, pause_cap_s=0.03)) as (supervisor, heard):
            first = (await supervisor.start(child(code + READY + WAIT))).pid
            broken.touch()
            os.kill(first, signal.SIGKILL)
            await heard.until("again in 0.03 s")
            broken.unlink()
            await heard.until("is back")

            pauses = [line.split()[-2] for _, line in heard if "starting it again" in line]
            assert pauses[:3] == ["0.01", "0.02", "0.03"]
            assert any("still broken" in line for role, line in heard if role == "outlast")

    run(main)


def test_a_child_whose_memory_is_lost_is_not_started_again() -> None:
    """An empty store would pass for the real one; people are told instead."""

    async def main() -> None:
        async with supervising() as (supervisor, heard):
            spec = child(READY + WAIT, restart=False, loss="What it held is gone")
            pid = (await supervisor.start(spec)).pid
            os.kill(pid, signal.SIGTERM)
            line = await heard.until("gone")

        assert line == f"x ({pid}) was killed by SIGTERM. What it held is gone"

    run(main)


def test_a_child_that_comes_back_without_its_memory_says_so() -> None:
    """A receiver that forgot its keys would otherwise look like the one before."""

    async def main() -> None:
        async with supervising() as (supervisor, heard):
            spec = child(READY + WAIT, loss="What it held is gone")
            pid = (await supervisor.start(spec)).pid
            os.kill(pid, signal.SIGTERM)
            line = await heard.until("gone")

        assert line.startswith(f"x ({pid}) was killed by SIGTERM; starting it again in ")
        assert line.endswith(" s. What it held is gone")

    run(main)


def test_children_stop_tier_by_tier_the_highest_first(tmp_path: Path) -> None:
    """What uses the store ends before the store does."""
    order = tmp_path / "order"

    def noting(role: str) -> str:
        return (
            "import signal\ndef end(*_):\n"
            f"    open({str(order)!r}, 'a').write('{role} ')\n    raise SystemExit\n"
            "signal.signal(signal.SIGTERM, end)\n" + READY + WAIT
        )

    async def main() -> None:
        async with supervising() as (supervisor, _):
            await supervisor.start(child(noting("store"), role="store"))
            await supervisor.start(child(noting("web"), role="web", tier=1))

    run(main)

    assert order.read_text() == "web store "


def test_a_child_that_will_not_end_is_killed_with_what_it_started(tmp_path: Path) -> None:
    """No orphan, also no grandchild."""
    pids = tmp_path / "pids"
    code = STUBBORN + "import subprocess\n" + READY.replace("print(", "pass; print(", 1)
    grandchild = (
        f"p = subprocess.Popen(['sleep', '600']); open({str(pids)!r}, 'w').write(str(p.pid))\n"
    )

    async def main() -> None:
        async with supervising(Timing(grace_s=0.1)) as (supervisor, _):
            await supervisor.start(child(code.replace("pass; ", grandchild, 1) + WAIT))

    run(main)

    assert poll(lambda: not alive(int(pids.read_text())))


def test_killing_waits_for_nobody() -> None:
    """The second Ctrl-C."""

    async def main() -> None:
        async with supervising(Timing(grace_s=60)) as (supervisor, _):
            await supervisor.start(child(STUBBORN + READY + WAIT))
            supervisor.kill()

    run(main)


@pytest.mark.parametrize(
    ("code", "within_s", "message"),
    [
        ("print('done')", 10, None),
        ("import sys; sys.exit('not atomic')", 10, r"(?s)x ended with exit code 1.*not atomic"),
        ("import time; time.sleep(600)", 0.2, r"x did not end within 0\.2 s"),
    ],
)
def test_a_step_must_end_by_itself_and_well(
    code: str, within_s: float, message: str | None
) -> None:
    """A check that fails stops everything that would rely on it."""

    async def main() -> None:
        async with supervising() as (supervisor, _):
            if message is None:
                await supervisor.run(child(code), within_s=within_s)
            else:
                with pytest.raises(ChildError, match=message):
                    await supervisor.run(child(code), within_s=within_s)

    run(main)


def test_nobody_outlives_a_supervisor_that_is_killed() -> None:
    """The lifeline reaches children that no signal reaches any more."""
    code = f"""
import asyncio, os, sys
from platform_sim.host.child import ChildSpec
from platform_sim.host.processes import Supervisor
child = '''from platform_sim.host.lifeline import watch_lifeline
watch_lifeline()
{READY}{WAIT}'''
async def main():
    spec = ChildSpec(role="x", argv=(sys.executable, "-c", child), environment=os.environ)
    print((await Supervisor(print).start(spec)).pid, flush=True)
    await asyncio.sleep(600)
asyncio.run(main())
"""
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
    ) as supervisor:
        assert supervisor.stdout is not None
        pid = int(supervisor.stdout.readline())
        before = alive(pid)
        supervisor.kill()

        assert before
        assert poll(lambda: not alive(pid))
