"""One budget becomes one deadline; the reserve is kept; thawing and clock steps are seen."""

import anyio
import pytest

from handler.budget import Deadline, SystemClock, budget, budget_in_force_s
from tests.support.clock import HandClock
from tests.support.virtual import run_virtual


def test_the_remainder_shrinks_with_time_and_excludes_the_reserve_for_work() -> None:
    """Work may spend the remainder less the reserve; only settling may spend the reserve."""
    clock = HandClock()
    deadline = Deadline.after(25.0, clock=clock, reserve_s=1.0)
    before = (deadline.remaining_s(), deadline.for_work_s())
    clock.advance(24.5)

    assert before == (25.0, 24.0)
    assert (deadline.remaining_s(), deadline.for_work_s()) == (0.5, -0.5)


@pytest.mark.parametrize(
    ("allowance_s", "expected_s"), [(None, 25.0), (30.0, 25.0), (3.0, 3.0), (0.0, 0.0), (-4, -4)]
)
def test_the_smaller_of_budget_and_allowance_holds(
    allowance_s: float | None, expected_s: float
) -> None:
    """What the platform grants caps the budget; None is no bound."""
    deadline = Deadline.after(25.0, clock=HandClock(), allowance_s=allowance_s)

    assert expected_s == deadline.remaining_s()


def test_a_thawed_process_sees_its_deadline_passed() -> None:
    """Monotonic time stood still while frozen; the wall clock tells that the deadline is over."""
    clock = HandClock()
    deadline = Deadline.after(25.0, clock=clock)
    clock.advance(5.0)
    clock.wall_at_ms += 300_000

    assert deadline.remaining_s() == -280.0


def test_a_wall_clock_set_back_grants_nothing() -> None:
    """A step back would lengthen the pass; the monotonic remainder counts then."""
    clock = HandClock()
    deadline = Deadline.after(25.0, clock=clock)
    clock.advance(5.0)
    clock.wall_at_ms -= 3_600_000

    assert deadline.remaining_s() == 20.0


def test_clocks_that_differ_by_ticks_agree() -> None:
    """Slewing and coarse ticks of the wall clock do not move a deadline."""
    clock = HandClock()
    deadline = Deadline.after(25.0, clock=clock)
    clock.wall_at_ms += 40

    assert deadline.remaining_s() == 25.0


def test_a_context_grants_its_own_budget_and_gives_it_back() -> None:
    """`budget()` holds inside its block only, also when that block raises."""
    with budget(3.0):
        inside = budget_in_force_s(25.0)
        with pytest.raises(KeyError), budget(1.0):
            raise KeyError(nested := budget_in_force_s(25.0))
        after = budget_in_force_s(25.0)

    assert (inside, nested, after, budget_in_force_s(25.0)) == (3.0, 1.0, 3.0, 25.0)


def test_the_system_clock_follows_the_running_loop() -> None:
    """Monotonic time is the loop's, so virtual time reaches everything made from it."""

    async def main() -> float:
        clock = SystemClock()
        began_s = clock.monotonic_s()
        await anyio.sleep(7)
        assert clock.wall_ms() > 1_700_000_000_000
        return clock.monotonic_s() - began_s

    assert run_virtual(main) == 7.0
