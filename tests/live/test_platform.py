"""A platform comes up in order or not at all, and goes down whatever happens meanwhile."""

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from platform_sim.host.errors import ChildError
from platform_sim.host.options import LocalOptions
from platform_sim.host.platform import run_until_stopped
from platform_sim.wiring.local import local_topology
from tests.support.processes import children, poll

pytestmark = pytest.mark.live

FREE = LocalOptions(web_port=0, store_port=0, receiver_port=0, ceiling_s=3.0)


def run(
    folder: Path, *, app: str | None = None, heard: Callable[[str], None], up: Callable[[], None]
) -> str:
    """Run a platform until it is stopped; `heard` gets the role of each line that is said."""
    topology = local_topology(replace(FREE, app=app), os.environ, folder)

    def say(role: str, _line: str) -> None:
        heard(role)

    return asyncio.run(run_until_stopped(topology, say, up))


def ours() -> set[int]:
    """Return the children of this process; other tests may have some too."""
    return set(children(os.getpid()))


@pytest.fixture
def others() -> Iterator[set[int]]:
    """Return the children there were before, and see that there are no more afterwards."""
    before = ours()
    yield before
    poll(lambda: not ours() - before, what="the end of every child")


def test_it_is_up_until_it_is_told_to_stop(tmp_path: Path, others: set[int]) -> None:
    """`up` is called once everything is ready; the signal's name comes back."""
    running: list[int] = []

    def up() -> None:
        running.append(len(ours() - others))
        signal.raise_signal(signal.SIGINT)

    stopped_by = run(tmp_path, heard=lambda _: None, up=up)

    assert (stopped_by, running) == ("SIGINT", [4])


def test_a_stop_during_the_start_takes_down_what_was_started(
    tmp_path: Path, others: set[int]
) -> None:
    """Nobody has to wait for a start that is no longer wanted."""
    ups: list[bool] = []

    def heard(role: str) -> None:
        if role == "check":
            signal.raise_signal(signal.SIGTERM)

    stopped_by = run(tmp_path, heard=heard, up=lambda: ups.append(True))

    assert (stopped_by, ups) == ("SIGTERM", [])


def test_a_process_that_does_not_start_takes_down_what_was_started(
    tmp_path: Path, others: set[int]
) -> None:
    """Its own words are in the error."""
    with pytest.raises(ChildError, match=r"(?s)^web ended with exit code 2 .*no_such_module"):
        run(tmp_path, app="no_such_module:app", heard=lambda _: None, up=lambda: None)


def test_asking_twice_kills(tmp_path: Path, others: set[int]) -> None:
    """The second signal waits for no grace."""

    def up() -> None:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)

    assert run(tmp_path, heard=lambda _: None, up=up) == "SIGINT"
