"""Reading a trace: what is a line of it, and what is said of one that is none."""

import re
from pathlib import Path
from typing import Any

import pytest

from platform_sim.lab.conformance.trace import BadTrace, Source, Word, read_trace
from platform_sim.lab.conformance.words import FIELDS
from tests.support.traces import lines, trace

DOCS = (Path(__file__).parents[5] / "docs" / "conformance.md").read_text("utf-8")


def test_a_trace_is_read_in_order_of_time_and_keeps_what_else_was_seen() -> None:
    """The rest of a line's members are the event's fields."""
    read = trace(
        (2.0, "worker", "bg:done", {"n": 1}),
        (0, "client", "request:sent", {"path": "/x"}),
        (4.5, "driver", "observation:end"),
        scenario="s",
    )

    assert (read.scenario, read.end_s) == ("s", 4.5)
    assert [(e.at_s, str(e), e.fields, e.line) for e in read.events] == [
        (0.0, "client request:sent", {"path": "/x"}, 2),
        (2.0, "worker bg:done", {"n": 1}, 1),
        (4.5, "driver observation:end", {}, 3),
    ]
    assert [event.line for event in read.of(Source.WORKER, "bg:done", "request:sent")] == [1]


def test_blank_lines_and_windows_line_ends_are_no_events() -> None:
    """They are passed over, and counted."""
    content = lines((0, "worker", "a")).replace(b"\n", b"\r\n\r\n  \n") + lines((1, "worker", "b"))

    assert [event.line for event in read_trace(content, "x").events] == [1, 4]


SENT = '{"scenario": "s", "t": 0, "src": "client", "event": "request:sent", "path": "/"'
REPORT = '{"scenario": "s", "t": 0, "src": "tail", "event": "invocation:reported"'
GOOD = '{"scenario": "s", "t": 0, "src": "worker", "event": "a"}\n'


@pytest.mark.parametrize(
    ("line", "member", "problem"),
    [
        ("{", "line", "is no JSON object (Expecting property name"),
        ("[1]", "line", "is no JSON object but list"),
        ('{"t": 0, "src": "worker", "event": "a"}', "scenario", "is missing"),
        ('{"scenario": "s", "src": "worker", "event": "a"}', "t", "is missing"),
        ('{"scenario": "s", "t": 0, "event": "a"}', "src", "is missing"),
        ('{"scenario": "s", "t": 0, "src": "worker"}', "event", "is missing"),
        ('{"scenario": "", "t": 0, "src": "worker", "event": "a"}', "scenario", "'' is no name"),
        ('{"scenario": "s", "t": 0, "src": "worker", "event": 7}', "event", "7 is no name"),
        ('{"scenario": "s", "t": "0", "src": "worker", "event": "a"}', "t", "'0' is no number"),
        ('{"scenario": "s", "t": true, "src": "worker", "event": "a"}', "t", "True is no number"),
        ('{"scenario": "s", "t": -1, "src": "worker", "event": "a"}', "t", "-1 is no number"),
        ('{"scenario": "s", "t": NaN, "src": "worker", "event": "a"}', "t", "nan is no number"),
        (
            '{"scenario": "s", "t": 0, "src": "w", "event": "a"}',
            "src",
            "'w' is none of worker, client, tail, driver, process",
        ),
        ('{"scenario": "s", "t": 0, "src": [], "event": "a"}', "src", "[] is none of"),
        (
            '{"scenario": "s", "t": 0, "src": "client", "event": "request:sent"}',
            "path",
            "None is no path of a request",
        ),
        (
            '{"scenario": "s", "t": 0, "src": "client", "event": "request:sent", "path": "x"}',
            "path",
            "'x' is no path of a request",
        ),
        (
            '{"scenario": "s", "t": 0, "src": "client", "event": "disconnect", "how": "rst"}',
            "how",
            "'rst' is none of close, reset, halfclose",
        ),
        (
            '{"scenario": "s", "t": 0, "src": "client", "event": "disconnect", "how": {}}',
            "how",
            "{} is none of",
        ),
        (
            f'{REPORT}, "exceptions": "x"}}',
            "exceptions",
            "'x' is no list",
        ),
        (
            f'{REPORT}, "warnings": null}}',
            "warnings",
            "None is no list",
        ),
        (
            f'{SENT}, "headers": {{}}}}',
            "headers",
            "is no field of client request:sent; it has path, method",
        ),
        (
            f'{SENT}, "method": "get"}}',
            "method",
            "'get' is no method of a request, such as GET",
        ),
        (
            f'{SENT}, "method": null}}',
            "method",
            "None is no method",
        ),
        (
            '{"scenario": "s", "t": 0, "src": "driver", "event": "sched:dispatched", "cron": 5}',
            "cron",
            "5 is no text",
        ),
        (
            '{"scenario": "s", "t": 0, "src": "driver", "event": "SIGTERM sent", "pid": 5}',
            "pid",
            "is no field of driver SIGTERM sent; it has none",
        ),
        (
            '{"scenario": "s", "t": 0, "src": "process", "event": "exit"}',
            "event",
            "'exit' is none of process's: exited",
        ),
        (
            '{"scenario": "other", "t": 0, "src": "worker", "event": "a"}',
            "scenario",
            "'other', but the first line says 's': one file, one scenario",
        ),
    ],
)
def test_a_line_that_is_no_event_is_named_with_its_field(
    line: str, member: str, problem: str
) -> None:
    """File, line, field and what is wrong."""
    with pytest.raises(BadTrace) as caught:
        read_trace((GOOD + line).encode(), "my.jsonl")

    assert (caught.value.line, caught.value.member) == (2, member)
    assert str(caught.value).startswith(f"my.jsonl, line 2, {member}: {problem}")


FULL: dict[str, Any] = {"path": "/", "how": "close", "method": "POST", "cron": "* * * * *"}


@pytest.mark.parametrize(
    ("source", "word"), [(source, word) for source in FIELDS for word in FIELDS[source]]
)
def test_every_documented_event_is_read_with_its_fields(source: Source, word: Word) -> None:
    """And stands in the document, under its source and with each field."""
    fields = {name: FULL.get(name, []) for name in FIELDS[source][word]}

    assert trace((0, str(source), str(word), fields)).events[0].fields == fields
    if not word.startswith("queue:"):  # neither is played; it is named among what is not claimed
        row = re.search(rf"^\| {source} `{re.escape(word)}` \|(.*?)\|", DOCS, re.MULTILINE)
        assert row is not None
        assert [name for name in fields if f"`{name}`" not in row[1]] == []


@pytest.mark.parametrize("content", [b"", b"\n \n"])
def test_a_file_without_events_is_no_trace(content: bytes) -> None:
    """There is nothing to compare with."""
    with pytest.raises(BadTrace, match="line 1, scenario: the file has no event"):
        read_trace(content, "empty.jsonl")


def test_a_file_that_is_no_text_is_no_trace() -> None:
    """The line is named."""
    with pytest.raises(BadTrace, match="line 2, line: is not UTF-8"):
        read_trace(GOOD.encode() + b"\xff\xfe\n", "binary")


@pytest.mark.parametrize("fields", [{"how": "rst"}, {"path": 3}, {"exceptions": 3}])
def test_the_apps_own_log_is_free(fields: dict[str, Any]) -> None:
    """Also in events that bear the name of one that means something."""
    for name in ("disconnect", "request:sent", "invocation:reported"):
        read = trace((0, "worker", name, fields))

        assert read.events[0].fields == fields
