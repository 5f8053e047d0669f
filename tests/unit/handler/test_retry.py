"""When to try again: the formulas, and what a Retry-After overrules."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handler.retry import Backoff, RowBackoff

NOW_MS = 1_700_000_000_000


@pytest.mark.parametrize(
    ("attempts", "jitter", "drawn", "asked_s", "expected_s"),
    [
        (1, 0.0, 0.9, None, 0.5),
        (2, 0.0, 0.9, None, 1.0),
        (3, 0.0, 0.9, None, 2.0),
        (6, 0.0, 0.9, None, 10.0),
        (10_000, 0.0, 0.9, None, 10.0),
        (0, 0.0, 0.9, None, 0.5),
        (1, 1.0, 0.0, None, 0.5),
        (1, 1.0, 0.5, None, 0.25),
        (2, 0.5, 0.5, None, 0.75),
        (1, 0.0, 0.0, 8.0, 8.0),
        (3, 0.0, 0.0, 1.0, 2.0),
        (1, 0.0, 0.0, 86_400.0, 86_400.0),
    ],
)
def test_waits_inside_a_pass_double_up_to_the_cap(
    attempts: int, jitter: float, drawn: float, asked_s: float | None, expected_s: float
) -> None:
    """min(cap, base * 2^(n-1)) * (1 - jitter * u), unless the receiver asked for longer."""
    backoff = Backoff(base_s=0.5, cap_s=10.0, jitter=jitter, uniform=lambda: drawn)

    assert expected_s == backoff.wait_s(attempts, asked_s)


@pytest.mark.parametrize(
    ("passes", "drawn", "asked_after_s", "expected_s"),
    [
        (0, 0.5, None, 10.0),
        (1, 0.5, None, 10.0),
        (2, 0.5, None, 20.0),
        (9, 0.5, None, 2560.0),
        (10, 0.5, None, 3600.0),
        (5_000, 0.5, None, 3600.0),
        (1, 0.0, None, 8.0),
        (1, 0.75, None, 11.0),
        (1, 0.5, 3.0, 3.0),
        (1, 0.5, 86_400.0, 86_400.0),
        (1, 0.5, -5.0, 0.0),
    ],
)
def test_rows_wait_longer_after_each_pass(
    passes: int, drawn: float, asked_after_s: float | None, expected_s: float
) -> None:
    """Doubling with a spread either way; a Retry-After is obeyed exactly, never in the past."""
    row = RowBackoff(base_s=10.0, cap_s=3600.0, jitter=0.2, uniform=lambda: drawn)
    asked_at_ms = None if asked_after_s is None else NOW_MS + round(asked_after_s * 1000)

    due_at_ms = row.due_at_ms(now_ms=NOW_MS, passes=passes, asked_at_ms=asked_at_ms)

    assert NOW_MS + round(expected_s * 1000) == due_at_ms


@given(
    attempts=st.integers(0, 10**9),
    jitter=st.floats(0, 1),
    drawn=st.floats(0, 1, exclude_max=True),
    base_s=st.floats(0, 1e6),
    cap_s=st.floats(0, 1e6),
)
def test_no_wait_is_negative_or_beyond_the_cap(
    attempts: int, jitter: float, drawn: float, base_s: float, cap_s: float
) -> None:
    """Whatever the counts and draws, a wait lies between 0 and the cap."""
    backoff = Backoff(base_s=base_s, cap_s=cap_s, jitter=jitter, uniform=lambda: drawn)

    assert 0 <= backoff.wait_s(attempts, None) <= cap_s
