"""The words a scenario may use that are the product's: its events, store calls and states.

Rules: a word that the product does not have is a mistake in the file, and the message lists those
it has. The lab's own events are added here.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from platform_sim.lab.scenario.file import Scenario

__all__ = ["ABSENT", "CUT", "POINTS", "Words", "unknown_words"]

POINTS = frozenset(
    {
        "answer",
        "byte_left",
        "committed",
        "platform_response_end",
        "run_started",
        "store_trouble",
        "write",
    }
)
"""The lab's own named points."""

CUT = "cut"
"""The outcome of an attempt whose pass ended first."""

ABSENT = "absent"
"""The state of an operation that has no marker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """The words of a product.

    Attributes:
        actions: What it tells of itself.
        calls: What it asks of its store.
        states: What a marker can be.
        outcomes: What an attempt can come to.
    """

    actions: frozenset[str]
    calls: frozenset[str]
    states: frozenset[str]
    outcomes: frozenset[str]


def unknown_words(scenario: Scenario, words: Words) -> Iterator[str]:
    """Yield a message for each word of a scenario that is none of the product's."""
    points = words.actions | POINTS
    for place, fault in enumerate(scenario.faults):
        if fault.at is not None:
            yield from _check(f"faults[{place}].at", [fault.at], points)
        yield from _check(f"faults[{place}].calls", fault.calls, words.calls)
    for place, expect in enumerate(scenario.expect):
        where = f"expect[{place}]"
        states = words.states | {ABSENT}
        if expect.state is not None:
            yield from _check(f"{where}.state", [expect.state], states)
        yield from _check(f"{where}.history", expect.history or (), words.states)
        yield from _check(f"{where}.answer_states", expect.answer_states or (), words.states)
        yield from _check(f"{where}.outcomes", expect.outcomes or (), words.outcomes | {CUT})
        if expect.last_outcome is not None:
            yield from _check(f"{where}.last_outcome", [expect.last_outcome], words.outcomes)
    for place, totals in enumerate(scenario.totals):
        yield from _check(f"totals[{place}].states", totals.states, words.states | {ABSENT})
        yield from _check(f"totals[{place}].counts", totals.counts, points)


def _check(where: str, used: Iterable[str], known: frozenset[str]) -> Iterator[str]:
    for word in used:
        if word not in known:
            yield f"{where}: there is no {word!r}; there are: {', '.join(sorted(known))}"
