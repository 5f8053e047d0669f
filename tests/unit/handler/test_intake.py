"""Intake: everything that is refused before anything is written."""

from collections.abc import Iterable

import msgspec
import pytest
from starlette.requests import Request

from handler.intake import Intake, read_intake
from handler.problems import Problem
from tests.support.virtual import run_virtual

LIMIT_BYTES = 1000


def read(
    *chunks: bytes, keys: Iterable[str] = (), leaves: bool = False, known: Iterable[str] = ("a",)
) -> Intake:
    """Read a request whose body comes in these chunks."""
    messages = iter(
        [{"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks]
        + [{"type": "http.disconnect"} if leaves else {"type": "http.request", "body": b""}]
    )

    async def receive() -> dict[str, object]:
        return next(messages)

    headers = [(b"idempotency-key", key.encode("latin-1")) for key in keys]
    request = Request({"type": "http", "method": "POST", "headers": headers}, receive)

    async def main() -> Intake:
        return await read_intake(
            request, destinations=set(known), max_payload_bytes=LIMIT_BYTES, max_key_chars=20
        )

    return run_virtual(main)


def refused(*chunks: bytes, keys: Iterable[str] = (), leaves: bool = False) -> Problem:
    """Return the problem a request is refused with."""
    with pytest.raises(Problem) as caught:
        read(*chunks, keys=keys, leaves=leaves)
    return caught.value


def body(payload: bytes, destination: bytes = b'"a"') -> bytes:
    """Return an envelope around a payload."""
    return b'{"destination": ' + destination + b', "payload": ' + payload + b"}"


def test_the_payload_is_kept_byte_for_byte() -> None:
    """Every attempt sends what the caller sent, spaces and all."""
    payload = b'{ "b":1.50,"a" : "\xc3\xa9"}'
    found = read(body(payload)[:20], body(payload)[20:], keys=[" order-1 "])

    assert (payload, "a", "order-1") == (found.payload, found.destination, found.key)


@pytest.mark.parametrize(
    "payload", [b"null", b"0", b'""', b"[]", b"{}", b"18446744073709551617", b"-0.0", b"1e400"]
)
def test_any_json_is_a_payload(payload: bytes) -> None:
    """Also numbers that no float or 64-bit integer holds."""
    found = read(body(payload))

    assert payload == found.payload
    assert found.key is None


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        (b'{"a":1,"b":[2]}', b' { "b" : [ 2 ] , "a" : 1 } ', True),
        (b'"\\u00e9"', '"é"'.encode(), True),
        (b"[1,2]", b"[2,1]", False),
        (b"1", b"2", False),
        (b"1", b'"1"', False),
        (b"1.5", b'"1.5"', False),
        (b"null", b"0", False),
        (b"12345678901234567890.12", b"12345678901234567890.13", False),
        (b"36893488147419103233", b"36893488147419103234", False),
        (b"1e400", b"1e401", False),
    ],
)
def test_the_fingerprint_is_of_the_meaning(first: bytes, second: bytes, *, same: bool) -> None:
    """Formatting does not matter; any difference in value does, to the last digit."""
    found = read(body(first)).fingerprint == read(body(second)).fingerprint

    assert same is found


def test_the_fingerprint_includes_the_destination() -> None:
    """The same payload for another receiver is another request."""
    first = read(body(b"1"), known=("a", "b"))
    second = read(body(b"1", b'"b"'), known=("a", "b"))

    assert first.fingerprint != second.fingerprint


@pytest.mark.parametrize(
    ("raw", "kind", "field"),
    [
        (b"", "malformed-json", "body"),
        (b"{", "malformed-json", "body"),
        (b"not json", "malformed-json", "body"),
        (body(b"1") + b"x", "malformed-json", "body"),
        (body(b"nul"), "malformed-json", "body"),
        (body(b"NaN"), "malformed-json", "body"),
        (body(b'"\xff"'), "malformed-json", "body"),
        (body(b'"\\ud800"'), "malformed-json", "body"),
        (body(b"1", b'"\xff"'), "malformed-json", "body"),
        (b"\xff\xfe{}", "malformed-json", "body"),
        (body(b"1e9999999999999999999999"), "malformed-json", "body"),
        (b"[]", "bad-request", "body"),
        (b"null", "bad-request", "body"),
        (b"{}", "bad-request", "destination"),
        (b'{"destination": "a"}', "bad-request", "payload"),
        (b'{"payload": 1}', "bad-request", "destination"),
        (body(b"1", b"3"), "bad-request", "destination"),
        (body(b"1", b"null"), "bad-request", "destination"),
        (body(b'1, "url": "http://evil.test"'), "bad-request", "body"),
    ],
)
def test_what_is_not_an_operation_is_refused(raw: bytes, kind: str, field: str) -> None:
    """Malformed JSON, wrong types, missing and unknown fields: 400 naming field and remedy."""
    problem = refused(raw)

    assert (400, kind, field) == (problem.status, problem.kind, problem.field)
    assert problem.remedy == 'Send {"destination": "<name>", "payload": <any JSON>}'


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
def test_deep_nesting_is_refused_and_not_a_crash(opening: bytes) -> None:
    """A body can be small and still deeper than any decoder's stack."""
    closing = b"]" if opening == b"[" else b"}"
    raw = body(opening * 50_000 + b"1" + closing * 50_000)

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": raw}

    async def main() -> Intake:
        request = Request({"type": "http", "method": "POST", "headers": []}, receive)
        return await read_intake(
            request, destinations={"a"}, max_payload_bytes=10**6, max_key_chars=20
        )

    with pytest.raises(Problem) as caught:
        run_virtual(main)

    assert (caught.value.status, caught.value.kind) == (400, "malformed-json")


def test_an_unknown_destination_names_those_there_are() -> None:
    """422: the request is well-formed, its destination is nobody's."""
    problem = refused(body(b"1", b'"b"'))

    assert (problem.status, problem.kind, problem.field) == (
        422,
        "unknown-destination",
        "destination",
    )
    assert problem.remedy == "Use one of: a"


def test_without_destinations_the_answer_says_so() -> None:
    """An empty list would read as a mistake of the caller."""
    with pytest.raises(Problem) as caught:
        read(body(b"1"), known=())

    assert caught.value.remedy == "Use one of: none is configured"


@pytest.mark.parametrize(
    ("length", "accepted"), [(LIMIT_BYTES, True), (LIMIT_BYTES + 1, False), (10**6, False)]
)
def test_a_payload_over_the_limit_is_refused(length: int, *, accepted: bool) -> None:
    """413, whether the payload alone or the whole body is too large."""
    raw = body(msgspec.json.encode("x" * (length - 2)))
    if accepted:
        assert len(read(raw).payload) == length
        return
    problem = refused(*[raw[start : start + 60_000] for start in range(0, len(raw), 60_000)])

    assert (problem.status, problem.kind, problem.field) == (413, "payload-too-large", "payload")
    assert problem.remedy


def test_an_endless_body_is_not_read_to_its_end() -> None:
    """A bounded part of an oversized body is drained for the answer's sake, no more."""
    taken = 0

    async def receive() -> dict[str, object]:
        nonlocal taken
        taken += 1
        return {"type": "http.request", "body": b"x" * 1024 * 1024, "more_body": True}

    async def main() -> Intake:
        request = Request({"type": "http", "method": "POST", "headers": []}, receive)
        return await read_intake(
            request, destinations={"a"}, max_payload_bytes=LIMIT_BYTES, max_key_chars=20
        )

    with pytest.raises(Problem) as caught:
        run_virtual(main)

    assert (caught.value.status, taken) == (413, 17)


def test_a_client_that_leaves_half_way_is_no_defect_of_ours() -> None:
    """The body is incomplete; nothing was written and nothing is logged as our error."""
    problem = refused(body(b"1")[:10], leaves=True)

    assert (problem.status, problem.kind, problem.field) == (400, "incomplete-body", "body")


@pytest.mark.parametrize(
    "keys",
    [
        [""],
        ["  "],
        ["k" * 21],
        ["a\x00b"],
        ["a\tb"],
        ["\x85"],
        ["order-\xc3\x85"],  # UTF-8 of two letters, whose last bytes are
        ["order-\xc3\xa0"],  # white space in Latin-1: both read as one key
        ["one", "two"],
    ],
)
def test_an_unusable_key_is_refused(keys: list[str]) -> None:
    """A key that cannot be told apart from another must not be guessed at."""
    problem = refused(body(b"1"), keys=keys)

    assert (problem.status, problem.kind, problem.field) == (
        400,
        "bad-idempotency-key",
        "Idempotency-Key",
    )
