"""One attempt: bounded by deadline and limit, told from its trace, signed, never altered."""

from datetime import UTC, datetime

import anyio
import pytest
from standardwebhooks import Webhook

from handler.attempt import Attempt, attempt, request_for
from handler.budget import Deadline
from handler.destinations import Deliver, Destination, Operation
from handler.errors import NotDelivered, Refused
from handler.outcome import NoAnswer, NotSent, Outcome
from handler.sender import Trace
from tests.support.clock import EPOCH_MS, LoopClock
from tests.support.senders import HANG, OK, ScriptedSender, Step, status
from tests.support.virtual import run_virtual

URL = "http://receiver.test/hook"
SECRET = "whsec_" + "c2VjcmV0c2VjcmV0c2VjcmV0"
OPERATION = Operation(
    operation_id="op-1",
    destination="a",
    payload='{"n": "é"}'.encode(),
    attempt=3,
    timestamp_s=1_700_000_000,
)


def make(
    step: Step = OK,
    destination: Destination | None = None,
    *,
    budget_s: float = 25.0,
    limit_s: float = 20.0,
    traces: list[Trace] | None = None,
) -> tuple[Attempt | None, ScriptedSender]:
    """Make an attempt on virtual time."""
    sender = ScriptedSender([step])

    async def main() -> Attempt | None:
        return await attempt(
            OPERATION,
            destination or Destination(url=URL),
            sender=sender,
            deadline=Deadline.after(budget_s, clock=LoopClock(), reserve_s=1.0),
            limit_s=limit_s,
            max_retry_after_s=3600.0,
            on_start=(traces if traces is not None else []).append,
        )

    return run_virtual(main), sender


@pytest.mark.parametrize("budget_s", [1.0, 0.5, 0.0, -280.0])
def test_without_time_for_work_none_starts(budget_s: float) -> None:
    """A remainder of zero or less, the reserve not counted, sends nothing and tells nobody."""
    traces = list[Trace]()
    made, sender = make(budget_s=budget_s, traces=traces)

    assert (made, sender.sends, traces) == (None, [], [])


@pytest.mark.parametrize(
    ("budget_s", "limit_s", "own_limit_s", "expected_s"),
    [(25.0, 20.0, None, 20.0), (15.0, 20.0, None, 14.0), (25.0, 20.0, 3.0, 3.0), (3, 20, 9.0, 2.0)],
)
def test_it_waits_for_the_smaller_of_remainder_and_limit(
    budget_s: float, limit_s: float, own_limit_s: float | None, expected_s: float
) -> None:
    """min(remaining without the reserve, attempt limit); a destination may set its own limit."""
    destination = Destination(url=URL, attempt_limit_s=own_limit_s)
    made, _ = make(HANG, destination, budget_s=budget_s, limit_s=limit_s)

    assert made is not None
    assert round(expected_s * 1000) == made.ended_at_ms - made.started_at_ms
    assert (made.outcome, made.detail) == (Outcome.UNCERTAIN, f"no answer within {expected_s:g} s")


@pytest.mark.parametrize(
    ("step", "outcome", "code", "detail"),
    [
        (status(204, after_s=2.0), Outcome.DELIVERED, 204, "status 204"),
        (status(422), Outcome.REJECTED, 422, "status 422"),
        (status(500), Outcome.UNCERTAIN, 500, "status 500"),
        (Step(result=NotSent(reason="refused")), Outcome.UNDELIVERED, None, "refused"),
        (Step(result=NoAnswer(reason="reset")), Outcome.UNCERTAIN, None, "reset"),
        (Step(result=None, sent=False), Outcome.UNDELIVERED, None, "not sent within 20 s"),
        (HANG, Outcome.UNCERTAIN, None, "no answer within 20 s"),
    ],
)
def test_what_came_of_it_is_told(
    step: Step, outcome: Outcome, code: int | None, detail: str
) -> None:
    """Cut attempts are told by their trace, the others by their result."""
    made, _ = make(step)
    took_ms = 20_000 if step.result is None else round(step.after_s * 1000)
    expected = Attempt(
        number=3,
        started_at_ms=EPOCH_MS,
        ended_at_ms=EPOCH_MS + took_ms,
        outcome=outcome,
        status=code,
        detail=detail,
    )

    assert expected == made


def test_a_retry_after_is_read_where_the_answer_is() -> None:
    """In seconds from the answer, never beyond the longest wait a receiver may ask for."""
    made, _ = make(status(503, headers={"retry-after": "86400"}))

    assert made is not None
    assert (made.outcome, made.retry_after_s) == (Outcome.UNDELIVERED, 3600.0)


def test_the_request_carries_the_first_key_and_the_first_bytes() -> None:
    """POST, Idempotency-Key = operation id, Standard Webhooks headers, the payload untouched."""
    _, sender = make()
    (sent,) = sender.sends

    assert (sent.request.method, sent.request.url) == ("POST", URL)
    assert sent.request.body is OPERATION.payload
    assert sent.request.headers == {
        "content-type": "application/json",
        "user-agent": "outlast",
        "idempotency-key": "op-1",
        "webhook-id": "op-1",
        "webhook-timestamp": "1700000000",
    }


def test_a_secret_signs_as_standard_webhooks_says() -> None:
    """The receiver's library verifies the very bytes that are sent."""
    request = request_for(OPERATION, Destination(url=URL, secret=SECRET))
    webhook = Webhook(SECRET)
    signed = webhook.sign(
        "op-1", datetime.fromtimestamp(OPERATION.timestamp_s, UTC), OPERATION.payload.decode()
    )

    assert signed == request.headers["webhook-signature"]


async def delivers(_operation: Operation, _budget: Deadline) -> Outcome:
    """Deliver."""
    return Outcome.DELIVERED


async def in_progress(_operation: Operation, _budget: Deadline) -> Outcome:
    """Say that it is at work."""
    return Outcome.IN_PROGRESS


async def not_delivered(_operation: Operation, _budget: Deadline) -> Outcome:
    """Say that nothing reached anybody."""
    raise NotDelivered


async def refuses(_operation: Operation, _budget: Deadline) -> Outcome:
    """Refuse for good."""
    raise Refused("no such account")


async def breaks(_operation: Operation, _budget: Deadline) -> Outcome:
    """Have a defect."""
    raise KeyError("x")


async def says_nothing(_operation: Operation, _budget: Deadline) -> Outcome:
    """Forget to return an outcome."""
    return None  # type: ignore[return-value]


async def hangs(_operation: Operation, _budget: Deadline) -> Outcome:
    """Never end."""
    await anyio.sleep_forever()
    raise AssertionError


@pytest.mark.parametrize(
    ("deliver", "outcome", "detail"),
    [
        (delivers, Outcome.DELIVERED, "said by the destination function"),
        (in_progress, Outcome.IN_PROGRESS, "said by the destination function"),
        (not_delivered, Outcome.UNDELIVERED, "not delivered"),
        (refuses, Outcome.REJECTED, "no such account"),
        (breaks, Outcome.UNCERTAIN, f"KeyError: 'x' ({__file__}:167)"),
        (
            says_nothing,
            Outcome.UNCERTAIN,
            "the destination function returned None, which is no Outcome",
        ),
        (hangs, Outcome.UNCERTAIN, "no answer within 20 s"),
    ],
)
def test_a_function_says_what_came_of_it(deliver: Deliver, outcome: Outcome, detail: str) -> None:
    """Its words count; anything else it raises leaves the outcome unknown."""
    made, sender = make(destination=Destination(deliver=deliver))

    assert made is not None
    assert (outcome, detail) == (made.outcome, made.detail)
    assert sender.sends == []


def test_a_function_is_given_the_operation_and_the_deadline() -> None:
    """It can spend no more than the pass has."""
    given = list[tuple[Operation, float]]()

    async def deliver(operation: Operation, budget: Deadline) -> Outcome:
        given.append((operation, budget.for_work_s()))
        return Outcome.DELIVERED

    make(destination=Destination(deliver=deliver))

    assert given == [(OPERATION, 24.0)]
