"""The window: opened once, what is left of it, and how it is said."""

import pytest

from platform_sim.lifetime.window import CountedFrom, Window


def window(allowance_s: float | None) -> Window:
    """Return a window that opened with the answer at 2.0."""
    return Window(allowance_s=allowance_s, opened_at_s=2.0, counted_from=CountedFrom.ANSWER)


@pytest.mark.parametrize(
    ("now_s", "left_s"), [(2.0, 30.0), (31.0, 1.0), (32.0, 0.0), (1000.0, 0.0)]
)
def test_what_is_left_shrinks_to_zero_and_no_further(now_s: float, left_s: float) -> None:
    """Late work gets what is left, and after the ceiling nothing."""
    assert window(30.0).remaining_s(now_s) == left_s
    assert window(30.0).ceiling_s == 32.0


def test_an_unbounded_window_has_no_ceiling() -> None:
    """None stands for unbounded throughout."""
    assert window(None).ceiling_s is None
    assert window(None).remaining_s(1e9) is None


def test_it_says_what_it_is_counted_from() -> None:
    """The words of the warning that people read."""
    assert str(window(30.0)) == "window 30.0 s counted from the answer at 2.0"
    assert str(window(None)) == "unbounded window counted from the answer at 2.0"
