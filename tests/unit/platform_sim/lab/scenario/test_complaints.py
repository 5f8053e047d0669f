"""What a decoder says, in words for who wrote the file."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal

import msgspec
import pytest

from platform_sim.lab.scenario.complaints import complaint, named


class Colour(StrEnum):
    """A closed set."""

    RED = "red"
    BLUE = "blue"


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    """A table in a table."""

    colour: Colour | None = None
    shades: tuple[Colour, ...] = ()
    size: Annotated[Literal["s", "m"], "unused"] = "s"
    sub: Mapping[str, int] = {}


class Outer(msgspec.Struct):
    """A whole file."""

    rows: list[Inner] = []
    by_name: Mapping[str, Inner] = {}
    nested: Mapping[str, Mapping[str, int]] = {}
    colours: Mapping[Literal["sky", "sea"], Colour] = {}


def said_of(document: dict[str, Any]) -> str:
    """Return what is said of a document."""
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.convert(document, Outer)
    return complaint(document, Outer, caught.value)


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"rows": [{}, {"colour": "x"}]}, "rows[1].colour: Invalid enum value 'x'; there are: "),
        ({"rows": [{"shades": ["red", "x"]}]}, "rows[0].shades[1]: Invalid enum value 'x'; there"),
        ({"rows": [{"size": "x"}]}, "rows[0].size: Invalid enum value 'x'; there are: s, m"),
        ({"by_name": {"a": {}, "b": {"colour": 3}}}, "by_name.b.colour: Expected `str | null`"),
        ({"by_name": {"a": {"sub": {"x": 1, "y": "z"}}}}, "by_name.a.sub.y: Expected `int`"),
        ({"by_name": {"a": {"foo": 1}}}, "by_name.a.foo: there is no such key; there are: colour"),
        ({"rows": [{"colr": "x"}]}, "rows[0].colr: there is no such key; did you mean `colour`?"),
        ({"by_name": {"a": {"colour": "x"}}}, "by_name.a.colour: Invalid enum value 'x'; there"),
        ({"nested": {"a": {"b": 1}, "c": {"d": "e"}}}, "nested.c.d: Expected `int`, got `str`"),
        ({"colours": {"sky": "x"}}, "colours.sky: Invalid enum value 'x'; there are: red, blue"),
        ({"colours": {"soil": "red"}}, "colours: this name cannot be used: Invalid enum value"),
        ({"rows": 3}, "rows: Expected `array`, got `int`"),
    ],
)
def test_a_complaint_names_the_key_and_the_words(document: dict[str, Any], said: str) -> None:
    """Also under names that the file itself gave."""
    assert said in said_of(document)


def test_a_name_that_is_not_found_again_stays_open() -> None:
    """Better a vague place than none."""
    error = msgspec.ValidationError("Expected `int`, got `str` - at `$.by_name[...].sub`")

    assert complaint({"by_name": {"a": {}}}, Outer, error).startswith("by_name[...].sub: ")


def test_a_message_may_be_put_under_a_key() -> None:
    """For values that are decoded apart from the rest."""
    assert named("Expected `int` - at `$.x`", "handler") == "handler.x: Expected `int`"
    assert named("Object contains unknown field `x`", "handler") == (
        "handler.x: there is no such key"
    )
    assert named("no path") == "no path"
