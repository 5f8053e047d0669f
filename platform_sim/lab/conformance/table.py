"""The table of agreement, as text and as JSON.

Rules: every trace has a line; what is not claimed stands apart, with its reason.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from platform_sim.lab.conformance.compare import EITHER_ORDER_S, TOLERANCE_S
from platform_sim.lab.conformance.verdict import Verdict

__all__ = ["as_json", "as_text"]

_AGREES = {True: "yes", False: "NO"}


def as_json(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """Return the table as JSON values."""
    return {
        "tolerance_s": TOLERANCE_S,
        "either_order_s": EITHER_ORDER_S,
        "agree": _count(verdicts, agrees=True),
        "disagree": _count(verdicts, agrees=False),
        "not_claimed": _count(verdicts, agrees=None),
        "scenarios": [verdict.as_dict() for verdict in verdicts],
    }


def as_text(verdicts: Sequence[Verdict]) -> str:
    """Return the table as lines for people."""
    return "\n".join(_lines(verdicts))


def _lines(verdicts: Sequence[Verdict]) -> Iterator[str]:
    width = max(len("scenario"), *(len(verdict.scenario) for verdict in verdicts))
    claimed = [verdict for verdict in verdicts if verdict.agrees is not None]
    others = [verdict for verdict in verdicts if verdict.agrees is None]
    if claimed:
        yield f"{'scenario':<{width}}  agrees  first difference"
    for verdict in claimed:
        agrees = _AGREES[bool(verdict.agrees)]
        yield f"{verdict.scenario:<{width}}  {agrees:<6}  {_remark(verdict)}".rstrip()
    if others:
        yield ""
        yield f"{'not claimed':<{width}}  reason"
    for verdict in others:
        yield f"{verdict.scenario:<{width}}  {verdict.reason}"
    yield ""
    yield (
        f"{_count(verdicts, agrees=True)} agree, {_count(verdicts, agrees=False)} disagree, "
        f"{_count(verdicts, agrees=None)} are not claimed (times within {TOLERANCE_S:g} s; events "
        f"within {EITHER_ORDER_S:g} s in either order)"
    )


def _remark(verdict: Verdict) -> str:
    notes = f"({'; '.join(verdict.notes)})" if verdict.notes else ""
    return " ".join(part for part in (verdict.first_difference or "-", notes) if part)


def _count(verdicts: Sequence[Verdict], *, agrees: bool | None) -> int:
    return sum(verdict.agrees is agrees for verdict in verdicts)
