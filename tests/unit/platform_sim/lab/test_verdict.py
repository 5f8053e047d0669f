"""The verdict must be able to say that work was lost, in every way in which it can be."""

from typing import Any

import pytest

from platform_sim.lab.verdict import Answer, Evidence, Judged, Row, judge


def answer(operation_id: str | None = "a", *, status: int = 202, name: str = "one") -> Answer:
    """Return what a client got."""
    return Answer(name=name, status=status, operation_id=operation_id, ack_ms=5.0, at_ms=1_000)


def wire(status: int | None = 200, *, key: str = "a", outcome: str = "replied") -> dict[str, Any]:
    """Return a request as the receiver's ledger lists it."""
    return {"key": key, "status": status, "outcome": outcome, "at_ms": 1_001}


def only(evidence: Evidence) -> Judged:
    """Return the one judged operation."""
    (judged,) = judge(evidence).operations
    return judged


def test_a_delivery_needs_the_row_and_an_effect() -> None:
    """Both sides agree."""
    evidence = Evidence(
        answers=[answer()],
        requests=[wire(None, outcome="left"), wire()],
        effects={"a": 1},
        rows={"a": Row(state="delivered", attempts=2, passes=1)},
    )
    verdict = judge(evidence)

    assert (verdict.accepted, verdict.delivered, verdict.lost, verdict.good) == (1, 1, 0, True)
    assert (only(evidence).wire, only(evidence).effects) == (2, 1)


def test_a_rejection_needs_the_row_the_refusal_and_no_effect() -> None:
    """A receiver may say no; nobody else may."""
    evidence = Evidence(answers=[answer()], requests=[wire(422)], rows={"a": Row(state="rejected")})
    verdict = judge(evidence)

    assert (verdict.rejected, verdict.lost, verdict.good) == (1, 0, True)


@pytest.mark.parametrize(
    ("row", "requests", "effects", "fate"),
    [
        (None, [wire()], 1, "lost: the store has no row of it"),
        ("delivered", [wire()], 0, "lost: delivered, says the row; the receiver has nothing"),
        ("delivered", [], 0, "lost: delivered, says the row; the receiver has nothing"),
        ("rejected", [wire()], 1, "lost: rejected, says the row; the receiver did it"),
        ("rejected", [], 0, "lost: rejected, says the row; the receiver never said so"),
        ("rejected", [wire(503)], 0, "lost: rejected, says the row; the receiver never said so"),
        ("rejected", [wire(409)], 0, "lost: rejected, says the row; the receiver never said so"),
        ("rejected", [wire(None)], 0, "lost: rejected, says the row; the receiver never said so"),
        ("parked", [wire(None)], 0, "lost: parked, a person would have to decide"),
        ("claimed", [wire()], 1, "lost: still claimed when the time was up"),
        ("uncertain", [wire(None)], 1, "lost: still uncertain when the time was up"),
    ],
)
def test_every_other_end_of_a_promise_is_a_loss(
    row: str | None, requests: list[dict[str, Any]], effects: int, fate: str
) -> None:
    """An effect alone does not make a promise kept, nor does a row."""
    evidence = Evidence(
        answers=[answer()],
        requests=requests,
        effects={"a": effects} if effects else {},
        rows={} if row is None else {"a": Row(state=row)},
    )
    verdict = judge(evidence)

    assert only(evidence).fate == fate
    assert (verdict.delivered, verdict.rejected, verdict.lost, verdict.good) == (0, 0, 1, False)


def test_duplicate_effects_are_counted_over_every_key_acknowledged_or_not() -> None:
    """An effect too many is one whoever asked for it."""
    evidence = Evidence(
        answers=[answer()],
        requests=[wire()],
        effects={"a": 3, "nobody": 2, "fine": 1},
        rows={"a": Row(state="delivered")},
    )
    verdict = judge(evidence)

    assert (verdict.duplicate_effects, verdict.lost, verdict.good) == (3, 0, False)


def test_only_an_acknowledgement_is_a_promise() -> None:
    """A refused request owes nothing, and an answer given twice is one operation."""
    evidence = Evidence(
        answers=[
            answer(None, status=503),
            answer(None, status=202),
            answer("a", name="first"),
            answer("a", name="again"),
        ],
        effects={"a": 1},
        rows={"a": Row(state="delivered")},
    )

    assert judge(evidence).accepted == 1
    assert only(evidence).answer.name == "first"
