"""What the store raises when an expectation is broken.

A lost race is never an error: refused writes are return values (`replies`). Cancellation is
not wrapped either; it passes through.
"""

__all__ = [
    "BrokenMarker",
    "NotHeld",
    "StoreError",
    "StoreMisconfigured",
    "StoreThrottled",
    "StoreUnavailable",
]


class StoreError(Exception):
    """Base of everything the storage package raises."""


class StoreUnavailable(StoreError):
    """The store gave no usable answer in the time this call had.

    Attributes:
        may_have_written: The request may have reached the store, so its write may have landed
            or may still land. False means that it certainly did not.
    """

    def __init__(self, message: str, *, may_have_written: bool) -> None:
        super().__init__(message)
        self.may_have_written = may_have_written


class StoreThrottled(StoreUnavailable):
    """The store refused the request for its rate; nothing was written."""

    def __init__(self, message: str) -> None:
        super().__init__(message, may_have_written=False)


class StoreMisconfigured(StoreError):
    """The request can never work as things are set up; the message names the remedy."""


class BrokenMarker(StoreError):
    """A row lacks what nothing can be done without: state, destination, payload or identity."""


class NotHeld(StoreError):
    """A holder's write was asked for with a marker that carries no claim id."""
