"""Demo report: the outcome of a demo as a table, a line and a JSON object.

`cut` says what ended an operation's inline pass before its fate was known: its budget, which is
made to end before the ceiling; the ceiling itself, as the web process recorded it; or SIGKILL.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from platform_sim.lab.demo import Outcome
from platform_sim.lab.verdict import Answer, Judged, Verdict, judge

__all__ = ["LEGEND", "DemoReport"]

LEGEND = """\
A tenth of the full scale: ceiling 3 s for 30, budget 2.5 s for 25, attempts 2 s for 20.
The three slow attempts of "3 slow, then fast" would need 66 s at full scale; a fourth delivers.
cut: what ended the first pass early."""
"""What a reader of the table has to know."""
_UNANSWERED = frozenset({"left", "hung"})


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoReport:
    """An outcome, judged.

    Attributes:
        outcome: What was seen.
        budget_s: Seconds granted to an inline pass.
        events: What the web process recorded, in order.
    """

    outcome: Outcome
    budget_s: float
    events: Sequence[Mapping[str, Any]] = ()

    @property
    def verdict(self) -> Verdict:
        """The judgement."""
        return judge(self.outcome.evidence)

    @property
    def good(self) -> bool:
        """Whether everything that was sent was promised, and every promise was kept."""
        answers = self.outcome.evidence.answers
        return self.verdict.good and all(answer.acknowledged for answer in answers)

    def cut(self, judged: Judged) -> str | None:
        """Say what ended the operation's inline pass early, if anything did."""
        operation_id = judged.answer.operation_id
        if operation_id in self.outcome.killed_ids:
            return "killed"
        if operation_id in _cut_at_ceiling(self.events, self.outcome.evidence.answers):
            return "ceiling"
        pass_ends_ms = judged.answer.at_ms + self.budget_s * 1000
        inline = (
            request
            for request in self.outcome.evidence.wire(operation_id or "")
            if request["at_ms"] < pass_ends_ms
        )
        unanswered = any(request["outcome"] in _UNANSWERED for request in inline)
        return "budget" if unanswered and judged.row and judged.row.passes > 1 else None

    def as_dict(self) -> dict[str, Any]:
        """Return the report as JSON-able data."""
        verdict = self.verdict
        in_plan_order = sorted(verdict.operations, key=lambda judged: judged.answer.name)
        operations = [self._operation(judged) for judged in in_plan_order]
        return {
            "accepted": verdict.accepted,
            "delivered": verdict.delivered,
            "rejected": verdict.rejected,
            "lost": verdict.lost,
            "duplicate_effects": verdict.duplicate_effects,
            "cut": sum(one["cut"] in {"budget", "ceiling"} for one in operations),
            "killed": self.outcome.kills,
            "redriven": sum(one["passes"] > 1 for one in operations if not one["lost"]),
            "seed": self.outcome.seed,
            "operations": operations,
        }

    def line(self) -> str:
        """Return the verdict in one line."""
        content = self.as_dict()
        counts = ("accepted", "delivered", "rejected", "lost", "duplicate_effects")
        counted = ", ".join(f"{name.replace('_', ' ')} {content[name]}" for name in counts)
        return f"verdict: {'ok' if self.good else 'BROKEN'}: {counted}"

    def notes(self) -> Iterable[str]:
        """Yield what the table does not show: broken promises, and what was never promised."""
        for judged in self.verdict.operations:
            if judged.lost:
                yield f"{judged.answer.name}: {judged.fate}"
        for answer in self.outcome.evidence.answers:
            if not answer.acknowledged:
                yield f"{answer.name}: not accepted, status {answer.status}"

    def table(self) -> Table:
        """Return the table for people."""
        table = Table(
            title=f"seed {self.outcome.seed}, {self.outcome.took_s:g} s",
            box=None,
            pad_edge=False,
            padding=(0, 1, 0, 0),
        )
        table.add_column("operation", no_wrap=True)
        for name in ("ack ms", "attempts", "passes"):
            table.add_column(name, justify="right")
        for name in ("cut", "final state"):
            table.add_column(name)
        for name in ("wire", "effects"):
            table.add_column(name, justify="right")
        for one in self.as_dict()["operations"]:
            style = "bold red" if one["lost"] or one["effects"] > 1 else None
            cells = [one[name] for name in _COLUMNS]
            table.add_row(*("-" if cell is None else str(cell) for cell in cells), style=style)
        return table

    def _operation(self, judged: Judged) -> dict[str, Any]:
        row = judged.row
        return {
            "operation": judged.answer.name,
            "id": judged.answer.operation_id,
            "ack_ms": judged.answer.ack_ms,
            "attempts": row.attempts if row else 0,
            "passes": row.passes if row else 0,
            "cut": self.cut(judged),
            "state": row.state if row else None,
            "wire": judged.wire,
            "effects": judged.effects,
            "lost": judged.lost,
        }


_COLUMNS = ("operation", "ack_ms", "attempts", "passes", "cut", "state", "wire", "effects")


def _cut_at_ceiling(
    events: Sequence[Mapping[str, Any]], answers: Sequence[Answer]
) -> frozenset[str]:
    """Return the operations whose requests the platform cut.

    The recorder knows requests, not operations: a request is the one whose answer ended closest to
    the instant at which a client got its answer.
    """
    cut = {event["invocation_id"] for event in events if event["kind"] == "cut"}
    started_ms = 0.0
    found = set()
    for event in events:
        if event["kind"] == "started":
            started_ms = event["fields"]["wall_ms"] - event["at_s"] * 1000
        if event["kind"] == "response_end" and event["invocation_id"] in cut:
            found.add(_nearest(answers, started_ms + event["at_s"] * 1000))
    return frozenset(found)


def _nearest(answers: Sequence[Answer], at_ms: float) -> str:
    nearest = min(answers, key=lambda answer: abs(answer.at_ms - at_ms))
    return nearest.operation_id or ""
