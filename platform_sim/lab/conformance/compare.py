"""Comparing what was recorded with what was emulated.

Rules: every recorded event has to happen within the tolerance, with the same fields, and nothing
else may happen before the observation ends: an absence is a finding. Two events stand in order
unless they are so close, in the one or the other, that chance may have decided. Texts in a
runtime's own words (`msg`, `reason`, a `result` that is a text) are not compared; of exceptions the
messages are, and of warnings the number. Whether a status was counted as sent to a client that left
is the socket's business, and not compared.

Not here: where either comes from (`trace`, `play`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from platform_sim.lab.conformance.trace import Source, Trace, TraceEvent, Word

__all__ = ["EITHER_ORDER_S", "TOLERANCE_S", "Difference", "differences"]

TOLERANCE_S = 0.15
"""How far a recorded and an emulated time may be apart."""

EITHER_ORDER_S = 0.02
"""Two events this close may stand in either order."""

_ROUNDING_S = 1e-6
_TEXTS = frozenset({"msg", "reason", "result"})
_LEFT_OUT: Mapping[str, dict[str, Any]] = {
    Word.REQUEST_SENT: {"method": "GET"},
    Word.SCHEDULED: {"cron": ""},
}
"""What a cause is where a line does not say it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One way in which the emulator and the trace disagree: when, in seconds, and what."""

    at_s: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pair:
    recorded: TraceEvent
    emulated: TraceEvent

    @property
    def apart_s(self) -> float:
        return abs(self.recorded.at_s - self.emulated.at_s)


def differences(trace: Trace, emulated: Sequence[TraceEvent]) -> list[Difference]:
    """Return how the emulated events differ from the trace, earliest first."""
    left = bool(trace.of(Source.CLIENT, Word.DISCONNECT, Word.HALF_CLOSE))
    recorded = [event for event in trace.events if event.name != Word.OBSERVATION_END]
    pairs, missing, others = _match(recorded, emulated, left=left)
    found = [*_late(pairs), *_changed(pairs, left=left), *_disordered(pairs)]
    found += [_difference(event, "did not happen") for event in missing]
    found += [
        Difference(at_s=event.at_s, text=f"{event}: happened at {event.at_s:.2f} s, not recorded")
        for event in others
        if event.at_s <= trace.end_s
    ]
    return sorted(found, key=lambda difference: difference.at_s)


def _difference(recorded: TraceEvent, what: str) -> Difference:
    return Difference(
        at_s=recorded.at_s, text=f"{recorded}: recorded at {recorded.at_s:.2f} s, {what}"
    )


def _match(
    recorded: Sequence[TraceEvent], emulated: Sequence[TraceEvent], *, left: bool
) -> tuple[list[_Pair], list[TraceEvent], list[TraceEvent]]:
    """Pair events of one name: the same in time, the same, another in time, another."""
    rest_recorded, rest_emulated = list(recorded), list(emulated)
    pairs = []
    for same, in_time in ((True, True), (True, False), (False, True), (False, False)):
        for event in tuple(rest_recorded):
            for other in rest_emulated:
                pair = _Pair(recorded=event, emulated=other)
                if (event.source, event.name) != (other.source, other.name):
                    continue
                if in_time and pair.apart_s > TOLERANCE_S + _ROUNDING_S:
                    continue
                if same and _facts(event, left=left) != _facts(other, left=left):
                    continue
                pairs.append(pair)
                rest_recorded.remove(event)
                rest_emulated.remove(other)
                break
    return pairs, rest_recorded, rest_emulated


def _late(pairs: Sequence[_Pair]) -> Iterator[Difference]:
    for pair in pairs:
        if pair.apart_s > TOLERANCE_S + _ROUNDING_S:
            yield _difference(pair.recorded, f"emulated at {pair.emulated.at_s:.2f} s")


def _changed(pairs: Sequence[_Pair], *, left: bool) -> Iterator[Difference]:
    for pair in pairs:
        was, became = _facts(pair.recorded, left=left), _facts(pair.emulated, left=left)
        for name in sorted(was.keys() | became.keys()):
            if was.get(name) != became.get(name):
                what = f"{name} was {was.get(name)!r}, emulated {became.get(name)!r}"
                yield _difference(pair.recorded, what)


def _disordered(pairs: Sequence[_Pair]) -> Iterator[Difference]:
    """Find each event that was emulated before another it was recorded after."""
    by_record = sorted(pairs, key=lambda pair: pair.recorded.at_s)
    last: _Pair | None = None  # of those recorded clearly earlier, the last to be emulated
    settled = 0
    for pair in by_record:
        before_s = pair.recorded.at_s - EITHER_ORDER_S - _ROUNDING_S
        while by_record[settled].recorded.at_s < before_s:
            earlier = by_record[settled]
            if last is None or earlier.emulated.at_s > last.emulated.at_s:
                last = earlier
            settled += 1
        if last is None:
            continue
        if last.emulated.at_s - pair.emulated.at_s > EITHER_ORDER_S + _ROUNDING_S:
            yield _difference(
                last.recorded,
                f"before {pair.recorded} at {pair.recorded.at_s:.2f} s, emulated after it "
                f"({last.emulated.at_s:.2f} s and {pair.emulated.at_s:.2f} s)",
            )


def _facts(event: TraceEvent, *, left: bool) -> dict[str, Any]:
    """Return the fields that two runtimes can be expected to share."""
    facts = {
        name: value
        for name, value in event.fields.items()
        if not (name in _TEXTS and isinstance(value, str))
    }
    if event.source is not Source.WORKER:
        facts = _LEFT_OUT.get(event.name, {}) | facts
    if event.source is Source.TAIL and event.name == Word.REPORTED:
        if left:
            facts.pop("status", None)
        facts["exceptions"] = [_message(text) for text in facts.get("exceptions", ())]
        facts["warnings"] = len(facts.get("warnings", ()))
    return facts


def _message(text: Any) -> str:
    """Leave out the kind of an error, which is the language's: `Error: x` and `ValueError: x`."""
    kind, colon, message = str(text).partition(": ")
    return message if colon else kind
