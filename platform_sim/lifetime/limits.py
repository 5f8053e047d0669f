"""What a platform grants a request: limits injected as data, never constants in the runtime.

Rules: a profile is frozen and cites the source of each of its rules; one that is changed is a copy
(`dataclasses.replace`). The allowance is always shared by all `wait_until` calls of one request: no
platform known to us grants each call its own.

Not here: the platforms (`profile`), profiles of one's own (`profile_file`), and how a limit is
enforced (`invocation`, `cut`).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from platform_sim.lifetime.errors import BadProfile
from platform_sim.lifetime.rules import (
    ClockStart,
    CutMode,
    DisconnectRule,
    FloatingRule,
    ShutdownRule,
    Topic,
)

__all__ = ["Profile"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The limits of one platform.

    Attributes:
        name: What `--profile` calls it.
        summary: One line for people.
        sources: Where each rule is written down.
        allowance_s: Seconds granted after `clock_start`; None means unbounded.
        clock_start: What the allowance is counted from.
        on_disconnect: What a client that leaves does.
        floating: What becomes of work that was not registered.
        cut: What a cut is.
        cancel_grace_s: Seconds between a delivered cancellation and the kill of what is left.
        answer_limit_s: Seconds after which the platform answers 504 in the app's place and the
            response is over; None: as long as the client waits.
        scheduled_limit_s: Seconds a scheduled run may take; None means unbounded.
        shutdown_grace_s: Seconds that what `shutdown` names gets when the host stops.
        shutdown: What that grace is for.

    Raises:
        BadProfile: A number is negative or no number, or the cancel grace does not fit in the
            shutdown grace.
    """

    name: str
    summary: str
    sources: Mapping[Topic, str]
    allowance_s: float | None
    clock_start: ClockStart = ClockStart.RESPONSE_OVER
    on_disconnect: DisconnectRule = DisconnectRule.ENDS_RESPONSE
    floating: FloatingRule = FloatingRule.CUT
    cut: CutMode = CutMode.CANCEL
    cancel_grace_s: float = 0.1
    answer_limit_s: float | None = None
    scheduled_limit_s: float | None = None
    shutdown_grace_s: float = 10.0
    shutdown: ShutdownRule = ShutdownRule.WORK

    def __post_init__(self) -> None:
        for key in ("allowance_s", "answer_limit_s", "scheduled_limit_s", "shutdown_grace_s"):
            limit = getattr(self, key)
            if limit is not None and not 0 <= limit < math.inf:
                raise BadProfile(
                    f"profile {self.name}: {key} must be a number of seconds, not negative, "
                    f"not {limit}"
                )
        if not 0 < self.cancel_grace_s <= self.shutdown_grace_s:
            raise BadProfile(
                f"profile {self.name}: cancel_grace_s must be above 0 and fit in the shutdown "
                f"grace ({self.shutdown_grace_s} s), not {self.cancel_grace_s} s"
            )

    @property
    def freezes(self) -> bool:
        """Whether the process stands still while no request holds it."""
        return self.cut is CutMode.FREEZE or self.floating is FloatingRule.FREEZES
