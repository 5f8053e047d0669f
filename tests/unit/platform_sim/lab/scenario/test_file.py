"""Every key of the format stands in its documentation."""

import re
import typing
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
import pytest

from handler.destinations import Destination
from platform_sim.lab.scenario.expectations import Expect, Totals
from platform_sim.lab.scenario.faults import Act, Fault, StoreFailure, keys_of
from platform_sim.lab.scenario.file import (
    Client,
    Leaving,
    Platform,
    Receiver,
    Redrive,
    Request,
    Scenario,
)
from platform_sim.lab.scenario.invariants import INVARIANTS
from platform_sim.lab.scenario.reading import parse_scenario
from platform_sim.lab.scenario.vocabulary import ABSENT, CUT, POINTS
from platform_sim.lifetime.profile import CutMode
from platform_sim.wiring.lab import OutlastProduct
from platform_sim.world.network import Turn
from platform_sim.world.script import Commit, Then
from tests.support.scenarios import world

DOCS = (Path(__file__).parents[5] / "docs" / "scenarios.md").read_text("utf-8")
SECTIONS: dict[str, type[msgspec.Struct]] = {
    "Top level": Scenario,
    "[platform]": Platform,
    "[receivers.NAME]": Receiver,
    "replies": Turn,
    "[[requests]]": Request,
    "client": Client,
    "[[faults]]": Fault,
    "[redrive]": Redrive,
    "[[expect]]": Expect,
    "[[totals]]": Totals,
}


def section(title: str) -> str:
    """Return the documentation of one table."""
    found = re.search(rf"^### {re.escape(title)}.*?(?=^##|\Z)", DOCS, re.DOTALL | re.MULTILINE)
    assert found is not None, title
    return found.group(0)


@pytest.mark.parametrize("title", SECTIONS)
def test_every_key_is_documented_with_its_unit_and_default(title: str) -> None:
    """And no key that there is not."""
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \| (.+?) \| (.+?) \|$", section(title), re.MULTILINE)
    fields = {field.name: field for field in msgspec.structs.fields(SECTIONS[title])}

    assert [name for name, *_ in rows] == list(fields)
    for name, unit, default, _ in rows:
        assert (unit == "s") is name.endswith("_s"), name
        stated = fields[name].default
        if isinstance(stated, float | int) and not isinstance(stated, bool):
            assert default == f"`{stated:g}`", name


WORDS = OutlastProduct().words()
CLOSED_SETS: dict[str, Iterable[str]] = {
    "`do`": Act,
    "`how` of a fault": StoreFailure,
    "`how` of a client": Leaving,
    "`leaves_at`": ["answer"],
    "`cut`": CutMode,
    "`commit`": Commit,
    "`then`": Then,
    "keys of `statuses`": [name for name in Destination.__struct_fields__ if name.endswith("_on")],
    "keys of `attributes`": ["claim_id", "lease_until_ms"],
    "`calls`": WORDS.calls,
    "`state`, keys of `states`": WORDS.states | {ABSENT},
    "`history`, `answer_states`": WORDS.states,
    "`outcomes`": WORDS.outcomes | {CUT},
    "`last_outcome`": WORDS.outcomes,
    "`answers`": ["dropped"],
    "`at`, keys of `counts`": WORDS.actions | POINTS,
    "`startup`": ["complete", "refused"],
}


@pytest.mark.parametrize("keys", CLOSED_SETS)
def test_every_word_of_every_closed_set_is_documented(keys: str) -> None:
    """And none that there is not."""
    chapter = DOCS.partition("\n## The words\n")[2].partition("\n## ")[0]
    row = re.search(rf"^\| {re.escape(keys)} \| (.*?) \|$", chapter, re.MULTILINE)

    assert row is not None
    assert sorted(re.findall(r"`(\w+)`", row[1])) == sorted(str(word) for word in CLOSED_SETS[keys])


@pytest.mark.parametrize("act", Act)
def test_what_a_fault_does_is_documented_with_the_keys_it_takes(act: Act) -> None:
    """Those it needs, and those it may have besides the common ones."""
    row = re.search(rf"^\| `{act}` \| (.*?) \| (.*?) \| (.+?) \|$", DOCS, re.MULTILINE)
    needed, allowed = keys_of(act)

    assert row is not None
    assert re.findall(r"`(\w+)`", row[1]) == sorted(needed)
    assert re.findall(r"`(\w+)`", row[2]) == sorted(allowed)


def test_every_failure_of_the_store_and_every_promise_is_described() -> None:
    """A failure by a row of its own, a promise by its number."""
    assert [how.value for how in StoreFailure if f"\n| `{how.value}` | " not in DOCS] == []
    assert [name for name in INVARIANTS if f"({name[0]})" not in DOCS] == []


def test_a_table_is_called_a_table() -> None:
    """Not by what is in it."""
    for title, kind in SECTIONS.items():
        for field in msgspec.structs.fields(kind):
            if typing.get_origin(field.type) in {dict, Mapping}:
                assert f"| `{field.name}` | table" in section(title), field.name


@pytest.mark.parametrize(
    ("keys", "dedupes"),
    [
        ("", True),
        ("idempotent = false", False),
        ("dedupes = false", False),
        ("idempotent = false\ndedupes = true", True),
    ],
)
def test_a_receiver_does_what_it_is_declared_to_do_unless_said_otherwise(
    keys: str, *, dedupes: bool
) -> None:
    """What it promises and what it does may differ."""
    scenario = parse_scenario(world(f"[receivers.r]\n{keys}"))

    assert scenario.receivers["r"].does_dedupe is dedupes
