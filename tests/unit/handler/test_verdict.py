"""The verdict: as uncertain as the most uncertain attempt, known at every await."""

from dataclasses import replace

import pytest

from handler.attempt import Attempt
from handler.outcome import Outcome
from handler.sender import Trace
from handler.verdict import PassLog, Verdict, VerdictKind, within_limits
from storage.marker import Marker, Settlement
from storage.states import State

NOW_MS = 1_700_000_000_000
MARKER = Marker(
    operation_id="op",
    state=State.CLAIMED,
    destination="a",
    payload=b"{}",
    fingerprint="f",
    accept_id="x",
    created_at_ms=NOW_MS,
    updated_at_ms=NOW_MS,
    claim_id="c",
    passes=1,
)
SPENT = "without a result: the budget was spent"
RELEASE = Verdict(kind=VerdictKind.RELEASE, reason="the budget was spent")


def made(
    outcome: Outcome, *, status: int | None = None, retry_after_s: float | None = None
) -> Attempt:
    """Return an attempt that came to `outcome`."""
    return Attempt(
        number=1,
        started_at_ms=NOW_MS,
        ended_at_ms=NOW_MS + 500,
        outcome=outcome,
        status=status,
        retry_after_s=retry_after_s,
    )


def log_of(*outcomes: Outcome, unknown: bool = False) -> PassLog:
    """Return the log of a pass with these attempts."""
    log = PassLog(attempts_before=0, unknown=unknown)
    for outcome in outcomes:
        log.started(Trace())
        log.ended(made(outcome))
    return log


@pytest.mark.parametrize(
    ("outcomes", "inherited", "expected"),
    [
        ((), False, False),
        ((), True, True),
        ((Outcome.UNDELIVERED,), False, False),
        ((Outcome.UNDELIVERED,), True, True),
        ((Outcome.UNCERTAIN,), False, True),
        ((Outcome.IN_PROGRESS,), False, True),
        ((Outcome.UNCERTAIN, Outcome.UNDELIVERED), False, True),
        ((Outcome.UNDELIVERED, Outcome.UNCERTAIN, Outcome.UNDELIVERED), False, True),
        ((Outcome.IN_PROGRESS, Outcome.UNDELIVERED), False, True),
    ],
)
def test_an_operation_is_as_uncertain_as_its_most_uncertain_attempt(
    outcomes: tuple[Outcome, ...], *, inherited: bool, expected: bool
) -> None:
    """A later 503 or refused connection clears no earlier unknown, of this pass or inherited."""
    assert expected is log_of(*outcomes, unknown=inherited).unknown


def test_a_definite_absence_clears_the_unknown() -> None:
    """The receiver said that it has never seen the key."""
    log = log_of(Outcome.UNCERTAIN)
    log.is_absent()

    assert log.unknown is False


@pytest.mark.parametrize(
    ("outcomes", "inherited", "expected"),
    [
        ((Outcome.IN_PROGRESS,), False, True),
        ((Outcome.UNDELIVERED, Outcome.IN_PROGRESS), False, True),
        ((Outcome.IN_PROGRESS,), True, False),
        ((Outcome.UNCERTAIN, Outcome.IN_PROGRESS), False, False),
        ((Outcome.UNDELIVERED,), False, False),
        ((), False, False),
    ],
)
def test_only_the_receivers_own_in_progress_may_be_asked_again(
    outcomes: tuple[Outcome, ...], *, inherited: bool, expected: bool
) -> None:
    """It knows the key and works under it; any other unknown is a blind repeat."""
    assert expected is log_of(*outcomes).is_in_progress_only(inherited_unknown=inherited)


@pytest.mark.parametrize(
    ("unknown", "idempotent", "expected"),
    [
        (False, False, VerdictKind.REJECT),
        (False, True, VerdictKind.REJECT),
        (True, True, VerdictKind.REJECT),
        (True, False, VerdictKind.PARK),
    ],
)
def test_a_refusal_while_something_is_unknown_needs_idempotence_to_reject(
    *, unknown: bool, idempotent: bool, expected: VerdictKind
) -> None:
    """Elsewhere the earlier attempt may have been delivered, so a person decides."""
    log = log_of(unknown=unknown)
    log.ended(made(Outcome.REJECTED, status=422))
    verdict = log.refused(idempotent=idempotent)

    assert expected is verdict.kind
    assert "the receiver refused with status 422" in verdict.reason


def test_a_refusal_by_a_function_has_no_status() -> None:
    """A destination function refuses in its own words."""
    log = log_of(Outcome.REJECTED)

    assert log.refused(idempotent=True).reason == "the receiver refused"


@pytest.mark.parametrize(
    ("byte_left", "unknown", "outcome"),
    [(True, True, "uncertain"), (False, False, "undelivered")],
)
def test_a_cut_attempt_is_unknown_exactly_if_a_byte_may_have_left(
    *, byte_left: bool, unknown: bool, outcome: str
) -> None:
    """A pass that is cut settles what it knows; the attempt under way counts as made."""
    log = log_of(Outcome.UNDELIVERED)
    log.started(Trace(byte_left=byte_left))
    verdict = log.when_cut()

    expected = Settlement(attempts=2, last_outcome=outcome, last_attempt_at_ms=NOW_MS + 9)
    assert (VerdictKind.RELEASE, unknown) == (verdict.kind, log.unknown)
    assert expected == log.settlement(now_ms=NOW_MS + 9)


def test_a_cut_after_the_verdict_keeps_the_verdict() -> None:
    """A confirmation that is known is written, though the cut came before its write."""
    log = log_of(Outcome.DELIVERED)
    log.verdict = Verdict(kind=VerdictKind.CONFIRM, reason="status 200")

    assert log.verdict is log.when_cut()


def test_a_pass_without_attempts_changes_nothing_on_the_row() -> None:
    """Nothing was tried, so last outcome and times stay what they were."""
    assert Settlement() == log_of().settlement(now_ms=NOW_MS)


def test_the_row_tells_of_the_last_attempt() -> None:
    """How many this pass made, and what the last one came to."""
    log = log_of(Outcome.UNCERTAIN)
    log.ended(made(Outcome.UNDELIVERED, status=503))

    expected = Settlement(
        attempts=2, last_outcome="undelivered", last_status=503, last_attempt_at_ms=NOW_MS + 500
    )
    assert expected == log.settlement(now_ms=NOW_MS + 900)


def test_a_retry_after_counts_from_the_answer() -> None:
    """The instant is kept, not the duration: settling takes time too."""
    log = log_of(Outcome.UNCERTAIN)
    nothing_asked = log.asked_at_ms()
    log.ended(made(Outcome.UNDELIVERED, status=503, retry_after_s=60.0))

    assert (nothing_asked, log.asked_at_ms()) == (None, NOW_MS + 60_500)


def test_no_attempt_asked_for_nothing() -> None:
    """Without an answer there is no Retry-After."""
    assert log_of().asked_at_ms() is None


@pytest.mark.parametrize(
    ("passes", "due_after_s", "unknown", "expected", "said"),
    [
        (1, 10, True, VerdictKind.RELEASE, "the budget was spent"),
        (49, 10, False, VerdictKind.RELEASE, "the budget was spent"),
        (50, 10, False, VerdictKind.PARK, f"50 passes {SPENT}"),
        (50, 10, True, VerdictKind.PARK, f"50 passes {SPENT}; it may have been delivered"),
        (1, 3600, False, VerdictKind.RELEASE, "the budget was spent"),
        (1, 3601, False, VerdictKind.PARK, f"older than 3600 s {SPENT}"),
    ],
)
def test_waiting_beyond_a_limit_parks(
    passes: int, due_after_s: int, *, unknown: bool, expected: VerdictKind, said: str
) -> None:
    """Passes and age have limits, beyond which a person decides; the reason says which."""
    found = within_limits(
        RELEASE,
        replace(MARKER, passes=passes),
        unknown=unknown,
        due_at_ms=NOW_MS + due_after_s * 1000,
        max_passes=50,
        max_age_s=3600,
    )

    assert Verdict(kind=expected, reason=said) == found


@pytest.mark.parametrize("kind", [VerdictKind.CONFIRM, VerdictKind.REJECT, VerdictKind.PARK])
def test_a_result_is_never_turned_into_a_limit(kind: VerdictKind) -> None:
    """Limits are on waiting; a result that is there is written whatever the count."""
    verdict = Verdict(kind=kind, reason="r")
    found = within_limits(
        verdict,
        replace(MARKER, passes=99),
        unknown=True,
        due_at_ms=NOW_MS * 2,
        max_passes=1,
        max_age_s=1,
    )

    assert verdict is found


def test_a_parked_operation_tells_what_its_last_attempt_came_to() -> None:
    """A person who has to decide needs the reason, in a bounded number of characters."""
    log = PassLog(attempts_before=0, unknown=False)
    log.ended(replace(made(Outcome.UNCERTAIN), detail="RuntimeError: boom" + "!" * 5000))

    verdict = log.parked("may have been delivered")

    assert verdict.kind is VerdictKind.PARK
    assert verdict.reason.startswith("may have been delivered: RuntimeError: boom")
    assert len(verdict.reason) == 1000
    assert log_of().parked("why").reason == "why"
