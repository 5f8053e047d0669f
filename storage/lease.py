"""When a claim's lease is over, as others judge it.

A lease is for judging other passes, never one's own work. Clocks of replicas differ, so a lease
counts as over only once it has ended by more than the skew margin. A lease that is missing or
cannot be read is over: nobody could ever prove otherwise, and the work would be lost.
The store's condition says the same (`conditions`, guard `LEASE_OVER`).
"""

from storage.marker import Marker
from storage.states import State

__all__ = ["lease_end_ms", "lease_over", "lease_over_bound_ms"]


def lease_end_ms(now_ms: int, lease_s: float) -> int:
    """Return when a lease of `lease_s` seconds that starts now ends."""
    return now_ms + round(lease_s * 1000)


def lease_over_bound_ms(now_ms: int, skew_margin_s: float) -> int:
    """Return the latest lease end that counts as over at `now_ms`."""
    return now_ms - round(skew_margin_s * 1000)


def lease_over(marker: Marker, now_ms: int, skew_margin_s: float) -> bool:
    """Tell whether somebody else may take the claim over; False when there is no claim."""
    if marker.state is not State.CLAIMED:
        return False
    return marker.lease_until_ms is None or marker.lease_until_ms <= lease_over_bound_ms(
        now_ms, skew_margin_s
    )
