"""One attempt: a numbered request to the receiver, bounded by what the deadline leaves.

Rules: an attempt waits at most `min(remaining without the reserve, attempt limit)`; with nothing
left none starts. When it is cut, by the deadline or from outside, its `Trace` says whether it is
uncertain or was never sent. Every attempt carries the first key and the first bytes.

Not here: whether there is another attempt (`delivery`).
"""

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import assert_never

import anyio
from standardwebhooks import Webhook

from handler.budget import Deadline
from handler.destinations import Destination, Operation
from handler.errors import NotDelivered, Refused
from handler.outcome import NoAnswer, NotSent, Outcome, Reply, outcome_of, retry_after_s
from handler.sender import Request, Sender, Trace

__all__ = ["Attempt", "attempt", "request_for"]

_USER_AGENT = "outlast"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """What one attempt came to.

    Attributes:
        number: Its number over the operation's life, from 1.
        started_at_ms, ended_at_ms: Epoch milliseconds.
        outcome: What it came to.
        status: The receiver's status, or None without an answer.
        retry_after_s: What the receiver asked for, in seconds.
        detail: Why, in a few words, for people.
    """

    number: int
    started_at_ms: int
    ended_at_ms: int
    outcome: Outcome
    status: int | None = None
    retry_after_s: float | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    outcome: Outcome
    status: int | None = None
    retry_after_s: float | None = None
    detail: str = ""


async def attempt(
    operation: Operation,
    destination: Destination,
    *,
    sender: Sender,
    deadline: Deadline,
    limit_s: float,
    max_retry_after_s: float,
    on_start: Callable[[Trace], None],
) -> Attempt | None:
    """Make one attempt, or return None because no time is left for one.

    Args:
        operation: What to deliver.
        destination: Where to.
        sender: Carries the request.
        deadline: The pass's one deadline.
        limit_s: The attempt limit in seconds.
        max_retry_after_s: The longest wait a receiver may ask for.
        on_start: Told of the attempt's trace before anything is sent, so that a cut knows of it.
    """
    cap_s = min(deadline.for_work_s(), destination.attempt_limit_s or limit_s)
    if cap_s <= 0:
        return None
    clock = deadline.clock
    started_at_ms = clock.wall_ms()
    trace = Trace()
    on_start(trace)
    found: _Found | None = None
    with anyio.move_on_after(cap_s):
        if destination.deliver is not None:
            found = await _by_function(operation, destination, deadline, trace)
        else:
            found = await _by_request(
                operation, destination, sender, trace, clock.wall_ms, max_retry_after_s
            )
    if found is None:
        found = _cut(trace, cap_s)
    return Attempt(
        number=operation.attempt,
        started_at_ms=started_at_ms,
        ended_at_ms=clock.wall_ms(),
        outcome=found.outcome,
        status=found.status,
        retry_after_s=found.retry_after_s,
        detail=found.detail,
    )


def _cut(trace: Trace, cap_s: float) -> _Found:
    if trace.byte_left:
        return _Found(outcome=Outcome.UNCERTAIN, detail=f"no answer within {cap_s:.3g} s")
    return _Found(outcome=Outcome.UNDELIVERED, detail=f"not sent within {cap_s:.3g} s")


async def _by_request(
    operation: Operation,
    destination: Destination,
    sender: Sender,
    trace: Trace,
    wall_ms: Callable[[], int],
    max_retry_after_s: float,
) -> _Found:
    result = await sender.send(request_for(operation, destination), trace)
    outcome = outcome_of(result, destination.status_overrides())
    match result:
        case Reply(status=status, headers=headers):
            asked_s = retry_after_s(
                headers.get("retry-after"), wall_ms=wall_ms(), limit_s=max_retry_after_s
            )
            return _Found(
                outcome=outcome, status=status, retry_after_s=asked_s, detail=f"status {status}"
            )
        case NotSent(reason=reason) | NoAnswer(reason=reason):
            return _Found(outcome=outcome, detail=reason)
        case _:
            assert_never(result)


async def _by_function(
    operation: Operation, destination: Destination, deadline: Deadline, trace: Trace
) -> _Found:
    assert destination.deliver is not None
    # What a function does is not seen from here: from its first line it may have had its effect.
    trace.byte_left = True
    try:
        returned = await destination.deliver(operation, deadline)
    except NotDelivered as error:
        return _Found(outcome=Outcome.UNDELIVERED, detail=str(error) or "not delivered")
    except Refused as error:
        return _Found(outcome=Outcome.REJECTED, detail=str(error) or "refused")
    except Exception as error:  # noqa: BLE001  whatever a user's function raises leaves the outcome unknown
        return _Found(outcome=Outcome.UNCERTAIN, detail=_raised(error))
    try:
        return _Found(outcome=Outcome(returned), detail="said by the destination function")
    except ValueError:
        detail = f"the destination function returned {returned!r}, which is no Outcome"
        return _Found(outcome=Outcome.UNCERTAIN, detail=detail)


def _raised(error: Exception) -> str:
    """Say what a destination function raised, and on which of its lines."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{where}"


def request_for(operation: Operation, destination: Destination) -> Request:
    """Build the request of an attempt (Standard Webhooks headers, Idempotency-Key, first bytes)."""
    headers = {
        "content-type": "application/json",
        "user-agent": _USER_AGENT,
        "idempotency-key": operation.operation_id,
        "webhook-id": operation.operation_id,
        "webhook-timestamp": str(operation.timestamp_s),
    }
    if destination.secret is not None:
        headers["webhook-signature"] = Webhook(destination.secret).sign(
            operation.operation_id,
            datetime.fromtimestamp(operation.timestamp_s, UTC),
            operation.payload.decode("utf-8"),
        )
    return Request(method="POST", url=destination.url, headers=headers, body=operation.payload)
