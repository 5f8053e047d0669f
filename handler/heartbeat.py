"""Heartbeats: they make a lease measure a claimant's silence and not its work's duration.

Off for passes shorter than their lease, where they would only cost writes. A heartbeat extends a
lease that is still held and never revives a lost one. When the lease is lost the pass makes no
further attempt, but the attempt in flight goes on: its confirmation would count all the same.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from handler.budget import Deadline
from handler.events import Action, Events
from storage.errors import StoreError
from storage.marker import Marker
from storage.replies import Refused
from storage.store import Store

__all__ = ["Hold", "holding", "interval_s"]

_BEATS_PER_LEASE = 3


class Hold:
    """Whether a pass still holds its claim, as far as its heartbeats know."""

    def __init__(self) -> None:
        self.lost = False


def interval_s(*, configured_s: float | None, lease_s: float, pass_s: float) -> float | None:
    """Return the seconds between heartbeats, or None when the pass needs none.

    Args:
        configured_s: The operator's setting.
        lease_s: The claim's lease.
        pass_s: How long the pass may last at the most.
    """
    if configured_s is not None:
        return configured_s
    if lease_s <= 0 or pass_s < lease_s:
        return None
    return lease_s / _BEATS_PER_LEASE


@asynccontextmanager
async def holding(
    held: Marker,
    *,
    store: Store,
    every_s: float | None,
    lease_s: float,
    deadline: Deadline,
    events: Events,
) -> AsyncIterator[Hold]:
    """Keep the lease of `held` extended while the body runs."""
    hold = Hold()
    if every_s is None:
        yield hold
        return

    async def beat() -> None:
        while not hold.lost:
            await anyio.sleep(every_s)
            try:
                written = await store.heartbeat(
                    held, lease_s=lease_s, within_s=min(deadline.remaining_s(), every_s)
                )
            except StoreError:
                continue  # silence is what the lease measures; the next beat may get through
            hold.lost = isinstance(written, Refused)
            events.emit(
                Action.LEASE_LOST if hold.lost else Action.LEASE_EXTENDED,
                operation_id=held.operation_id,
                claim_id=held.claim_id,
            )

    try:
        async with anyio.create_task_group() as beats:
            beats.start_soon(beat)
            yield hold
            beats.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        # Only the body raises here, and what it raised is not the caller's to unwrap.
        if len(group.exceptions) == 1:
            raise group.exceptions[0] from None
        raise
