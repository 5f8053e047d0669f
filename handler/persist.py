"""Insisting on a store call: repeats what is safe to repeat, inside one deadline.

Every write of the store is conditional and knows its own lost reply, so repeating one is safe.
The transport below makes one attempt and retries nothing, which is why it is done here, where the
deadline is known. What is wrong for good (`StoreMisconfigured`, `BrokenMarker`) is not repeated.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from handler.budget import Deadline
from storage.errors import StoreUnavailable

__all__ = ["insist"]

T = TypeVar("T")

_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 1.0


async def insist(
    call: Callable[[float], Awaitable[T]],
    *,
    deadline: Deadline,
    limit_s: float,
    tries: int | None = None,
) -> T:
    """Make a store call, and again while the store is unavailable and time is left.

    Args:
        call: Takes the seconds it may use and makes the call once.
        deadline: Spent by the calls and by the pauses between them.
        limit_s: The longest that one call may take.
        tries: How many calls at the most, or None for as many as fit.

    Raises:
        StoreUnavailable: The last call's, when no further one fits.
    """
    pause_s = _FIRST_PAUSE_S
    may_have_written = False
    made = 0
    while True:
        try:
            return await call(min(deadline.remaining_s(), limit_s))
        except StoreUnavailable as error:
            made += 1
            may_have_written = may_have_written or error.may_have_written
            if made == tries or deadline.remaining_s() <= pause_s:
                # An earlier call may have landed even if the last one surely did not.
                if may_have_written and not error.may_have_written:
                    raise StoreUnavailable(str(error), may_have_written=True) from error
                raise
        await anyio.sleep(pause_s)
        pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)
