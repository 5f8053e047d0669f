"""Reading rows: what must be there, and what may be missing or broken."""

from dataclasses import fields

import pytest

from storage.attributes import Attribute
from storage.errors import BrokenMarker
from storage.marker import Marker
from storage.replies import read_marker
from tests.support.rows import claimed_row

REQUIRED = [
    "operation_id",
    "state",
    "destination",
    "payload",
    "fingerprint",
    "accept_id",
    "created_at_ms",
    "updated_at_ms",
]


@pytest.mark.parametrize("name", REQUIRED)
@pytest.mark.parametrize("broken", [None, 1.5, True, {"L": []}], ids=str)
def test_a_row_without_what_nothing_works_without_is_broken(name: str, broken: object) -> None:
    """The message names the operation and the attribute."""
    with pytest.raises(BrokenMarker, match=f"{name} is missing or unreadable"):
        read_marker(claimed_row() | {name: broken})


def test_a_row_in_a_state_nobody_knows_is_broken() -> None:
    """A newer release may have written it; guessing would be worse."""
    with pytest.raises(BrokenMarker, match="op: state is missing or unreadable"):
        read_marker(claimed_row(state="frozen"))


def test_everything_else_may_be_missing_or_broken() -> None:
    """A row keeps its rights as long as it says who and what it is."""
    row = claimed_row()
    bare = {name: row[name] for name in REQUIRED}
    broken: dict[str, object] = {name: {"L": []} for name in Attribute if name not in REQUIRED}

    assert read_marker(bare) == read_marker(bare | broken)


@pytest.mark.parametrize(
    ("state", "stored", "unknown"),
    [
        ("claimed", None, True),
        ("uncertain", "yes", True),
        ("undelivered", None, False),
        ("claimed", False, False),
        ("undelivered", True, True),
    ],
)
def test_an_unreadable_unknown_is_unknown_unless_known_undelivered(
    state: str, stored: object, *, unknown: bool
) -> None:
    """Unknown stays unknown; a claim alone means that it may have been sent."""
    assert unknown == read_marker(claimed_row(state=state, unknown=stored)).unknown


def test_every_attribute_has_its_field() -> None:
    """Two names differ from their field's: an index key and the TTL attribute."""
    renamed = {"due_at": "due_at_ms", "expires_at": "expires_at_s"}

    assert {renamed.get(name, name) for name in Attribute} == {each.name for each in fields(Marker)}
