"""Scenarios for tests: small worlds from TOML text, played against the real product."""

from typing import Any

from platform_sim.lab.scenario.played import Played
from platform_sim.lab.scenario.reading import parse_scenario
from platform_sim.lab.scenario.report import OperationSeen, operations_seen
from platform_sim.lab.scenario.run import play
from platform_sim.lab.scenario.verdict import Verdict, judged
from platform_sim.wiring.lab import OutlastProduct

__all__ = ["ONE", "judge_text", "play_text", "seen_in", "world"]

ONE = """
[receivers.r]
replies = [{ status = 204 }]
[[requests]]
key = "a"
destination = "r"
"""
"""One request to a healthy receiver."""


def world(*parts: str, **top: Any) -> str:
    """Return a scenario's text: its top-level keys, then its tables."""
    head = {"name": "a test", **top}
    lines = [f"{key} = {_toml(value)}" for key, value in head.items()]
    return "\n".join([*lines, *parts])


def _toml(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value).lower()


def play_text(*parts: str, **top: Any) -> Played:
    """Play a scenario given as text."""
    return play(parse_scenario(world(*parts, **top)), OutlastProduct())


def judge_text(*parts: str, **top: Any) -> Verdict:
    """Play and judge a scenario given as text."""
    return judged(parse_scenario(world(*parts, **top)), OutlastProduct())


def seen_in(played: Played) -> dict[str, OperationSeen]:
    """Return what was seen of every operation at the end."""
    return operations_seen(played, played.end)
