"""The collector's work during a sweep: bounded, whatever has been killed.

Rules: what a trial kills is kept for ever, and a collector that looked at all of it again and again
would soon do nothing else. So it runs every so many trials, and what it leaves is set aside until
the sweep is over. Afterwards it is as it was before.

Not here: why killed coroutines are kept (`platform_sim.lifetime.gate`).
"""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["bounded_heap"]

_EVERY_TRIALS = 25


@contextmanager
def bounded_heap() -> Iterator[Callable[[], None]]:
    """Run the collector only when the function that is yielded has been called often enough."""
    was_enabled, set_aside = gc.isenabled(), gc.get_freeze_count()
    trials = 0

    def count_trial() -> None:
        nonlocal trials
        trials += 1
        if trials % _EVERY_TRIALS == 0:
            gc.collect()
            gc.freeze()

    gc.disable()
    try:
        yield count_trial
    finally:
        if was_enabled:
            gc.enable()
        if not set_aside:  # what others have set aside cannot be told from ours
            gc.unfreeze()
