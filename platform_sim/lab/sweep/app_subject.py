"""Any ASGI app as the subject of a sweep: one request, a check, and a redrive if there is one.

Rules: each trial has an event loop, an app and an outside world of its own, and the same seed for
`random`. An app that is no factory's is the same object in every trial, with what it keeps.

Not here: a trial's course (`stage`), judging (`check`).
"""

import random
from collections.abc import Callable
from dataclasses import dataclass

from platform_sim.lab.sweep.asking import SweptRequest
from platform_sim.lab.sweep.check import Check, findings_by
from platform_sim.lab.sweep.errors import BadSweep
from platform_sim.lab.sweep.loop import run_virtual
from platform_sim.lab.sweep.outside import CURRENT_OUTSIDE
from platform_sim.lab.sweep.places import Code
from platform_sim.lab.sweep.stage import DEFAULT_AFTER_S, DEFAULT_REDRIVE_RUNS, Redrive, Stage
from platform_sim.lab.sweep.trial import Cuts, Trial
from platform_sim.lifetime.emulator import App
from platform_sim.lifetime.profile import GENERIC, Profile

__all__ = ["AppSubject"]

_IF_NOT_ACKNOWLEDGED = (
    "sweep a request that the app answers with a 2xx, or give a check (--check, check=) that says "
    "what must be so after any other answer"
)


@dataclass(kw_only=True)
class AppSubject:
    """An app and the request that is swept.

    Attributes:
        title: For people.
        make: Returns the app of a trial.
        request: What is sent.
        check: Judges; None asks only what can be known without one.
        redrive: Finishes what was cut.
        profile: What the app is served under. The default lets work run to its end, so that no
            cut but the sweep's falls.
        after_s: Virtual seconds between the answer, or the cut, and what comes next.
        redrive_runs: How often redrive runs.
        seed: For `random`, and for drawing pairs.
        own: Top-level modules that are the user's though they are installed.

    Raises:
        BadSweep: There is a redrive and no check: without one nobody knows what it repaired.
    """

    title: str
    make: Callable[[], App]
    request: SweptRequest
    check: Check | None = None
    redrive: Redrive | None = None
    profile: Profile = GENERIC
    after_s: float = DEFAULT_AFTER_S
    redrive_runs: int = DEFAULT_REDRIVE_RUNS
    seed: int = 1
    own: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Check what no single argument can say."""
        if self.redrive is not None and self.check is None:
            raise BadSweep("a redrive needs a check: nothing else can tell what it repaired")
        self.has_redrive = self.redrive is not None
        self.if_not_acknowledged = None if self.check is not None else _IF_NOT_ACKNOWLEDGED
        self._code = Code(own=self.own)
        self._work_at: tuple[bool, ...] = ()

    def run(self, cuts: Cuts) -> Trial:
        """Run one trial."""
        before = random.getstate()
        random.seed(self.seed)
        try:
            return run_virtual(lambda: self._run(cuts))
        finally:
            random.setstate(before)

    async def _run(self, cuts: Cuts) -> Trial:
        stage = Stage(
            cuts,
            profile=self.profile,
            code=self._code,
            after_s=self.after_s,
            redrive_runs=self.redrive_runs,
        )
        CURRENT_OUTSIDE.set(stage.outside)
        aftermath = await stage.ask(self.make(), self.request, redrive=self.redrive)
        goes_on = any(self._work_at[cuts.request_at :]) if cuts.request_at else True
        trial = stage.trial(await findings_by(self.check, aftermath, goes_on=goes_on))
        if cuts.recording:
            self._work_at = tuple(place.has_work for place in trial.places)
        await stage.aclose()
        return trial
