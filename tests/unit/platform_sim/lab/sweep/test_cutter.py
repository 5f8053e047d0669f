"""The cutter: counts what it watches, and kills at one resumption."""

import asyncio
from contextvars import copy_context
from functools import partial

import pytest

from platform_sim.lab.sweep.cutter import Cutter
from platform_sim.lab.sweep.kill import kill_gate
from platform_sim.lab.sweep.places import Code
from platform_sim.lifetime.births import CURRENT_GATE, mind_births
from platform_sim.lifetime.gate import Gate
from tests.support.virtual import run_virtual


async def three_steps(reached: list[int]) -> None:
    """Go on three times."""
    for number in range(3):
        reached.append(number)
        await asyncio.sleep(1.0)


def cut(at: int | None, *, recording: bool = False) -> tuple[Cutter, list[int]]:
    """Run three steps and a helper under a cutter."""
    cutter, reached = Cutter(Code(), at=at, recording=recording), list[int]()

    async def main() -> None:
        mind_births(asyncio.get_running_loop())
        gate = Gate()
        cutter.watch(gate, partial(kill_gate, gate), root="the root")
        inside = copy_context()
        inside.run(CURRENT_GATE.set, gate)
        task = asyncio.create_task(three_steps(reached), name="steps", context=inside)
        await asyncio.wait({task}, timeout=100.0)

    run_virtual(main)
    return cutter, reached


def test_without_a_cut_every_resumption_is_counted() -> None:
    """The first step counts, and so does the one that ends."""
    cutter, reached = cut(None, recording=True)

    assert (cutter.count, reached) == (4, [0, 1, 2])
    assert len({place.at for place in cutter.places}) == 2
    assert [place.task for place in cutter.places] == ["the root"] * 4
    assert cutter.place is None


@pytest.mark.parametrize(("at", "expected"), [(1, []), (2, [0]), (3, [0, 1]), (4, [0, 1, 2])])
def test_the_kill_comes_before_the_step(at: int, expected: list[int]) -> None:
    """What was to happen in the resumption does not."""
    cutter, reached = cut(at)

    assert (reached, cutter.count) == (expected, at)
    assert cutter.place is not None
    assert cutter.unfinished == (cutter.place,)
    assert cutter.place.has_begun == (at > 1)
    assert cutter.places == []


def test_a_cut_that_is_never_reached_does_not_fall() -> None:
    """The count says how far it was."""
    cutter, reached = cut(5)

    assert (cutter.place, cutter.count, reached) == (None, 4, [0, 1, 2])
