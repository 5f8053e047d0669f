"""Traces in tests, written down line by line."""

import json
from typing import Any

from platform_sim.lab.conformance.trace import Source, Trace, TraceEvent, read_trace

__all__ = ["emulated", "lines", "trace"]


def lines(*events: tuple[Any, ...], scenario: str = "mine") -> bytes:
    """Write events (t, src, event, fields) as JSON lines."""
    written = []
    for at_s, source, name, *fields in events:
        event = {"scenario": scenario, "t": at_s, "src": source, "event": name}
        written.append(json.dumps({**event, **(fields[0] if fields else {})}))
    return "\n".join(written).encode() + b"\n"


def trace(*events: tuple[Any, ...], scenario: str = "mine") -> Trace:
    """Read events (t, src, event, fields) as a trace."""
    return read_trace(lines(*events, scenario=scenario), "mine.jsonl")


def emulated(*events: tuple[Any, ...]) -> list[TraceEvent]:
    """Write events (t, src, event, fields) as what an emulator did."""
    return [
        TraceEvent(at_s=at_s, source=Source(source), name=name, fields=fields[0] if fields else {})
        for at_s, source, name, *fields in events
    ]
