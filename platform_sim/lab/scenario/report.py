"""What became of each operation: the story, the store and the receivers' ledgers, put side by side.

Pure: made from what was recorded, at any of the photographed instants.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from platform_sim.lab.scenario.played import Photograph, Played
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
    """An attempt; without an end it was killed, frozen or cut in flight. `sent`: a byte left."""

    number: int
    replica: str
    start_s: float
    end_s: float | None = None
    outcome: str | None = None
    status: int | None = None
    sent: bool = False


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
        answer_states: The states that those answers told.
        wire: Wire requests that the receiver logged.
        sent: Attempts of which a byte left the sender.
        effects: What the receiver really did.
        claims: Claims that were won.
        refused_writes: Writes refused to a pass that had lost its claim.
    """

    name: str
    operation_id: str
    row: Mapping[str, Any] | None
    answers: tuple[int | None, ...]
    answer_states: tuple[str, ...]
    history: tuple[StateSeen, ...]
    attempts: tuple[AttemptSeen, ...]
    wire: int
    sent: int
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
            "due_at_ms": row.get("due_at"),
            "answers": list(self.answers),
            "answer_states": list(self.answer_states),
            "history": [asdict(state) for state in self.history],
            "attempt_log": [asdict(attempt) for attempt in self.attempts],
            "wire": self.wire,
            "sent": self.sent,
            "effects": self.effects,
            "claims": self.claims,
            "refused_writes": self.refused_writes,
        }


def operations_seen(played: Played, photograph: Photograph) -> dict[str, OperationSeen]:
    """Return what was seen of every request's operation until a photograph, by the name."""
    by_operation: dict[str, list[StoryEvent]] = defaultdict(list)
    answers: dict[str, list[StoryEvent]] = defaultdict(list)
    for event in played.story.events[: photograph.events]:
        if event.kind == "answer":
            answers[event.fields["request"]].append(event)
        if event.operation_id is not None:
            by_operation[event.operation_id].append(event)
    wire = Counter(request.key for requests in photograph.wire.values() for request in requests)
    asked = (event.fields["request"] for event in played.story.of("request"))
    operations = {name: played.names.get(name, "") for name in asked}
    return {
        name: _seen(
            name,
            operation_id,
            photograph,
            events=by_operation[operation_id],
            answers=answers[name],
            wire=wire[operation_id],
        )
        for name, operation_id in operations.items()
    }


def _seen(
    name: str,
    operation_id: str,
    photograph: Photograph,
    *,
    events: list[StoryEvent],
    answers: list[StoryEvent],
    wire: int,
) -> OperationSeen:
    writes = [event for event in events if event.kind == "write"]
    landed = [event for event in writes if not event.fields["refused"]]
    effects = sum(counts.get(operation_id, 0) for counts in photograph.effects.values())
    states = (event.fields["state"] for event in answers)
    return OperationSeen(
        name=name,
        operation_id=operation_id,
        row=photograph.rows.get(operation_id),
        answers=tuple(event.fields["status"] for event in answers),
        answer_states=tuple(state for state in states if state is not None),
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
        sent=sum(event.kind == "byte_left" for event in events),
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
    found: dict[tuple[str, int], AttemptSeen] = {}
    under_way: dict[str, tuple[str, int]] = {}
    for event in events:
        if event.kind == "byte_left" and event.source in under_way:
            key = under_way[event.source]
            found[key] = replace(found[key], sent=True)
        if event.kind not in {"attempt_started", "attempt_ended"}:
            continue
        key = (event.fields["claim_id"], event.fields["attempt"])
        at_s = round(event.at_s, _PLACES)
        if event.kind == "attempt_started":
            under_way[event.source] = key
            found[key] = AttemptSeen(number=key[1], replica=event.source, start_s=at_s)
        else:
            found[key] = replace(
                found[key],
                end_s=at_s,
                outcome=event.fields["outcome"],
                status=event.fields["status"],
            )
    return list(found.values())
