"""Rendering: what a condition means here is what it means to DynamoDB."""

import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from storage.attributes import Attribute, AttributeType, Row
from storage.builders import RequestBuilder
from storage.conditions import (
    AllOf,
    AnyOf,
    AtMost,
    Condition,
    Equal,
    Missing,
    Not,
    OfType,
    OneOf,
)
from storage.marker import Claim, Draft, Settlement
from storage.replies import read_marker
from storage.requests import PutMarker, ReadMarker, Request
from storage.states import Event
from storage.table import create_table
from storage.transport.base import FoundRow
from storage.transport.memory import holds
from storage.transport.render import read_answer, render
from tests.support.rows import NOW_MS, claimed_row, typed
from tests.support.stores import LocalStore

TABLE = "outlast-render"

attributes = st.sampled_from([Attribute.STATE, Attribute.CLAIM_ID, Attribute.LEASE_UNTIL_MS])
texts = st.sampled_from(["claimed", "parked", "7", ""])
numbers = st.sampled_from([-1, 0, 7, 1_700_000_000_000])
leaves = st.one_of(
    st.builds(Missing, attributes),
    st.builds(Equal, attributes, texts | numbers),
    st.builds(OneOf, attributes, st.lists(texts, min_size=1, max_size=3).map(tuple)),
    st.builds(OfType, attributes, st.sampled_from(AttributeType)),
    st.builds(AtMost, attributes, numbers),
)
conditions: st.SearchStrategy[Condition] = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(Not, inner),
        st.builds(AllOf, st.lists(inner, min_size=1, max_size=3).map(tuple)),
        st.builds(AnyOf, st.lists(inner, min_size=1, max_size=3).map(tuple)),
    ),
    max_leaves=6,
)
values = st.one_of(texts, numbers, st.booleans(), st.just(b"7"))
rows = st.dictionaries(attributes.map(str), values, max_size=3)


@pytest.fixture(scope="session", params=["moto", "dynoxide"])
def server(request: pytest.FixtureRequest) -> LocalStore:
    """Return each DynamoDB implementation in turn."""
    started: LocalStore = request.getfixturevalue(request.param)
    create_table(started.client, TABLE)
    return started


@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(row=rows, condition=conditions)
def test_a_condition_holds_here_exactly_when_it_holds_there(
    server: LocalStore, row: Row, condition: Condition
) -> None:
    """Memory decides as DynamoDB does, and no condition is one that DynamoDB refuses to read."""
    stored = dict(row) | {"operation_id": "op"}
    server.client.put_item(TableName=TABLE, Item=typed(stored))
    put = PutMarker(
        table_name=TABLE, event=Event.ACCEPT, row={"operation_id": "op"}, condition=condition
    )
    refused = False

    try:
        server.client.put_item(**render(put).parameters)
    except server.client.exceptions.ConditionalCheckFailedException:
        refused = True

    assert holds(condition, stored) == (not refused)


BUILDER = RequestBuilder(table_name="t", shard_count=4, retention_s=60, skew_margin_s=5.0)
HELD = read_marker(claimed_row())
DRAFT = Draft(operation_id="op", accept_id="a", destination="d", payload=b"", fingerprint="f")
CLAIM = Claim(claim_id="c", lease_s=1.0)
REQUESTS: list[Request] = [
    BUILDER.accept(DRAFT, CLAIM, due_at_ms=None, now_ms=NOW_MS),
    BUILDER.claim("op", CLAIM, now_ms=NOW_MS),
    BUILDER.takeover(HELD, CLAIM, now_ms=NOW_MS),
    BUILDER.heartbeat(HELD, 1.0, now_ms=NOW_MS),
    BUILDER.confirm("op", Settlement(), now_ms=NOW_MS),
    BUILDER.release(HELD, Settlement(), uncertain=True, due_at_ms=1, now_ms=NOW_MS),
    BUILDER.requeue(HELD, now_ms=NOW_MS),
    BUILDER.due("n00", until_ms=1, limit=1),
]


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda each: type(each).__name__)
def test_every_placeholder_is_used_and_every_name_is_one(request_: Request) -> None:
    """DynamoDB refuses unused placeholders, and reserved words (`state`) outside of them."""
    parameters = dict(render(request_).parameters)
    expressions = " ".join(
        parameters.get(f"{kind}Expression", "") for kind in ("Condition", "Update", "KeyCondition")
    )

    used = set(re.findall(r"[#:]\w+", expressions))
    bare = set(re.findall(r"(?<![#:\w])[a-z]\w*", expressions))

    defined = {*parameters["ExpressionAttributeNames"], *parameters["ExpressionAttributeValues"]}
    assert defined == used
    assert bare <= {"attribute_not_exists", "attribute_type", "if_not_exists"}


@pytest.mark.parametrize(
    ("item", "value"),
    [
        ({"N": "-12"}, -12),
        ({"N": "1.5"}, 1.5),
        ({"S": ""}, ""),
        ({"BOOL": False}, False),
        ({"B": b"\x00"}, b"\x00"),
        ({"NULL": True}, {"NULL": True}),
        ({"SS": ["a"]}, {"SS": ["a"]}),
    ],
    ids=str,
)
def test_whatever_stands_in_a_row_can_be_read(item: dict[str, Any], value: object) -> None:
    """What we would never write stays in its typed form, and breaks nothing."""
    request = ReadMarker(table_name="t", operation_id="op")

    assert FoundRow(row={"x": value}) == read_answer(request, {"Item": {"x": item}})
