"""What a sweep asks of its subject, and what one trial of it comes to. Plain data."""

from dataclasses import dataclass
from enum import StrEnum, unique
from typing import Protocol

from platform_sim.lab.sweep.asking import Answer
from platform_sim.lab.sweep.places import Place

__all__ = ["Cuts", "Finding", "Kind", "Subject", "Trial"]


@unique
class Kind(StrEnum):
    """What is wrong after a cut."""

    LOST = "lost"  # acknowledged work that nothing will finish
    DOUBLED = "doubled"  # work that took effect more often than it may
    BROKEN = "broken"  # another promise


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong; a user's check may return it.

    Attributes:
        kind: What sort of thing.
        text: In words.
    """

    kind: Kind = Kind.LOST
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cuts:
    """Where one trial is cut.

    Attributes:
        request_at: The resumption of the request to kill at, from 1; None: nowhere.
        redrive_at: The same for redrive, counted from the request's cut on.
        recording: Whether the place of every resumption is kept.
    """

    request_at: int | None = None
    redrive_at: int | None = None
    recording: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What came of one trial.

    Attributes:
        resumptions: How many the request had, up to its cut.
        redrive_resumptions: How many redrive had after the request's cut, up to its own.
        place: Where the request was cut, or None.
        redrive_place: Where redrive was cut, or None.
        places: Of every resumption, when recording.
        findings: What is wrong.
        answers: What the clients got, in order, when nothing was cut.
    """

    resumptions: int
    redrive_resumptions: int = 0
    place: Place | None = None
    redrive_place: Place | None = None
    places: tuple[Place, ...] = ()
    findings: tuple[Finding, ...] = ()
    answers: tuple[Answer, ...] = ()


class Subject(Protocol):
    """Something that can be run again and again, each time in a world of its own."""

    @property
    def title(self) -> str:
        """What people call it."""

    @property
    def seed(self) -> int:
        """What every random choice comes from."""

    @property
    def has_redrive(self) -> bool:
        """Whether anything is run after the cut."""

    @property
    def if_not_acknowledged(self) -> str | None:
        """What to give when an uncut request gets no 2xx; None: any answer may be meant."""

    def run(self, cuts: Cuts) -> Trial:
        """Run one trial."""
