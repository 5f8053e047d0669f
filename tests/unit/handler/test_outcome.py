"""What a receiver's reply means, and how its Retry-After is read."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handler.outcome import NoAnswer, NotSent, Outcome, Reply, Result, outcome_of, retry_after_s

NOW_MS = 1_700_000_000_000
HEADERS = {"a": "b"}


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        (range(200, 300), Outcome.DELIVERED),
        ((409, 425), Outcome.IN_PROGRESS),
        ((429, 503), Outcome.UNDELIVERED),
        ((400, 401, 403, 404, 405, 410, 413, 415, 422, 426, 451, 499), Outcome.REJECTED),
        ((408, 500, 501, 502, 504, 505, 507, 520, 599), Outcome.UNCERTAIN),
        ((300, 301, 302, 303, 304, 307, 308), Outcome.UNCERTAIN),
        ((100, 101, 199, 600, 999), Outcome.UNCERTAIN),
    ],
    ids=["2xx", "in-progress", "not-now", "other-4xx", "5xx-and-408", "redirect", "no-such-class"],
)
def test_every_status_class_has_its_meaning(
    statuses: range | tuple[int, ...], expected: Outcome
) -> None:
    """The reply table, row by row; a redirect is not followed and confirms nothing."""
    found = {status: outcome_of(Reply(status=status, headers=HEADERS), {}) for status in statuses}

    assert dict.fromkeys(statuses, expected) == found


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (NotSent(reason="refused"), Outcome.UNDELIVERED),
        (NoAnswer(reason="reset"), Outcome.UNCERTAIN),
    ],
)
def test_a_byte_that_left_makes_the_difference(result: Result, expected: Outcome) -> None:
    """Without an answer it only counts whether a byte of the request may have left."""
    assert expected is outcome_of(result, {503: Outcome.DELIVERED})


@pytest.mark.parametrize("outcome", Outcome)
def test_a_destination_overrides_single_statuses(outcome: Outcome) -> None:
    """An override holds for its status and no other."""
    overrides = {418: outcome}

    assert outcome is outcome_of(Reply(status=418, headers={}), overrides)
    assert Outcome.REJECTED is outcome_of(Reply(status=417, headers={}), overrides)


@pytest.mark.parametrize(
    ("text", "expected_s"),
    [
        (None, None),
        ("0", 0.0),
        ("7", 7.0),
        (" 120 ", 120.0),
        ("9" * 400, 3600.0),
        ("Tue, 14 Nov 2023 22:14:20 GMT", 60.0),
        ("Tuesday, 14-Nov-23 22:14:20 GMT", 60.0),
        ("Tue Nov 14 22:14:20 2023", 60.0),
        ("Tue, 14 Nov 2023 22:14:20 +0000", 60.0),
        ("Tue, 14 Nov 2023 22:00:00 GMT", 0.0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 3600.0),
    ],
)
def test_retry_after_is_read_in_both_forms(text: str | None, expected_s: float | None) -> None:
    """Seconds or an HTTP date (RFC 9110, 10.2.3), never negative, never beyond the limit."""
    assert datetime.fromtimestamp(NOW_MS / 1000, UTC).isoformat() == "2023-11-14T22:13:20+00:00"
    assert expected_s == retry_after_s(text, wall_ms=NOW_MS, limit_s=3600)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        ",",
        "soon",
        "-5",
        "1.5",
        "+3",
        "1e3",
        "²",
        "1,000",
        "nan",
        "Fri, 31 Dec 99999 23:59:59 GMT",
        "Tue, 14 Nov 2023 22:14:20 +9999999999999",
        "Tue, 99 Nov 2023 99:99:99 GMT",
    ],
)
def test_a_garbled_retry_after_asks_for_nothing(text: str) -> None:
    """A header that cannot be read is as good as none; a receiver's text never raises here."""
    assert None is retry_after_s(text, wall_ms=NOW_MS, limit_s=3600)


@given(
    st.text(max_size=60)
    | st.from_regex(
        r"[A-Z][a-z]{2}, [0-9]{1,2} [A-Z][a-z]{2} [0-9]{1,6} [0-9:]{1,9} [+-]?[0-9A-Z]{1,25}"
    )
    | st.from_regex(r"[0-9]{1,3} (Jan|Dec) [0-9]{1,5} [0-9]{1,3}:[0-9]{1,3} [+-][0-9]{1,30}")
)
def test_no_text_of_a_receiver_raises(text: str) -> None:
    """Whatever stands in the header, the answer is None or seconds between 0 and the limit."""
    found = retry_after_s(text, wall_ms=NOW_MS, limit_s=3600)

    assert found is None or 0 <= found <= 3600
