"""Leases as others judge them."""

import pytest

from storage.lease import lease_over
from storage.replies import read_marker
from tests.support.rows import NOW_MS, claimed_row


@pytest.mark.parametrize(
    ("lease_until_ms", "over"),
    [
        (NOW_MS + 1, False),
        (NOW_MS, False),
        (NOW_MS - 4_999, False),
        (NOW_MS - 5_000, True),
        (None, True),
        ("tomorrow", True),
        (True, True),
    ],
)
def test_a_lease_is_over_after_the_margin_or_when_it_cannot_be_read(
    lease_until_ms: object, *, over: bool
) -> None:
    """Clocks differ by less than the margin; what nobody can read would never be over."""
    marker = read_marker(claimed_row(lease_until_ms=lease_until_ms))

    assert over == lease_over(marker, NOW_MS, 5.0)


def test_a_lease_of_no_length_and_no_margin_is_over_at_once() -> None:
    """Firing early is the normal case when tested: it may cost a repeat, never a result."""
    assert lease_over(read_marker(claimed_row(lease_until_ms=NOW_MS)), NOW_MS, 0.0)


@pytest.mark.parametrize("state", ["undelivered", "uncertain", "delivered", "parked"])
def test_a_marker_that_nobody_claims_has_no_lease_to_be_over(state: str) -> None:
    """There is no claim to take over."""
    assert not lease_over(read_marker(claimed_row(state=state)), NOW_MS, 5.0)
