"""Reading a scenario file: TOML into a checked `Scenario`, or one message that names the key.

Rules: what a single key may be stands in its type; what only several keys together can say is
checked here: names that are used and not there, instants after the end, rows that are too long. A
scenario that is returned can be played to its end.

Not here: words of the product (`vocabulary`).
"""

import datetime as dt
import math
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from platform_sim.lab.scenario.asks import asks_of, count_of, is_named
from platform_sim.lab.scenario.complaints import complaint
from platform_sim.lab.scenario.errors import BadScenario
from platform_sim.lab.scenario.file import Scenario
from platform_sim.lab.scenario.table import MOST_REQUESTS, MOST_RUNS

__all__ = ["parse_scenario", "read_scenario", "scenario_of"]


def read_scenario(path: Path) -> Scenario:
    """Read a scenario file.

    Raises:
        BadScenario: It cannot be read, or something in it is not allowed.
    """
    try:
        return parse_scenario(path.read_text("utf-8"))
    except OSError as error:
        raise BadScenario(f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadScenario(f"is not UTF-8: {error}") from error


def parse_scenario(text: str) -> Scenario:
    """Read a scenario from TOML text.

    Raises:
        BadScenario: Something in it is not allowed; the message names the key.
    """
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadScenario(f"is not TOML: {error}") from error
    return scenario_of(document)


def scenario_of(document: Mapping[str, Any]) -> Scenario:
    """Read a scenario from what its TOML says.

    Raises:
        BadScenario: Something in it is not allowed; the message names the key.
    """
    for path, problem in _not_plain(document, ""):
        raise BadScenario(f"{path}: {problem}")
    try:
        scenario = msgspec.convert(document, Scenario)
    except msgspec.ValidationError as error:
        raise BadScenario(complaint(document, Scenario, error)) from error
    for problem in _problems(scenario):
        raise BadScenario(problem)
    return scenario


def _not_plain(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yield what TOML can say and no scenario can use, by its path."""
    match value:
        case dict():
            for key, inner in value.items():
                yield from _not_plain(inner, f"{path}.{key}" if path else key)
        case list():
            for place, inner in enumerate(value):
                yield from _not_plain(inner, f"{path}[{place}]")
        case float() if not math.isfinite(value):
            yield path, f"{value} is not a finite number"
        case dt.date() | dt.time():
            yield path, "dates and times have no place here; instants are seconds"
        case _:
            return


def _problems(scenario: Scenario) -> Iterator[str]:
    yield from _request_problems(scenario)
    yield from _fault_problems(scenario)
    yield from _redrive_problems(scenario)
    yield from _expectation_problems(scenario)


def _request_problems(scenario: Scenario) -> Iterator[str]:
    webs = _replicas("web", scenario.platform.web_replicas)
    for place, request in enumerate(scenario.requests):
        where = f"requests[{place}]"
        if request.destination not in scenario.receivers and request.destination != "?":
            known = _no_name("receiver", request.destination, scenario.receivers)
            yield f"{where}.destination: {known}"
        if request.replica not in webs:
            yield f"{where}.replica: {_no_name('web replica', request.replica, webs)}"
        for at_s in request.repeats_at_s:
            yield from _late(f"{where}.repeats_at_s", at_s, scenario)
        yield from _late(f"{where}.at_s", request.at_s, scenario)
        yield from _late(
            f"{where}.every_s", request.at_s + (request.count - 1) * request.every_s, scenario
        )
    if sum(count_of(request) for request in scenario.requests) > MOST_REQUESTS:
        yield f"requests: rows and repeats come to more than {MOST_REQUESTS} requests"
        return
    keys: dict[str, str | None] = {}
    for ask in asks_of(scenario):
        if ask.name in keys and (ask.key is None or ask.key != keys[ask.name]):
            yield f"requests[{ask.place}].name: {ask.name!r} is another request's name already"
        keys[ask.name] = ask.key


def _fault_problems(scenario: Scenario) -> Iterator[str]:
    replicas = (
        *_replicas("web", scenario.platform.web_replicas),
        *_replicas("redrive", scenario.redrive.replicas),
    )
    names = {ask.name for ask in asks_of(scenario)}
    for place, fault in enumerate(scenario.faults):
        where = f"faults[{place}]"
        if fault.replica is not None and fault.replica not in replicas:
            yield f"{where}.replica: {_no_name('replica', fault.replica, replicas)}"
        if fault.receiver is not None and fault.receiver not in scenario.receivers:
            yield f"{where}.receiver: {_no_name('receiver', fault.receiver, scenario.receivers)}"
        if fault.operation is not None and fault.operation not in names:
            yield f"{where}.operation: {_no_name('request', fault.operation, names)}"
        if fault.at_s is not None:
            yield from _late(f"{where}.at_s", fault.at_s, scenario)


def _redrive_problems(scenario: Scenario) -> Iterator[str]:
    plan = scenario.redrive
    if plan.first_at_s is not None:
        yield from _late("redrive.first_at_s", plan.first_at_s, scenario)
    if plan.replicas * scenario.run_for_s / plan.every_s > MOST_RUNS:
        yield f"redrive.every_s: {plan.every_s:g} makes more than {MOST_RUNS} runs"


def _expectation_problems(scenario: Scenario) -> Iterator[str]:
    names = {ask.name for ask in asks_of(scenario)}
    for place, expect in enumerate(scenario.expect):
        where = f"expect[{place}]"
        if not any(is_named(name, expect.operation) for name in names):
            yield f"{where}.operation: {_no_name('request', expect.operation, names)}"
        if expect.at_s is not None:
            yield from _late(f"{where}.at_s", expect.at_s, scenario)
    for place, totals in enumerate(scenario.totals):
        if totals.at_s is not None:
            yield from _late(f"totals[{place}].at_s", totals.at_s, scenario)


def _late(where: str, at_s: float, scenario: Scenario) -> Iterator[str]:
    if at_s > scenario.run_for_s:
        yield f"{where}: {at_s:g} s is after the end (run_for_s = {scenario.run_for_s:g})"


def _replicas(kind: str, count: int) -> tuple[str, ...]:
    return tuple(f"{kind}-{number}" for number in range(1, count + 1))


_SHOWN_NAMES = 10


def _no_name(kind: str, name: str, known: Any) -> str:
    shown = sorted(known)[:_SHOWN_NAMES]
    more = ", ..." if len(known) > _SHOWN_NAMES else ""
    return f"no {kind} is named {name!r}; there are: {', '.join(shown) or 'none'}{more}"
