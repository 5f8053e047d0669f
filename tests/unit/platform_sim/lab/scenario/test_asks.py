"""Rows are counted out, names and keys filled in."""

import pytest

from platform_sim.lab.scenario.asks import asks_of, is_named
from platform_sim.lab.scenario.reading import parse_scenario
from tests.support.scenarios import world


def named(requests: str) -> list[tuple[str, str | None, tuple[float, ...]]]:
    """Return name, key and instants of each single request."""
    scenario = parse_scenario(world("[receivers.r]", requests))
    return [(ask.name, ask.key, ask.at_s) for ask in asks_of(scenario)]


def test_a_name_is_the_name_or_the_key_or_the_place() -> None:
    """Whatever is there first."""
    rows = "".join(
        f"[[requests]]\ndestination = 'r'\n{keys}\n"
        for keys in ("name='n'\nkey='k'", "key='l'", "")
    )

    assert [(name, key) for name, key, _ in named(rows)] == [
        ("n", "k"),
        ("l", "l"),
        ("request-3", None),
    ]


def test_a_row_has_names_keys_and_instants_of_its_own() -> None:
    """`{n}` counts, and stands at the end when it is not written."""
    row = "[[requests]]\ndestination='r'\nat_s=1.0\ncount=2\nevery_s=0.5\nrepeats_at_s=[9.0]\n"

    assert named(row + "key='k-{n}-x'") == [
        ("k-1-x", "k-1-x", (1.0, 9.0)),
        ("k-2-x", "k-2-x", (1.5, 9.0)),
    ]
    assert [(name, key) for name, key, _ in named(row + "key='k'")] == [
        ("k-1", "k-1"),
        ("k-2", "k-2"),
    ]
    assert [(name, key) for name, key, _ in named(row)] == [
        ("request-1-1", None),
        ("request-1-2", None),
    ]


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [("a-1", True), ("a-*", True), ("*", True), ("*-1", True), ("a", False), ("a-[1]", False)],
)
def test_only_the_asterisk_stands_for_others(pattern: str, *, matches: bool) -> None:
    """A name with brackets is a name."""
    assert is_named("a-1", pattern) is matches
    assert is_named("a-[1]", "a-[1]")
