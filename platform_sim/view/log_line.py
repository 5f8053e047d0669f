"""Log line: what a process logged for machines, made readable for a person who watches.

Processes log one JSON object a line. A person wants the action and its facts, and no line at all
for a scheduled run that found nothing to do. Anything that is no such object is shown as it is.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

__all__ = ["readable"]

_MACHINE_ONLY = frozenset({"action", "event", "level", "timestamp"})
_SAID_BY_THE_RUN = frozenset({"redrive_started", "redrive_ended"})


def readable(line: str) -> str | None:
    """Return the line for people, or None when it tells them nothing."""
    try:
        content = msgspec.json.decode(line)
    except msgspec.DecodeError:
        return line
    if not isinstance(content, dict):
        return line
    if {"run", "ending", "took_s"} <= content.keys():
        return _run(content)
    action = content.get("action") or content.get("event")
    if not isinstance(action, str):
        return line
    if action in _SAID_BY_THE_RUN:
        return None
    facts = {name: value for name, value in content.items() if name not in _MACHINE_ONLY}
    return " ".join([action, *_words(facts)])


def _run(content: Mapping[str, Any]) -> str | None:
    """Describe a scheduled run; one that was completed and did nothing is not worth a line."""
    did = list(_words({"summary": content.get("summary")}, empty=(None, 0, "", {})))
    if content["ending"] == "completed" and not did:
        return None
    error = [content["error"]] if content.get("error") else []
    return " ".join([f"run {content['ending']} in {content['took_s']:g} s:", *error, *did])


def _words(facts: Mapping[str, Any], *, empty: tuple[Any, ...] = (None,)) -> Iterator[str]:
    """Yield `name=value` for each fact that is not empty, those inside other facts too."""
    for name, value in facts.items():
        if isinstance(value, dict):
            yield from _words(value, empty=empty)
        elif value not in empty:
            yield f"{name}={value}"
