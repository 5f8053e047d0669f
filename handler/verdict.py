"""The verdict of a pass: what it will write, decided from its attempts alone.

Rules: an operation is as uncertain as its most uncertain attempt. A later 503 or refused
connection does not clear an earlier unknown, of this pass or inherited; only a confirmation, a
definite absence or the receiver's own idempotency does. A refusal while something is unknown is
`rejected` at an idempotent receiver and `parked` elsewhere. A pass that would wait beyond the
limits on passes or age parks.

Pure: no clock, no store, no network.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from handler.attempt import Attempt
from handler.outcome import Outcome
from handler.sender import Trace
from storage.marker import Marker, Settlement

_REASON_CHARS = 1000

__all__ = ["PassLog", "Verdict", "VerdictKind", "within_limits"]


class VerdictKind(StrEnum):
    """How a pass ends its claim."""

    CONFIRM = "confirm"
    REJECT = "reject"
    PARK = "park"
    RELEASE = "release"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a pass will write.

    Attributes:
        kind: Which write it is.
        reason: Why, in a few words, for people.
    """

    kind: VerdictKind
    reason: str


@dataclass(slots=True, kw_only=True)
class PassLog:
    """What one pass has seen so far; it is right at every await, so a cut can settle from it.

    Attributes:
        attempts_before: Attempts of earlier passes.
        unknown: Whether something sent may have been delivered.
        attempts: This pass's finished attempts.
        outcomes: What they came to, each once.
        in_flight: The trace of the attempt under way.
        verdict: Set once nothing more will be sent.
    """

    attempts_before: int
    unknown: bool
    attempts: list[Attempt] = field(default_factory=list)
    outcomes: set[Outcome] = field(default_factory=set)
    in_flight: Trace | None = None
    verdict: Verdict | None = None

    def started(self, trace: Trace) -> None:
        """Note that an attempt is under way."""
        self.in_flight = trace

    def ended(self, attempt: Attempt) -> None:
        """Note what an attempt came to."""
        self.in_flight = None
        self.attempts.append(attempt)
        self.outcomes.add(attempt.outcome)
        if attempt.outcome in {Outcome.UNCERTAIN, Outcome.IN_PROGRESS}:
            self.unknown = True

    def is_in_progress_only(self, *, inherited_unknown: bool) -> bool:
        """Return whether the receiver's own "in progress" is the only unknown there is.

        It knows the key and is at work under it, so asking again is no blind repeat.
        """
        in_progress = Outcome.IN_PROGRESS in self.outcomes
        return in_progress and not inherited_unknown and Outcome.UNCERTAIN not in self.outcomes

    def is_absent(self) -> None:
        """Note that the receiver said it has never seen the key."""
        self.unknown = False

    def when_cut(self, reason: str = "the pass was cut") -> Verdict:
        """Return the verdict of a pass that ends here against its will."""
        if self.in_flight is not None and self.in_flight.byte_left:
            self.unknown = True
        return self.verdict or Verdict(kind=VerdictKind.RELEASE, reason=reason)

    def made(self) -> int:
        """Return how many attempts this pass began."""
        return len(self.attempts) + (self.in_flight is not None)

    def settlement(self, *, now_ms: int) -> Settlement:
        """Return what the row should say of this pass; an attempt under way ends now."""
        if self.in_flight is not None:
            outcome = Outcome.UNCERTAIN if self.in_flight.byte_left else Outcome.UNDELIVERED
            return Settlement(
                attempts=self.made(), last_outcome=outcome.value, last_attempt_at_ms=now_ms
            )
        if not self.attempts:
            return Settlement()
        last = self.attempts[-1]
        return Settlement(
            attempts=self.made(),
            last_outcome=last.outcome.value,
            last_status=last.status,
            last_attempt_at_ms=last.ended_at_ms,
        )

    def asked_at_ms(self) -> int | None:
        """Return the instant the receiver last asked to be left alone until, if it did."""
        if not self.attempts or self.attempts[-1].retry_after_s is None:
            return None
        last = self.attempts[-1]
        return last.ended_at_ms + round(1000 * (last.retry_after_s or 0.0))

    def parked(self, why: str) -> Verdict:
        """Return the verdict that a person has to decide, with what the last attempt came to."""
        told = f": {self.attempts[-1].detail}" if self.attempts else ""
        return Verdict(kind=VerdictKind.PARK, reason=f"{why}{told}"[:_REASON_CHARS])

    def refused(self, *, idempotent: bool) -> Verdict:
        """Return the verdict on a receiver's refusal."""
        status = self.attempts[-1].status
        said = f"the receiver refused with status {status}" if status else "the receiver refused"
        if self.unknown and not idempotent:
            return Verdict(
                kind=VerdictKind.PARK,
                reason=f"{said}, but an earlier attempt may have been delivered",
            )
        return Verdict(kind=VerdictKind.REJECT, reason=said)


def within_limits(
    verdict: Verdict,
    held: Marker,
    *,
    unknown: bool,
    due_at_ms: int,
    max_passes: int,
    max_age_s: float,
) -> Verdict:
    """Return the verdict, or park in place of one more wait beyond the limits.

    Args:
        verdict: What the pass came to.
        held: The marker under this pass's claim.
        unknown: Whether something sent may have been delivered; the person must read of it.
        due_at_ms: When it would be due again.
        max_passes: How many passes a marker may have.
        max_age_s: How old a marker may grow before a person decides.
    """
    if verdict.kind is not VerdictKind.RELEASE:
        return verdict
    if held.passes >= max_passes:
        limit = f"{held.passes} passes"
    elif due_at_ms - held.created_at_ms > max_age_s * 1000:
        limit = f"older than {max_age_s:g} s"
    else:
        return verdict
    doubt = "; it may have been delivered" if unknown else ""
    return Verdict(
        kind=VerdictKind.PARK, reason=f"{limit} without a result: {verdict.reason}{doubt}"
    )
