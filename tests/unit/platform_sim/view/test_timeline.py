"""A recording in words: what belongs together is told together, on one axis of time."""

from collections.abc import Iterable
from typing import Any

import pytest

from platform_sim.view.event import EventKind
from platform_sim.view.phrases import phrase
from platform_sim.view.recording import Recorded
from platform_sim.view.timeline import as_text, chapters, concerning

WALL_MS = 1_700_000_000_000


def line(
    at_s: float, kind: str, invocation_id: str = "", *, origin: str = "web-1", **fields: Any
) -> Recorded:
    """Return one line."""
    return Recorded(origin=origin, at_s=at_s, kind=kind, invocation_id=invocation_id, fields=fields)


def recorded() -> Iterable[Recorded]:
    """Return a request whose work is cut, and the run that finishes it."""
    started: dict[str, Any] = {"profile": "workers", "allowance_s": 1.0, "cut": "kill"}
    yield line(0.0, "started", wall_ms=WALL_MS, **started)
    yield line(1.0, "request", "1", name="POST /operations")
    yield line(1.1, "action", "1", action="accepted", operation_id="op", level="info")
    yield line(1.1, "response_start", "1", status=202)
    yield line(1.2, "response_end", "1", how="complete", remaining_s=1.0)
    yield line(0.0, "started", origin="redrive", wall_ms=WALL_MS + 500, **started)
    yield line(0.1, "request", "2", name="GET /")
    yield line(2.2, "cut", "1", text="kill at 2.2 (ceiling): pass", names=["pass"])
    yield line(2.2, "context_end", "1", reason="ceiling")
    yield line(2.5, "run_started", "run 1", origin="redrive", name="handler.redrive:run")
    yield line(2.6, "action", "run 1", origin="redrive", action="taken_over", operation_id="op")
    yield line(2.7, "action", "run 1", origin="redrive", action="claimed", operation_id="other")


def test_a_request_a_run_and_a_process_each_have_a_chapter() -> None:
    """In the order in which they begin by the wall clock."""
    told = chapters(recorded())

    names = [(chapter.origin, chapter.invocation_id) for chapter in told]
    assert names == [
        ("web-1", ""),
        ("web-1", "2"),
        ("redrive", ""),
        ("web-1", "1"),
        ("redrive", "run 1"),
    ]


def test_the_text_counts_from_the_start_of_each_chapter() -> None:
    """The title says when that was."""
    text = list(as_text(concerning(chapters(recorded()), "1")))

    assert text == [
        "request 1 (web-1) from 2023-11-14 22:13:21.000 UTC",
        "  +    0.000  POST /operations",
        "  +    0.100  app: accepted operation_id=op",
        "  +    0.100  answer begins: 202",
        "  +    0.200  response over (complete), allowance left 1 s",
        "  +    1.200  CUT kill at 2.2 (ceiling): pass",
        "  +    1.200  over (ceiling)",
        "",
        "run 1 (redrive) from 2023-11-14 22:13:23.100 UTC",
        "  +    0.000  app: taken_over operation_id=op",
        "",
    ]


def test_the_process_has_a_title_too() -> None:
    """Facts that belong to no request."""
    assert next(as_text(chapters(recorded()))).startswith("process (web-1) from ")


def test_a_request_without_operations_stands_alone() -> None:
    """And one that is not there is nothing."""
    told = chapters(recorded())

    assert [chapter.invocation_id for chapter in concerning(told, "2")] == ["2"]
    assert concerning(told, "9") == []


FIELDS = {
    "action": "accepted",
    "after_cut": True,
    "allowance_s": None,
    "by": "app",
    "created": "created at a.py:1 in f",
    "cut": "kill",
    "ending": "completed",
    "error": "boom",
    "frozen_s": 3.0,
    "how": "complete",
    "limit_s": 4.0,
    "name": "send",
    "profile": "workers",
    "reason": "done",
    "remaining_s": None,
    "status": 202,
    "summary": {"claimed": 1, "lost": 0},
    "task": 1,
    "text": "words",
}


@pytest.mark.parametrize("kind", list(EventKind))
def test_every_kind_of_event_has_words_of_its_own(kind: EventKind) -> None:
    """None falls back to its fields."""
    assert not phrase(kind, FIELDS).startswith(f"{kind} ")


@pytest.mark.parametrize(
    ("kind", "fields", "words"),
    [
        ("task_done", {"task": 1, "name": "a", "after_cut": False}, "work 1 ended: a"),
        ("task_done", {"task": 1, "name": "a", "after_cut": True}, "work 1 ended after its cut: a"),
        ("task_cancelled", {"task": 1, "name": "a", "by": "platform"}, "work 1 cut: a"),
        (
            "run_ended",
            {"ending": "completed", "summary": {"claimed": 2}},
            "run completed claimed=2",
        ),
        ("run_ended", {"ending": "failed", "error": "E: x"}, "run failed: E: x"),
        ("tomorrow", {"a": 1, "level": "info", "b": None}, "tomorrow a=1"),
        ("request", {}, "request"),
    ],
)
def test_words_follow_the_fields(kind: str, fields: dict[str, Any], words: str) -> None:
    """What is not as expected is still said."""
    assert phrase(kind, fields) == words
