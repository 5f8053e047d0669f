"""The unknown: asked, or repeated under the receiver's idempotency, or left to a person."""

from typing import Any

import anyio
import pytest

from handler.budget import Deadline
from handler.destinations import Destination
from handler.outcome import NoAnswer, NotSent
from handler.reconcile import Finding, Permit, dedupe_ends_ms, look_up, permit
from tests.support.clock import HandClock, LoopClock
from tests.support.senders import HANG, ScriptedSender, Step, status
from tests.support.virtual import run_virtual

NOW_MS = 1_700_000_000_000
URL = "http://receiver.test/hook"
PLAIN = Destination(url=URL)
IDEMPOTENT = Destination(url=URL, idempotent=True, dedupe_window_s=3600)
ASKED = Destination(url=URL, lookup_url="http://receiver.test/effects/{id}")
BOTH = Destination(url=URL, idempotent=True, lookup_url="http://receiver.test/effects/{id}")


@pytest.mark.parametrize(
    ("destination", "unknown", "age_s", "expected"),
    [
        (PLAIN, False, 10**6, Permit.SEND),
        (PLAIN, True, 0, Permit.PARK),
        (ASKED, False, 0, Permit.SEND),
        (ASKED, True, 10**6, Permit.ASK),
        (BOTH, True, 0, Permit.ASK),
        (IDEMPOTENT, True, 0, Permit.SEND),
        (IDEMPOTENT, True, 3569.999, Permit.SEND),
        (IDEMPOTENT, True, 3570, Permit.PARK),
        (IDEMPOTENT, False, 3571, Permit.SEND),
    ],
)
def test_what_may_follow_an_unknown(
    destination: Destination, *, unknown: bool, age_s: float, expected: Permit
) -> None:
    """Ask where one can; repeat inside the dedupe window less the margin; else park."""
    found = permit(
        destination,
        unknown=unknown,
        created_at_ms=NOW_MS,
        now_ms=NOW_MS + round(age_s * 1000),
        margin_s=30.0,
    )

    assert expected is found


@pytest.mark.parametrize(
    ("window_s", "expected_s"), [(3600.0, 3570.0), (300.0, 270.0), (100.0, 90.0), (1.0, 0.9)]
)
def test_a_small_window_is_not_eaten_by_its_margin(window_s: float, expected_s: float) -> None:
    """The margin is at most a tenth of the window."""
    destination = Destination(url=URL, idempotent=True, dedupe_window_s=window_s)
    found = dedupe_ends_ms(destination, created_at_ms=NOW_MS, margin_s=30.0)

    assert NOW_MS + round(expected_s * 1000) == found


@pytest.mark.parametrize(
    ("step", "expected", "code"),
    [
        (status(200), Finding.FOUND, 200),
        (status(204), Finding.FOUND, 204),
        (status(404), Finding.ABSENT, 404),
        (status(409), Finding.SILENT, 409),
        (status(410), Finding.SILENT, 410),
        (status(302), Finding.SILENT, 302),
        (status(500), Finding.SILENT, 500),
        (Step(result=NotSent(reason="refused")), Finding.SILENT, None),
        (Step(result=NoAnswer(reason="reset")), Finding.SILENT, None),
        (HANG, Finding.SILENT, None),
    ],
)
def test_only_found_and_absent_tell_anything(
    step: Step, expected: Finding, code: int | None
) -> None:
    """2xx is found, 404 the one definite absence; all else leaves the unknown as it was."""
    sender = ScriptedSender([step])
    told = list[dict[str, Any]]()

    async def main() -> tuple[Finding, float]:
        deadline = Deadline.after(25.0, clock=LoopClock(), reserve_s=1.0)
        found = await look_up(
            ASKED,
            "an id/with?odd&parts",
            sender=sender,
            deadline=deadline,
            limit_s=4.0,
            emit=lambda **fields: told.append(fields),
        )
        return found, anyio.current_time()

    found, ended_s = run_virtual(main)
    (sent,) = sender.sends

    assert (expected, 4.0 if step is HANG else 0.0) == (found, ended_s)
    assert sent.request.url == "http://receiver.test/effects/an%20id%2Fwith%3Fodd%26parts"
    assert (sent.request.method, sent.request.body) == ("GET", None)
    assert told == [
        {"operation_id": "an id/with?odd&parts", "finding": expected.value, "status": code}
    ]


@pytest.mark.parametrize("left_s", [0.0, -5.0, 1.0])
def test_without_time_nothing_is_asked(left_s: float) -> None:
    """A remainder of zero or less starts nothing, and the reserve is not for lookups."""
    sender = ScriptedSender()

    async def main() -> Finding:
        deadline = Deadline.after(left_s, clock=HandClock(), reserve_s=1.0)
        return await look_up(
            ASKED, "op", sender=sender, deadline=deadline, limit_s=4.0, emit=lambda **_: None
        )

    assert run_virtual(main) is Finding.SILENT
    assert sender.sends == []
