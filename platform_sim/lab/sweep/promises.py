"""What must be so of a scenario after a cut: the promises, told as what is lost or doubled.

Rules: every invariant of the lab holds. Every stored operation comes to an end, unless it does not
even without a cut. It ends as it does without a cut, or parked where its receiver leaves nothing
else: one that can neither be asked nor sent a key again. What is delivered has taken effect, and a
receiver whose effects must not be repeated has no more of them than without a cut.

Pure. Not here: the invariants themselves (`lab.scenario.invariants`).
"""

from collections.abc import Iterator, Mapping
from typing import Any

from platform_sim.lab.scenario.asks import asks_of
from platform_sim.lab.scenario.file import Receiver
from platform_sim.lab.scenario.invariants import broken_invariants
from platform_sim.lab.scenario.played import Played
from platform_sim.lab.sweep.trial import Finding, Kind

__all__ = ["findings_of", "waiting_of"]

_WAITING = frozenset({"claimed", "undelivered", "uncertain"})
_LOST = "1 "
_EFFECTS = "effects at"
_ABOVE_2XX = 300


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
        if event.fields["status"] is not None and 200 <= event.fields["status"] < _ABOVE_2XX  # noqa: PLR2004  2xx
    }
    for ask in asks_of(played.scenario):
        operation_id = played.names.get(ask.name)
        row = played.end.rows.get(operation_id or "")
        if operation_id is None or row is None:
            continue
        receiver = played.scenario.receivers[ask.request.destination]
        kind = Kind.LOST if operation_id in acknowledged else Kind.BROKEN
        told = "acknowledged" if operation_id in acknowledged else "stored, not acknowledged,"
        usual = uncut.end.rows.get(uncut.names.get(ask.name, ""), {}).get("state")
        if wrong := _wrong_end(str(row["state"]), usual, receiver):
            yield Finding(kind=kind, text=f"{ask.name} was {told} and {wrong}")
        yield from _wrong_effects(ask.name, str(row["state"]), played, uncut, receiver)


def _kind_of(invariant: str, text: str) -> Kind:
    if invariant.startswith(_LOST):
        return Kind.LOST
    return Kind.DOUBLED if _EFFECTS in text else Kind.BROKEN


def _wrong_end(state: str, usual: str | None, receiver: Receiver) -> str | None:
    if state in {usual, "delivered"}:
        return None
    if state in _WAITING:
        return None if usual in _WAITING else f"is still {state} when everything is at rest"
    if state == "parked" and not _can_go_on(receiver):
        return None
    return f"ends {state}, and {usual} without a cut"


def _can_go_on(receiver: Receiver) -> bool:
    """Tell whether an unknown can always be cleared up at a receiver."""
    asks = receiver.lookup and not receiver.lookups
    return asks or (receiver.idempotent and receiver.dedupe_window_s is None)


def _wrong_effects(
    name: str, state: str, played: Played, uncut: Played, receiver: Receiver
) -> Iterator[Finding]:
    found, usual = _effects(played, name), _effects(uncut, name)
    if state == "delivered" and found < min(1, usual):
        yield Finding(kind=Kind.LOST, text=f"{name} ends delivered and never took effect")
    may_repeat = receiver.idempotent or receiver.lookups
    if not may_repeat and found > max(1, usual):
        text = f"{name} took effect {found} times at a receiver that is not idempotent"
        yield Finding(kind=Kind.DOUBLED, text=text)


def _effects(played: Played, name: str) -> int:
    operation_id = played.names.get(name, "")
    return sum(counts.get(operation_id, 0) for counts in played.end.effects.values())
