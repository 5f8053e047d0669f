"""What became of each operation: the story, the store and the receivers' ledgers, put side by side.

Pure: made from what was recorded, at any of the photographed instants.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from platform_sim.lab.scenario.run import Photograph, Played
from platform_sim.lab.scenario.story import StoryEvent

__all__ = ["AttemptSeen", "OperationSeen", "StateSeen", "operations_seen"]

_PLACES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class StateSeen:
    """A state the marker went into: when, by which write, of which replica."""

    at_s: float
    state: str
    event: str
    replica: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptSeen:
    """An attempt; without an end it was killed, frozen or cut in flight."""

    number: int
    replica: str
    start_s: float
    end_s: float | None = None
    outcome: str | None = None
    status: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationSeen:
    """Everything seen of one operation until an instant.

    Attributes:
        name: The request's name.
        operation_id: Its id.
        row: The stored row, or None.
        answers: The statuses that clients got, in order; None where one left before.
        history: The states it went through.
        attempts: Its attempts.
        wire: Wire requests that the receiver logged.
        effects: What the receiver really did.
        claims: Claims that were won.
        refused_writes: Writes refused to a pass that had lost its claim.
    """

    name: str
    operation_id: str
    row: Mapping[str, Any] | None
    answers: tuple[int | None, ...]
    history: tuple[StateSeen, ...]
    attempts: tuple[AttemptSeen, ...]
    wire: int
    effects: int
    claims: int
    refused_writes: int

    @property
    def state(self) -> str:
        """The stored state, or `absent`."""
        return "absent" if self.row is None else str(self.row["state"])

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON-able data, without the row's payload."""
        row = self.row or {}
        return {
            "name": self.name,
            "operation_id": self.operation_id,
            "state": self.state,
            "attempts": row.get("attempts", 0),
            "passes": row.get("passes", 0),
            "unknown": row.get("unknown", False),
            "last_outcome": row.get("last_outcome"),
            "last_status": row.get("last_status"),
            "reason": row.get("reason"),
            "answers": list(self.answers),
            "history": [asdict(state) for state in self.history],
            "attempt_log": [asdict(attempt) for attempt in self.attempts],
            "wire": self.wire,
            "effects": self.effects,
            "claims": self.claims,
            "refused_writes": self.refused_writes,
        }


def operations_seen(played: Played, photograph: Photograph) -> dict[str, OperationSeen]:
    """Return what was seen of every request's operation until a photograph, by the name."""
    by_operation: dict[str, list[StoryEvent]] = {}
    answers: dict[str, list[int | None]] = {}
    for event in played.story.events[: photograph.events]:
        if event.kind == "answer":
            answers.setdefault(event.fields["request"], []).append(event.fields["status"])
        if event.operation_id is not None:
            by_operation.setdefault(event.operation_id, []).append(event)
    wire = {request.key: 0 for requests in photograph.wire.values() for request in requests}
    for requests in photograph.wire.values():
        for request in requests:
            wire[request.key] += 1
    return {
        name: _seen(
            name,
            operation_id,
            photograph,
            by_operation.get(operation_id, []),
            tuple(answers.get(name, ())),
            wire.get(operation_id, 0),
        )
        for name, operation_id in _all_names(played)
    }


def _all_names(played: Played) -> Iterator[tuple[str, str]]:
    asked = [e.fields["request"] for e in played.story.of("request")]
    for name in dict.fromkeys(asked):
        yield name, played.names.get(name, "")


def _seen(
    name: str,
    operation_id: str,
    photograph: Photograph,
    events: list[StoryEvent],
    answers: tuple[int | None, ...],
    wire: int,
) -> OperationSeen:
    writes = [event for event in events if event.kind == "write"]
    landed = [event for event in writes if not event.fields["refused"]]
    effects = sum(counts.get(operation_id, 0) for counts in photograph.effects.values())
    return OperationSeen(
        name=name,
        operation_id=operation_id,
        row=photograph.rows.get(operation_id),
        answers=answers,
        history=tuple(
            StateSeen(
                at_s=round(event.at_s, _PLACES),
                state=event.fields["after"],
                event=event.fields["event"],
                replica=event.source,
            )
            for event in landed
            if event.fields["event"] != "heartbeat"
        ),
        attempts=tuple(_attempts(events)),
        wire=wire,
        effects=effects,
        claims=sum(_wins_claim(event) for event in landed),
        refused_writes=sum(_is_refused_settle(event) for event in writes),
    )


def _wins_claim(event: StoryEvent) -> bool:
    claim = event.fields["claim_after"]
    return claim is not None and claim != event.fields["claim_before"]


def _is_refused_settle(event: StoryEvent) -> bool:
    own = {"release", "reject", "park", "heartbeat"}
    return bool(event.fields["refused"]) and event.fields["event"] in own


def _attempts(events: list[StoryEvent]) -> list[AttemptSeen]:
    found: dict[tuple[str, str, int], AttemptSeen] = {}
    for event in events:
        if event.kind not in {"attempt_started", "attempt_ended"}:
            continue
        number = event.fields["attempt"]
        key = (event.source, event.fields["claim_id"], number)
        if event.kind == "attempt_started":
            found[key] = AttemptSeen(
                number=number, replica=event.source, start_s=round(event.at_s, _PLACES)
            )
        else:
            found[key] = AttemptSeen(
                number=number,
                replica=event.source,
                start_s=found[key].start_s,
                end_s=round(event.at_s, _PLACES),
                outcome=event.fields["outcome"],
                status=event.fields["status"],
            )
    return list(found.values())
