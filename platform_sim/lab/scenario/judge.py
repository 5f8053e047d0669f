"""Judging a run: what was expected against what was seen, in words.

Pure. Numbers match exactly or lie in the range that was given; instants match within 0.05 s.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from platform_sim.lab.scenario.asks import is_named
from platform_sim.lab.scenario.expectations import Expect, Totals
from platform_sim.lab.scenario.played import Photograph, Played
from platform_sim.lab.scenario.report import OperationSeen, operations_seen
from platform_sim.lab.scenario.table import Range
from platform_sim.world.clocks import EPOCH_MS

__all__ = ["failures_of"]

_INSTANT_S = 0.05

_See = Callable[[OperationSeen], Any]
_NUMBERS: Mapping[str, _See] = {
    "attempts": lambda seen: _field(seen, "attempts", 0),
    "passes": lambda seen: _field(seen, "passes", 0),
    "last_status": lambda seen: _field(seen, "last_status", None),
    "wire": lambda seen: seen.wire,
    "sent": lambda seen: seen.sent,
    "effects": lambda seen: seen.effects,
    "claims": lambda seen: seen.claims,
    "refused_writes": lambda seen: seen.refused_writes,
}
_EXACT: Mapping[str, _See] = {
    "state": lambda seen: seen.state,
    "unknown": lambda seen: bool(_field(seen, "unknown", 0)),
    "last_outcome": lambda seen: _field(seen, "last_outcome", None),
    "answers": lambda seen: tuple("dropped" if a is None else a for a in seen.answers),
    "answer_states": lambda seen: seen.answer_states,
    "outcomes": lambda seen: tuple(a.outcome or "cut" for a in seen.attempts),
    "history": lambda seen: tuple(state.state for state in seen.history),
}
_INSTANTS: Mapping[str, _See] = {
    "attempt_starts_s": lambda seen: tuple(a.start_s for a in seen.attempts),
    "attempt_ends_s": lambda seen: tuple(a.end_s for a in seen.attempts),
}
_ERRORS = ("platform_app_failed", "platform_task_failed", "pass_failed", "run_ended")
_SETTLED = frozenset({"delivered", "rejected", "parked"})


def failures_of(played: Played) -> list[str]:
    """Return every expectation that does not hold, each as one line of text."""
    found: list[str] = [*_defects(played)]
    for expect in played.scenario.expect:
        seen = operations_seen(played, _photograph(played, expect.at_s))
        matching = [seen[name] for name in seen if is_named(name, expect.operation)]
        if not matching:
            found.append(f"{expect.operation}{_at(expect.at_s)}: no such request was sent")
        for operation in matching:
            found += [
                f"{operation.name}{_at(expect.at_s)}: {text}" for text in _unmet(expect, operation)
            ]
    for totals in played.scenario.totals:
        found += [f"totals{_at(totals.at_s)}: {text}" for text in _unmet_totals(totals, played)]
    return found


def _defects(played: Played) -> Iterator[str]:
    """Yield what must never happen: a world without end, and errors that nobody handled."""
    if played.ended_early is not None:
        yield f"the scenario did not come to its end: {played.ended_early}"
    for event in played.story.of(*_ERRORS):
        if error := event.fields.get("error") or event.fields.get("reason"):
            yield f"{event.source} at {event.at_s:.3f} s: {event.kind}: {error}"


def _at(at_s: float | None) -> str:
    return "" if at_s is None else f" at {at_s:g} s"


def _photograph(played: Played, at_s: float | None) -> Photograph:
    return played.end if at_s is None else played.photographs.get(at_s, played.end)


def _field(seen: OperationSeen, name: str, missing: Any) -> Any:
    return missing if seen.row is None else seen.row.get(name, missing)


def _unmet(expect: Expect, seen: OperationSeen) -> Iterator[str]:
    for name, see in _NUMBERS.items():
        wanted = getattr(expect, name)
        if wanted is not None and not _matches(wanted, see(seen)):
            yield _difference(name, wanted, see(seen))
    for name, see in _EXACT.items():
        wanted = getattr(expect, name)
        if wanted is not None and wanted != see(seen):
            yield _difference(name, wanted, see(seen))
    for name, see in _INSTANTS.items():
        wanted = getattr(expect, name)
        if wanted is not None and not _close(wanted, see(seen)):
            yield _difference(name, wanted, see(seen))
    reason = str(_field(seen, "reason", "") or "")
    if expect.reason is not None and expect.reason not in reason:
        yield _difference("reason", expect.reason, reason)
    settled = next((s.at_s for s in reversed(seen.history) if s.state in _SETTLED), None)
    due_at_ms = _field(seen, "due_at", None)
    due = None if due_at_ms is None else (due_at_ms - EPOCH_MS) / 1000
    for name, wanted, found in (
        ("settled_at_s", expect.settled_at_s, settled),
        ("due_at_s", expect.due_at_s, due),
    ):
        if wanted is not None and not _matches_instant(wanted, found):
            yield _difference(name, wanted, found)


def _unmet_totals(totals: Totals, played: Played) -> Iterator[str]:
    photograph = _photograph(played, totals.at_s)
    seen = operations_seen(played, photograph)
    told = Counter(event.kind for event in played.story.events[: photograph.events])
    states = Counter(operation.state for operation in seen.values())
    acknowledged = sum(any(a == 202 for a in each.answers) for each in seen.values())  # noqa: PLR2004  accepted
    wire = sum(len(requests) for requests in photograph.wire.values())
    effects = sum(sum(counts.values()) for counts in photograph.effects.values())
    wanted: list[tuple[str, Any, Any]] = [
        ("operations", totals.operations, acknowledged),
        ("rows", totals.rows, len(photograph.rows)),
        ("wire", totals.wire, wire),
        ("sent", totals.sent, told["byte_left"]),
        ("effects", totals.effects, effects),
        ("wire_peak", totals.wire_peak, _peak(_arrivals(photograph), totals.wire_peak_window_s)),
        ("due_peak", totals.due_peak, _peak(_due(photograph), totals.due_peak_window_s)),
        *((f"states.{name}", number, states[name]) for name, number in totals.states.items()),
        *((f"counts.{name}", number, told[name]) for name, number in totals.counts.items()),
    ]
    for name, number, found in wanted:
        if number is not None and not _matches(number, found):
            yield _difference(name, number, found)
    yield from _unmet_startup(totals, played)


def _unmet_startup(totals: Totals, played: Played) -> Iterator[str]:
    startup = "refused" if played.startup_errors else "complete"
    if totals.startup is not None and totals.startup != startup:
        yield _difference("startup", totals.startup, startup)
    said = " ".join(played.startup_errors)
    if totals.startup_says is not None and totals.startup_says not in said:
        yield _difference("startup_says", totals.startup_says, said)


def _arrivals(photograph: Photograph) -> list[int]:
    return [request.at_ms for requests in photograph.wire.values() for request in requests]


def _due(photograph: Photograph) -> list[int]:
    return [row["due_at"] for row in photograph.rows.values() if "due_at" in row]


def _peak(instants_ms: list[int], window_s: float) -> int:
    """Return the most instants that fall into any window of that length."""
    ordered = sorted(instants_ms)
    most, first = 0, 0
    for place, at_ms in enumerate(ordered):
        while at_ms - ordered[first] >= window_s * 1000:
            first += 1
        most = max(most, place - first + 1)
    return most


def _matches(wanted: float | Range, found: Any) -> bool:
    if not isinstance(wanted, Range):
        return bool(found == wanted)
    if found is None:
        return False
    low_ok = wanted.min is None or found >= wanted.min
    return bool(low_ok and (wanted.max is None or found <= wanted.max))


def _matches_instant(wanted: float | Range, found: float | None) -> bool:
    if found is None or isinstance(wanted, Range):
        return _matches(wanted, found)
    return abs(wanted - found) <= _INSTANT_S


def _close(wanted: tuple[float, ...], found: tuple[float | None, ...]) -> bool:
    return len(wanted) == len(found) and all(
        seen is not None and abs(want - seen) <= _INSTANT_S
        for want, seen in zip(wanted, found, strict=True)
    )


def _difference(name: str, wanted: object, found: object) -> str:
    if isinstance(wanted, Range):
        low = "" if wanted.min is None else f"{wanted.min:g}"
        wanted = f"{low}..{'' if wanted.max is None else f'{wanted.max:g}'}"
    if isinstance(wanted, tuple):
        wanted = list(wanted)
    if isinstance(found, tuple):
        found = list(found)
    return f"{name}: expected {wanted}, seen {found}"
