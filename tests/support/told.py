"""Hand-made stories: what a run would have told, so that a judge can be shown a broken promise."""

from collections.abc import Iterable, Mapping
from typing import Any, cast

from platform_sim.lab.scenario.file import Scenario
from platform_sim.lab.scenario.played import Photograph, Played
from platform_sim.lab.scenario.reading import parse_scenario
from platform_sim.lab.scenario.story import Story, StoryEvent
from platform_sim.world.ledger import WireRequest
from tests.support.scenarios import ONE, world

__all__ = ["OP", "Told", "a_good_story"]

OP = "operation-1"


class _At:
    """A clock that stands where it is put."""

    def __init__(self) -> None:
        self.at_s = 0.0

    def now_s(self) -> float:
        return self.at_s


class Told:
    """A story under construction; `a_good_story` breaks no promise."""

    def __init__(self, scenario: Scenario | None = None) -> None:
        self.clock = _At()
        self.story = Story(cast("Any", self.clock))  # only its time is asked for
        self.scenario = scenario or parse_scenario(world(ONE))
        self.rows: dict[str, dict[str, Any]] = {}
        self.wire: list[WireRequest] = []
        self.effects: dict[str, int] = {}

    def tell(self, at_s: float, source: str, kind: str, op: str | None = OP, **fields: Any) -> None:
        """Tell one event at an instant."""
        self.clock.at_s = at_s
        self.story.tell(source, kind, operation_id=op, **fields)

    def write(
        self,
        at_s: float,
        source: str,
        event: str,
        move: tuple[str | None, str | None],
        claims: tuple[str | None, str | None] = (None, None),
        *,
        by: str | None = None,
        refused: bool = False,
    ) -> None:
        """Tell of a write: its event, state before and after, claim before and after."""
        self.tell(
            at_s,
            source,
            "write",
            event=event,
            refused=refused,
            before=move[0],
            after=move[1],
            claim_before=claims[0],
            claim_after=claims[1],
            by_claim=claims[0] if by is None else by,
            unknown=False,
        )

    def attempt(
        self, started_s: float, ended_s: float, outcome: str, *, number: int = 1, claim: str = "w-1"
    ) -> None:
        """Tell of an attempt of web-1, with its request in the ledger."""
        common: dict[str, Any] = {"claim_id": claim, "destination": "r", "attempt": number}
        self.tell(started_s, "web-1", "attempt_started", **common)
        self.tell(started_s, "web-1", "byte_left")
        self.arrive()
        self.tell(ended_s, "web-1", "attempt_ended", **common, outcome=outcome, status=None)

    def arrive(self, key: str = OP, body: str = "sha") -> None:
        """Put a request into the ledger."""
        self.wire.append(
            WireRequest(key=key, path="/hooks/r", attempt=1, at_ms=0, body_sha256=body)
        )

    def played(self, names: Mapping[str, str] | None = None) -> Played:
        """Return it as a run."""
        end = Photograph(
            at_s=self.scenario.run_for_s,
            rows=self.rows,
            wire={"r": tuple(self.wire)},
            effects={"r": self.effects},
            events=len(self.story.events),
        )
        return Played(
            scenario=self.scenario,
            story=self.story,
            end=end,
            photographs={},
            names=names or {"a": OP},
        )

    def without(self, kinds: Iterable[str]) -> "Told":
        """Forget every event of some kinds."""
        gone = set(kinds)
        kept: list[StoryEvent] = [event for event in self.story.events if event.kind not in gone]
        self.story.events[:] = kept
        return self


def a_good_story() -> Told:
    """Return the story of one operation that was accepted, delivered and confirmed by web-1."""
    told = Told()
    told.tell(0.0, "client", "request", None, request="a", replica="web-1")
    told.write(0.0, "web-1", "accept", (None, "claimed"), (None, "w-1"), by="")
    told.tell(0.0, "web-1", "pass_started", claim_id="w-1", unknown=False)
    told.tell(0.0, "client", "answer", request="a", status=202, state="claimed", stored=True)
    told.attempt(0.0, 1.0, "delivered")
    told.write(1.0, "web-1", "confirm", ("claimed", "delivered"), ("w-1", None))
    told.tell(1.0, "web-1", "settled", claim_id="w-1")
    told.rows[OP] = {"state": "delivered", "attempts": 1}
    told.effects[OP] = 1
    return told
