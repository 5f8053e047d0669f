"""Verdict: whether acknowledged operations were kept, judged from three independent witnesses.

- the answers that clients got: what was promised;
- the receiver's ledger: what arrived, and what it really did;
- the store's rows, read as they are: what the sender believes.

An operation is **delivered** when its row says so and the receiver has an effect of it; it is
**rejected** when its row says so, the receiver refused it and did nothing. Every other acknowledged
operation is **lost**: its row is missing, not settled in time, parked, or claims a delivery the
receiver knows nothing of. A key with more than one effect is a **duplicate**, acknowledged or not.

Gathering the evidence is not here (`evidence`), nor showing it (`demo_report`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Answer", "Evidence", "Judged", "Row", "Verdict", "judge"]

_IN_PROGRESS_OR_LATER = frozenset({408, 409, 425, 429})


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a client got.

    Attributes:
        name: What the experiment calls the operation.
        status: Status of the answer; 0 when none came.
        operation_id: The id it was promised; None unless acknowledged.
        ack_ms: Milliseconds from the request to the answer.
        at_ms: When the answer came, epoch milliseconds.
    """

    name: str
    status: int
    operation_id: str | None
    ack_ms: float
    at_ms: int

    @property
    def acknowledged(self) -> bool:
        """Whether the answer is a promise."""
        return self.operation_id is not None and 200 <= self.status < 300  # noqa: PLR2004  2xx


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What the store says of an operation."""

    state: str
    attempts: int = 0
    passes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What the three witnesses say.

    Attributes:
        answers: In the order in which they came.
        requests: The receiver's wire requests, as its ledger lists them.
        effects: Effects by key.
        rows: The store's rows by operation id.
    """

    answers: Sequence[Answer]
    requests: Sequence[Mapping[str, Any]] = ()
    effects: Mapping[str, int] = field(default_factory=dict)
    rows: Mapping[str, Row] = field(default_factory=dict)

    def wire(self, operation_id: str) -> list[Mapping[str, Any]]:
        """Return the wire requests of one operation, in order of arrival."""
        return [request for request in self.requests if request["key"] == operation_id]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One acknowledged operation; `fate` is delivered, rejected or the reason why it is lost."""

    answer: Answer
    row: Row | None
    wire: int
    effects: int
    fate: str

    @property
    def lost(self) -> bool:
        """Whether the promise was broken."""
        return self.fate not in {"delivered", "rejected"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The counts, over distinct acknowledged operations."""

    operations: tuple[Judged, ...]
    duplicate_effects: int

    @property
    def accepted(self) -> int:
        """Operations that were promised."""
        return len(self.operations)

    @property
    def delivered(self) -> int:
        """Operations whose delivery both sides confirm."""
        return sum(judged.fate == "delivered" for judged in self.operations)

    @property
    def rejected(self) -> int:
        """Operations that the receiver refused for good."""
        return sum(judged.fate == "rejected" for judged in self.operations)

    @property
    def lost(self) -> int:
        """Operations whose promise was broken."""
        return sum(judged.lost for judged in self.operations)

    @property
    def good(self) -> bool:
        """Whether nothing was lost and nothing happened twice."""
        return self.lost == 0 and self.duplicate_effects == 0


def judge(evidence: Evidence) -> Verdict:
    """Compare the witnesses."""
    first: dict[str, Answer] = {}
    for answer in evidence.answers:
        if answer.acknowledged and answer.operation_id is not None:
            first.setdefault(answer.operation_id, answer)
    judged = [
        Judged(
            answer=answer,
            row=evidence.rows.get(operation_id),
            wire=len(evidence.wire(operation_id)),
            effects=evidence.effects.get(operation_id, 0),
            fate=_fate(evidence, operation_id),
        )
        for operation_id, answer in first.items()
    ]
    duplicates = sum(count - 1 for count in evidence.effects.values() if count > 1)
    return Verdict(operations=tuple(judged), duplicate_effects=duplicates)


def _fate(evidence: Evidence, operation_id: str) -> str:
    row = evidence.rows.get(operation_id)
    if row is None:
        return "lost: the store has no row of it"
    effects = evidence.effects.get(operation_id, 0)
    if row.state == "delivered":
        return "delivered" if effects else "lost: delivered, says the row; the receiver has nothing"
    if row.state == "rejected":
        if effects:
            return "lost: rejected, says the row; the receiver did it"
        refused = any(_refuses(request["status"]) for request in evidence.wire(operation_id))
        return "rejected" if refused else "lost: rejected, says the row; the receiver never said so"
    if row.state == "parked":
        return "lost: parked, a person would have to decide"
    return f"lost: still {row.state} when the time was up"


def _refuses(status: int | None) -> bool:
    return (
        status is not None
        and 400 <= status < 500  # noqa: PLR2004  4xx
        and status not in _IN_PROGRESS_OR_LATER
    )
