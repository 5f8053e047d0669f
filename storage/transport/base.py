"""What a transport is: something that executes one request, once, within a given time.

It renders or interprets the request's data, and answers with data. It never retries, knows no
marker state, and reads no meaning into a refusal.
"""

from dataclasses import dataclass
from typing import Protocol, TypeAlias

from storage.attributes import Row
from storage.requests import DueCursor, Request

__all__ = ["FoundDue", "FoundRow", "NotStored", "Reply", "Stored", "Transport"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """The write landed; `row` is the row as it now is."""

    row: Row


@dataclass(frozen=True, slots=True, kw_only=True)
class NotStored:
    """The condition did not hold; `row` is the row that stood in the way, if there is one."""

    row: Row | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRow:
    """A read's row, or None."""

    row: Row | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundDue:
    """A page of operation ids, oldest due first; `after` is None on the last page."""

    operation_ids: tuple[str, ...]
    after: DueCursor | None


Reply: TypeAlias = Stored | NotStored | FoundRow | FoundDue


class Transport(Protocol):
    """Executes requests against one store."""

    async def execute(self, request: Request, *, within_s: float) -> Reply:
        """Execute one request, with exactly one try.

        Args:
            request: What to do.
            within_s: Seconds this call may take in all, more than 0.

        Raises:
            StoreUnavailable: No usable answer in that time.
            StoreMisconfigured: The request can never work as things are set up.
        """
        ...

    async def aclose(self) -> None:
        """Give up what the transport holds; calls under way are left to their own time."""
        ...
