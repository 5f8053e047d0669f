"""The single requests of a scenario: rows counted out, names and keys filled in.

Pure. A name stands for one operation: requests that share one share their key.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from platform_sim.lab.scenario.file import Request, Scenario
from platform_sim.world.clients import Client, Leave

__all__ = ["Ask", "asks_of", "client_of", "count_of", "is_named"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One request by its name.

    Attributes:
        name: What expectations call it.
        key: Its Idempotency-Key, or None.
        at_s: When it is sent, once for each instant.
        request: The rest of it.
        place: The request's place in the file, from 0.
    """

    name: str
    key: str | None
    at_s: tuple[float, ...]
    request: Request
    place: int


def count_of(request: Request) -> int:
    """Return how many requests a row comes to, its repeats included."""
    return request.count * (1 + len(request.repeats_at_s))


def asks_of(scenario: Scenario) -> Iterator[Ask]:
    """Yield every single request, in the file's order."""
    for place, request in enumerate(scenario.requests):
        for number in range(1, request.count + 1):
            name = request.name or request.key or f"request-{place + 1}"
            at_s = request.at_s + (number - 1) * request.every_s
            yield Ask(
                name=_numbered(name, number, request.count),
                key=None if request.key is None else _numbered(request.key, number, request.count),
                at_s=(at_s, *request.repeats_at_s),
                request=request,
                place=place,
            )


def is_named(name: str, pattern: str) -> bool:
    """Tell whether a name is the one a pattern gives; `*` stands for any characters."""
    parts = (re.escape(part) for part in pattern.split("*"))
    return re.fullmatch(".*".join(parts), name, re.DOTALL) is not None


def _numbered(text: str, number: int, count: int) -> str:
    if "{n}" in text or count == 1:
        return text.replace("{n}", str(number))
    return f"{text}-{number}"


def client_of(ask: Ask) -> Client:
    """Return the client that sends a request."""
    request = ask.request
    headers = {"content-type": "application/json"}
    if ask.key is not None:
        headers["idempotency-key"] = ask.key
    body = {"destination": request.destination, "payload": request.payload}
    described = request.client
    leave = Leave(after_s=described.leaves_after_s, at_answer=described.leaves_at == "answer")
    return Client(
        path="/operations",
        headers=headers,
        body=json.dumps(msgspec.to_builtins(body)).encode(),
        body_after_s=described.body_after_s,
        leave=leave,
    )
