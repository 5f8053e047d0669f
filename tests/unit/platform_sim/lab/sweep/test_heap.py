"""The collector during a sweep."""

import gc

import pytest

from platform_sim.lab.sweep.heap import bounded_heap


def test_the_collector_is_off_and_runs_now_and_then() -> None:
    """What many trials leave is set aside; afterwards everything is as before."""
    before = gc.get_freeze_count()
    with bounded_heap() as count_trial:
        assert not gc.isenabled()
        for _ in range(25):
            count_trial()

        assert gc.get_freeze_count() > before

    assert gc.isenabled()
    assert gc.get_freeze_count() == before


def test_a_collector_that_was_off_stays_off() -> None:
    """Somebody else's choice is kept, and so is what they set aside."""
    gc.disable()
    gc.freeze()
    try:
        with bounded_heap():
            pass

        assert not gc.isenabled()
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
        gc.enable()


def test_a_sweep_that_fails_gives_the_collector_back() -> None:
    """The same at any end."""
    with pytest.raises(RuntimeError), bounded_heap():
        raise RuntimeError

    assert gc.isenabled()
