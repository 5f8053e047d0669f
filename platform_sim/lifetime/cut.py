"""What a cut finds alive.

Rules: work is reported by what it is to the request. Registered work and the app call come by
name; so does floating work, which was started and never given to `wait_until`; a helper, a task
whose starter is registered work that has not ended, is only counted.

Not here: delivering the cut (`ending`, `gate`).
"""

from dataclasses import dataclass
from enum import StrEnum, unique

from platform_sim.lifetime.gate import Gate, Stepper
from platform_sim.lifetime.profile import CutMode, FloatingRule, Profile
from platform_sim.lifetime.registry import Registration, Registry, name_of
from platform_sim.view.event import EventKind

__all__ = ["CUT_KINDS", "Doomed", "EndReason", "Role", "find_doomed", "mode_of"]


@unique
class EndReason(StrEnum):
    """Why a request's context ended."""

    DONE = "done"  # answered, and nothing registered is left
    FAILED = "failed"  # the app raised before it had answered, and nothing registered is left
    CLIENT_LEFT = "client_left"  # the client left a running app, and nothing registered is left
    OVERDUE = "overdue"  # the answer took too long, and nothing registered is left
    CEILING = "ceiling"  # the allowance ended
    NEIGHBOUR = "neighbour"  # its process was killed at another request's ceiling
    SHUTDOWN = "shutdown"  # the host's grace ended
    KILLED = "killed"  # an experiment killed it


@unique
class Role(StrEnum):
    """What a piece of work is to its request; reported in this order."""

    REGISTERED = "registered"
    APP = "app"
    FLOATING = "floating"
    HELPER = "helper"


_ORDER = tuple(Role)

CUT_KINDS = {
    (Role.REGISTERED, CutMode.CANCEL): EventKind.TASK_CANCELLED,
    (Role.REGISTERED, CutMode.KILL): EventKind.TASK_KILLED,
    (Role.APP, CutMode.CANCEL): EventKind.APP_CANCELLED,
    (Role.APP, CutMode.KILL): EventKind.APP_KILLED,
    (Role.FLOATING, CutMode.CANCEL): EventKind.FLOATING_CANCELLED,
    (Role.FLOATING, CutMode.KILL): EventKind.FLOATING_KILLED,
    (Role.REGISTERED, CutMode.PROCESS): EventKind.TASK_KILLED,
    (Role.APP, CutMode.PROCESS): EventKind.APP_KILLED,
    (Role.FLOATING, CutMode.PROCESS): EventKind.FLOATING_KILLED,
}
"""The event that tells the cut of each role. Helpers are counted in the cut's own event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Doomed:
    """One living task of the request.

    Attributes:
        role: What it is to the request.
        name: For people.
        stepper: What steps it.
        registration: Set for registered work.
    """

    role: Role
    name: str
    stepper: Stepper
    registration: Registration | None = None

    def __str__(self) -> str:
        if self.registration is not None:
            return f"{self.name} (registered at {round(self.registration.registered_at_s, 3)})"
        if self.role is Role.FLOATING:
            return f"{self.name} (never given to wait_until; {self.stepper.birthplace})"
        return self.name


_UNHELD_ENDS = frozenset(
    {EndReason.DONE, EndReason.FAILED, EndReason.CLIENT_LEFT, EndReason.OVERDUE}
)


def mode_of(reason: EndReason, profile: Profile) -> CutMode:
    """Return how a request that ends for `reason` is cut.

    Only a ceiling takes the process along: unregistered work that ends with its request does not.
    """
    if reason in _UNHELD_ENDS and profile.floating is FloatingRule.FREEZES:
        return CutMode.FREEZE
    if reason is EndReason.CEILING or profile.cut is CutMode.CANCEL:
        return profile.cut
    return CutMode.KILL


def find_doomed(gate: Gate, registry: Registry, app: Stepper) -> list[Doomed]:
    """List what is alive, by role, each role oldest first."""
    registered = {stepper: item for item in registry for stepper in item.steppers}
    found = []
    for stepper in gate.live:
        registration = registered.get(stepper)
        if registration is not None:
            role = Role.REGISTERED
        elif stepper is app:
            role = Role.APP
        else:
            role = Role.HELPER if _is_helped(stepper, registered) else Role.FLOATING
        name = "the app call" if role is Role.APP else name_of(stepper.task)
        found.append(Doomed(role=role, name=name, stepper=stepper, registration=registration))
    return sorted(found, key=lambda doomed: _ORDER.index(doomed.role))


def _is_helped(stepper: Stepper, registered: dict[Stepper, Registration]) -> bool:
    ancestor = stepper.parent
    while ancestor is not None:
        if ancestor in registered:
            return True
        ancestor = ancestor.parent
    return False
