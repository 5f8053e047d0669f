"""What came of one trace: it agrees, it differs, or it is not claimed.

Rules: a trace is played under the `workers` profile, with what the recorded local process did
otherwise than the platform's documents say: it had no ceiling where the trace shows work beyond it,
and at TERM it waited for answers only. Each such change is noted in the verdict.

Not here: how it is shown (`table`).
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from platform_sim.lab.conformance.compare import Difference, differences
from platform_sim.lab.conformance.pace import AS_WRITTEN, Pace
from platform_sim.lab.conformance.plan import plan_of, shows_no_ceiling
from platform_sim.lab.conformance.play import play
from platform_sim.lab.conformance.trace import Trace
from platform_sim.lifetime.profile import WORKERS, Profile, ShutdownRule

__all__ = ["Verdict", "judge", "not_claimed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What came of one trace.

    Attributes:
        scenario: Its name.
        agrees: Whether trace and emulator agree; None when that is not claimed.
        differences: How they differ, earliest first.
        reason: Why nothing is claimed; None when it is.
        notes: In what the profile was changed for it.
    """

    scenario: str
    agrees: bool | None
    differences: Sequence[Difference] = ()
    reason: str | None = None
    notes: Sequence[str] = ()

    @property
    def first_difference(self) -> str | None:
        """Return the earliest difference, if there is one."""
        return self.differences[0].text if self.differences else None

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "scenario": self.scenario,
            "claimed": self.reason is None,
            "agrees": self.agrees,
            "first_difference": self.first_difference,
            "differences": [each.text for each in self.differences],
            "reason": self.reason,
            "notes": list(self.notes),
        }


def not_claimed(trace: Trace, reason: str) -> Verdict:
    """Return the verdict on a trace that is not claimed."""
    return Verdict(scenario=trace.scenario, agrees=None, reason=reason)


def judge(
    trace: Trace,
    app: Callable[..., Awaitable[None]],
    *,
    ceiling_s: float | None = None,
    pace: Pace = AS_WRITTEN,
) -> Verdict:
    """Play a trace against an app and compare.

    Args:
        trace: The trace.
        app: The app, or the scheduled handler, that does what the recorded script did.
        ceiling_s: The allowance after the answer, in seconds; None means the profile's, lifted
            when the trace shows that the recorded runtime had none.
        pace: The app's timing.

    Raises:
        BadTrace: The trace asks nothing that can be asked.
        AppFailed: The app did not start, or never comes to rest.
    """
    plan = plan_of(trace)
    profile, notes = _profile_for(trace, ceiling_s, stops=plan.term_at_s is not None)
    emulated = play(plan, app, profile=profile, pace=pace)
    found = differences(trace, emulated)
    if pace.taken:
        notes.append(f"the app's timing is the trace's: {', '.join(sorted(pace.taken.values()))}")
    return Verdict(
        scenario=trace.scenario, agrees=not found, differences=tuple(found), notes=tuple(notes)
    )


def _profile_for(
    trace: Trace, ceiling_s: float | None, *, stops: bool
) -> tuple[Profile, list[str]]:
    profile, notes = WORKERS, []
    if ceiling_s is not None:
        profile = replace(profile, allowance_s=ceiling_s)
        notes.append(f"ceiling {ceiling_s:g} s, as asked")
    elif profile.allowance_s is not None and shows_no_ceiling(trace, profile.allowance_s):
        notes.append(f"ceiling of {profile.allowance_s:g} s lifted: the recorded runtime set none")
        profile = replace(profile, allowance_s=None)
    if stops:
        profile = replace(profile, shutdown=ShutdownRule.ANSWERS)
        notes.append("grace at TERM for answers only, as the recorded process gave it")
    return profile, notes
