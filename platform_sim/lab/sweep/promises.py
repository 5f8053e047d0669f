"""What must be so of a scenario after a cut: the promises, told as what is lost or doubled.

Rules: every invariant of the lab holds. Every stored operation comes to an end, and to the end that
it has without a cut. There are three excuses, each with the receiver as the witness: it still waits
because redrive tries and the receiver goes on failing; it is rejected because the receiver refused
it; it is parked because the receiver can neither be asked nor sent a key again. What is delivered
has taken effect, unless the receiver says so of what it never did, and a receiver whose effects
must not be repeated has no more of them than without a cut.

Pure. Not here: the invariants themselves (`lab.scenario.invariants`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from platform_sim.lab.scenario.asks import asks_of
from platform_sim.lab.scenario.file import Receiver
from platform_sim.lab.scenario.invariants import broken_invariants
from platform_sim.lab.scenario.played import Played
from platform_sim.lab.sweep.trial import Finding, Kind
from platform_sim.world.script import Commit

__all__ = ["findings_of", "waiting_of"]

_WAITING = frozenset({"claimed", "undelivered", "uncertain"})
_LOST = "1 "
_EFFECTS = "effects at"
_DONE, _ABOVE_2XX = 200, 300


def waiting_of(rows: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the operations that are not settled."""
    return [operation_id for operation_id, row in rows.items() if row["state"] in _WAITING]


def findings_of(played: Played, uncut: Played) -> Iterator[Finding]:
    """Yield what is wrong with a trial, given the run without a cut."""
    for name, texts in broken_invariants(played).items():
        for text in texts:
            yield Finding(kind=_kind_of(name, text), text=f"promise {name}: {text}")
    acknowledged = {
        event.operation_id
        for event in played.story.of("answer")
        if _is_done(event.fields["status"])
    }
    for ask in asks_of(played.scenario):
        operation_id = played.names.get(ask.name, "")
        row = played.end.rows.get(operation_id)
        if row is None:
            continue
        ending = _Ending(
            operation_id=operation_id,
            state=str(row["state"]),
            usual=uncut.end.rows.get(uncut.names.get(ask.name, ""), {}).get("state"),
            receiver=played.scenario.receivers[ask.request.destination],
            played=played,
        )
        was = "acknowledged" if operation_id in acknowledged else "stored, not acknowledged,"
        if wrong := ending.wrong():
            kind = Kind.LOST if operation_id in acknowledged else Kind.BROKEN
            yield Finding(kind=kind, text=f"{ask.name} was {was} and {wrong}")
        usual_effects = _effects(uncut, uncut.names.get(ask.name, ""))
        yield from ending.wrong_effects(ask.name, usual_effects)


def _kind_of(invariant: str, text: str) -> Kind:
    if invariant.startswith(_LOST):
        return Kind.LOST
    return Kind.DOUBLED if _EFFECTS in text else Kind.BROKEN


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ending:
    """What one operation has come to.

    Attributes:
        operation_id: Which.
        state: Its state at rest.
        usual: Its state at rest without a cut; None when it was not stored then.
        receiver: Where it goes.
        played: The trial.
    """

    operation_id: str
    state: str
    usual: str | None
    receiver: Receiver
    played: Played

    def wrong(self) -> str | None:
        """Say what is wrong with the state, or None."""
        if self.state in {self.usual, "delivered"} or self._is_excused():
            return None
        if self.state in _WAITING:
            return f"is still {self.state} when everything is at rest"
        return f"ends {self.state}, and {self.usual} without a cut"

    def _is_excused(self) -> bool:
        match self.state:
            case "parked":
                return not _can_go_on(self.receiver)
            case "rejected":
                return any(400 <= status < 500 for status in self._statuses())  # noqa: PLR2004  4xx
            case _:
                is_tried = any(
                    event.source.startswith("redrive")
                    for event in self.played.story.of(
                        "attempt_started", "looked_up", operation_id=self.operation_id
                    )
                )
                last = self._statuses()[-1:]
                return self.usual in _WAITING or (is_tried and last != [_DONE] and bool(last))

    def _statuses(self) -> list[int]:
        """Return what the receiver replied, in order; 0 stands for no reply."""
        wire = [request for seen in self.played.end.wire.values() for request in seen]
        own = [request for request in wire if request.key == self.operation_id]
        return [_DONE if _is_done(request.status) else request.status or 0 for request in own]

    def wrong_effects(self, name: str, usual: int) -> Iterator[Finding]:
        """Yield what is wrong with its effects, of which there are so many without a cut."""
        found = _effects(self.played, self.operation_id)
        if self.state == "delivered" and found < min(1, usual) and not _lies(self.receiver):
            yield Finding(kind=Kind.LOST, text=f"{name} ends delivered and never took effect")
        may_repeat = self.receiver.idempotent or self.receiver.lookups
        if not may_repeat and found > max(1, usual):
            text = f"{name} took effect {found} times at a receiver that is not idempotent"
            yield Finding(kind=Kind.DOUBLED, text=text)


def _is_done(status: int | None) -> bool:
    return status is not None and _DONE <= status < _ABOVE_2XX


def _can_go_on(receiver: Receiver) -> bool:
    """Tell whether an unknown can always be cleared up at a receiver."""
    asks = receiver.lookup and not receiver.lookups
    return asks or (receiver.idempotent and receiver.dedupe_window_s is None)


def _lies(receiver: Receiver) -> bool:
    """Tell whether a receiver may say that it did what it never did."""
    silent = any(_is_done(turn.status) and turn.commit is Commit.NEVER for turn in receiver.replies)
    return silent or bool(receiver.lookups)


def _effects(played: Played, operation_id: str) -> int:
    return sum(counts.get(operation_id, 0) for counts in played.end.effects.values())
