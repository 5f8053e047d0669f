"""The handler's errors: one small tree, each saying whose fault it is.

A lost race is a return value and is not here. A store's failure is `storage.errors.StoreError`,
which says whether a write may have landed; the handler lets it through unchanged.
"""

from typing import ClassVar

__all__ = ["ConfigurationError", "HandlerError", "LifetimeMissing", "NotDelivered", "Refused"]


class HandlerError(Exception):
    """Base of everything the handler raises by itself."""


class ConfigurationError(HandlerError):
    """The operator's settings cannot be used; nothing has been started.

    Attributes:
        field: The setting, as the operator wrote it.
        remedy: What to write instead.
    """

    def __init__(self, field: str, problem: str, remedy: str) -> None:
        super().__init__(f"{field}: {problem}. {remedy}")
        self.field = field
        self.remedy = remedy


class LifetimeMissing(HandlerError):
    """The server supplies no `outlast.lifetime`, so nothing would own work after the answer.

    Attributes:
        remedy: What the operator can do.
    """

    remedy: ClassVar[str] = (
        "Run the app under `outlast up` or a platform adapter, or set OUTLAST_LIFETIME=lenient "
        "to leave every delivery to redrive"
    )

    def __init__(self) -> None:
        super().__init__(
            "the server does not supply scope['extensions']['outlast.lifetime'], so no work could "
            f"outlive an answer. {self.remedy}"
        )


class NotDelivered(HandlerError):
    """Raised by a destination function: nothing reached the receiver, a repeat is safe."""


class Refused(HandlerError):
    """Raised by a destination function: the receiver refused for good."""
