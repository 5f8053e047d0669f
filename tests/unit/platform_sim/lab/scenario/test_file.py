"""Every key of the format stands in its documentation."""

import re
from pathlib import Path

import msgspec
import pytest

from platform_sim.lab.scenario.expectations import Expect, Totals
from platform_sim.lab.scenario.faults import Act, Fault, StoreFailure
from platform_sim.lab.scenario.file import Client, Platform, Receiver, Redrive, Request, Scenario
from platform_sim.lab.scenario.invariants import INVARIANTS
from platform_sim.lab.scenario.reading import parse_scenario
from platform_sim.world.network import Turn
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


def test_every_act_and_every_failure_is_documented() -> None:
    """The words of the closed sets."""
    assert [act.value for act in Act if f"`{act.value}`" not in DOCS] == []
    assert [how.value for how in StoreFailure if f"`{how.value}`" not in DOCS] == []
    assert [name for name in INVARIANTS if f"({name[0]})" not in DOCS] == []


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
