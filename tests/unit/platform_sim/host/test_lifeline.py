"""The lifeline: a child leaves when, and only when, its supervisor is gone."""

import threading

import pytest

from platform_sim.host.lifeline import LIFELINE_FD, Lifeline, watch_lifeline


def test_a_child_leaves_when_the_supervisor_lets_go_and_not_before() -> None:
    """End-of-file on the pipe is the only thing that ends the child."""
    lifeline = Lifeline()
    left = threading.Event()
    codes: list[int] = []

    def leave(code: int) -> None:
        codes.append(code)
        left.set()

    thread = watch_lifeline(lifeline.environment(), leave=leave)
    left_early = left.wait(0.05)
    lifeline.release()
    left_after = left.wait(5)

    assert thread is not None
    thread.join(5)
    lifeline.close()
    assert (left_early, left_after, codes) == (False, True, [0])


def test_a_process_started_by_hand_watches_nothing() -> None:
    """Without the variable there is no supervisor to outlive."""
    assert watch_lifeline({}) is None


@pytest.mark.parametrize("given", ["", "x", "-1", "99999"])
def test_a_broken_lifeline_is_named_with_its_remedy(given: str) -> None:
    """A child that cannot watch must say so instead of becoming an orphan later."""
    with pytest.raises(ValueError, match=f"{LIFELINE_FD}='{given}' .*unset it"):
        watch_lifeline({LIFELINE_FD: given})
