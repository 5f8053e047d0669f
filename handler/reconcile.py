"""The unknown: what may be done about an operation that may have been delivered.

Rules, in this order: a receiver that can be asked is asked; one that is idempotent is sent the
same key again while the marker is younger than its dedupe window less a margin; otherwise nothing
is sent and a person decides. A lookup that finds the key confirms the delivery, a definite
absence makes the operation known as not delivered, and anything else leaves it as unknown as it
was.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Any
from urllib.parse import quote

import anyio

from handler.budget import Deadline
from handler.destinations import Destination
from handler.outcome import Reply
from handler.sender import Request, Sender, Trace

__all__ = ["Finding", "Permit", "dedupe_ends_ms", "look_up", "permit"]

# A large window is cut by the configured margin, a small one by a tenth of itself.
_LARGEST_MARGIN_SHARE = 0.1


class Permit(StrEnum):
    """What a pass may do next with an operation."""

    SEND = "send"
    ASK = "ask"
    PARK = "park"


class Finding(StrEnum):
    """What a lookup told."""

    FOUND = "found"
    ABSENT = "absent"
    SILENT = "silent"


def dedupe_ends_ms(destination: Destination, *, created_at_ms: int, margin_s: float) -> int:
    """Return until when, in epoch ms, an idempotent receiver can be sent the key again."""
    window_s = destination.dedupe_window_s
    return created_at_ms + round(
        1000 * (window_s - min(margin_s, _LARGEST_MARGIN_SHARE * window_s))
    )


def permit(
    destination: Destination, *, unknown: bool, created_at_ms: int, now_ms: int, margin_s: float
) -> Permit:
    """Return what may be done next.

    Args:
        destination: What the receiver promised.
        unknown: Whether an earlier attempt may have been delivered.
        created_at_ms: When the operation was accepted, before its first attempt.
        now_ms: Now.
        margin_s: The safety margin at the end of the dedupe window.
    """
    if not unknown:
        return Permit.SEND
    if destination.lookup_url is not None:
        return Permit.ASK
    ends_ms = dedupe_ends_ms(destination, created_at_ms=created_at_ms, margin_s=margin_s)
    if destination.idempotent and now_ms < ends_ms:
        return Permit.SEND
    return Permit.PARK


async def look_up(
    destination: Destination,
    operation_id: str,
    *,
    sender: Sender,
    deadline: Deadline,
    limit_s: float,
    emit: Callable[..., Any],
) -> Finding:
    """Ask the receiver what became of a key: 2xx is found, 404 is absent, all else is silence."""
    assert destination.lookup_url is not None
    url = destination.lookup_url.replace("{id}", quote(operation_id, safe=""))
    request = Request(method="GET", url=url, headers={"accept": "application/json"})
    finding, status = Finding.SILENT, None
    cap_s = min(deadline.for_work_s(), limit_s)
    if cap_s <= 0:
        return finding
    with anyio.move_on_after(cap_s):
        result = await sender.send(request, Trace())
        if isinstance(result, Reply):
            status = result.status
            found = {2: Finding.FOUND}.get(status // 100, Finding.SILENT)
            finding = Finding.ABSENT if status == 404 else found  # noqa: PLR2004  the one definite absence
    emit(operation_id=operation_id, finding=finding.value, status=status)
    return finding
