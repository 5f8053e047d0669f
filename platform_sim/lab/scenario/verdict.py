"""The verdict on a scenario: played, judged, and told as data or as text."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from platform_sim.lab.scenario.errors import BadScenario
from platform_sim.lab.scenario.file import Scenario
from platform_sim.lab.scenario.invariants import INVARIANTS, broken_invariants
from platform_sim.lab.scenario.judge import failures_of
from platform_sim.lab.scenario.played import Played
from platform_sim.lab.scenario.product import Product
from platform_sim.lab.scenario.report import OperationSeen, operations_seen
from platform_sim.lab.scenario.run import play
from platform_sim.lab.scenario.story import StoryEvent

__all__ = ["Verdict", "judged", "timeline"]

_PLACES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a scenario came to.

    Attributes:
        scenario: Which one.
        played: The run, or None when the world itself broke.
        failures: Expectations that did not hold.
        invariants: What is wrong under each promise.
        operations: What was seen of each operation.
    """

    scenario: Scenario
    played: Played | None
    failures: Sequence[str]
    invariants: Mapping[str, Sequence[str]]
    operations: Mapping[str, OperationSeen]

    @property
    def passed(self) -> bool:
        """Whether everything expected and every invariant held."""
        return not self.failures and not any(self.invariants.values())

    def as_dict(self, file: str) -> dict[str, Any]:
        """Return it as JSON-able data."""
        return {
            "file": file,
            "name": self.scenario.name,
            "seed": self.scenario.seed,
            "passed": self.passed,
            "failures": list(self.failures),
            "operations": [operation.as_dict() for operation in self.operations.values()],
            "invariants": {name: list(broken) for name, broken in self.invariants.items()},
        }


def judged(scenario: Scenario, product: Product) -> Verdict:
    """Play a scenario and judge it.

    Raises:
        BadScenario: It cannot be played as it is written.
    """
    try:
        played = play(scenario, product)
    except BadScenario:
        raise
    except Exception as error:  # noqa: BLE001  one broken world must not hide the other verdicts
        return Verdict(
            scenario=scenario,
            played=None,
            failures=[
                f"the world broke, which is a defect of ours: {type(error).__name__}: {error}"
            ],
            invariants={name: [] for name in INVARIANTS},
            operations={},
        )
    return Verdict(
        scenario=scenario,
        played=played,
        failures=failures_of(played),
        invariants=broken_invariants(played),
        operations=operations_seen(played, played.end),
    )


def timeline(played: Played) -> Iterator[str]:
    """Yield the story as text, one line an event."""
    names = {operation_id: name for name, operation_id in played.names.items()}
    for event in played.story.events:
        head = f"{event.at_s:10.3f}  {event.source:<12} {event.kind:<22}"
        yield f"{head} {_text(event, names)}".rstrip()


def _text(event: StoryEvent, names: Mapping[str, str]) -> str:
    about = (
        [] if event.operation_id is None else [names.get(event.operation_id, event.operation_id)]
    )
    told = [
        f"{key}={_short(value)}" for key, value in event.fields.items() if value not in (None, "")
    ]
    return " ".join(" ".join(about + told).split())


def _short(value: Any) -> Any:
    """Round what is no whole number, also inside lists and tables."""
    match value:
        case float():
            return round(value, _PLACES)
        case Mapping():
            return {key: _short(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_short(inner) for inner in value]
        case _:
            return value
