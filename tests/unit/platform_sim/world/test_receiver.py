"""The receiver does what its script says, and its ledger tells the truth about it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from platform_sim.world.effects import Lookup
from platform_sim.world.receiver import Arrival, Receiver, Reply
from platform_sim.world.script import parse_script
from tests.support.virtual import run_virtual


def virtual_ms() -> int:
    """Return the virtual loop's time in milliseconds."""
    return round(asyncio.get_running_loop().time() * 1000)


def play(scene: Callable[[Receiver], Awaitable[None]], *, dedupe: bool = True) -> Receiver:
    """Run `scene` with a fresh receiver on virtual time and return the receiver."""

    async def main() -> Receiver:
        receiver = Receiver(now_ms=virtual_ms, dedupe=dedupe)
        try:
            await scene(receiver)
        finally:
            await receiver.aclose()
        return receiver

    return run_virtual(main)


def script(receiver: Receiver, *steps: dict[str, Any], **more: Any) -> None:
    """Give the endpoint `/hooks/x` these steps."""
    receiver.learn("x", parse_script({"steps": list(steps), **more}))


def arrival(key: str = "k", body: bytes = b"{}") -> Arrival:
    """Return a request to `/hooks/x`."""
    return Arrival(path="/hooks/x", key=key, body=body)


async def leave_after(receiver: Receiver, seconds: float, request: Arrival) -> None:
    """Send a request and go away before it is answered."""
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(receiver.handle(request), seconds)


def seen(receiver: Receiver) -> list[tuple[str, int, int | None]]:
    """Return outcome, end and status of every request in the ledger."""
    return [
        (entry["outcome"], entry["ended_at_ms"] - entry["at_ms"], entry["status"])
        for entry in receiver.as_dict()["requests"]
    ]


def test_without_a_script_a_request_is_answered_200_and_has_one_effect() -> None:
    """An unconfigured receiver is a healthy one."""

    async def scene(receiver: Receiver) -> None:
        reply = await receiver.handle(arrival())

        assert reply == Reply(
            status=200,
            headers={"Content-Type": "application/json"},
            body=b'{"receiver":"scripted"}',
        )

    receiver = play(scene)

    assert receiver.as_dict()["effects"] == {"k": 1}
    assert seen(receiver) == [("replied", 0, 200)]


def test_status_headers_and_delay_are_the_steps() -> None:
    """What the step says goes onto the wire, after its delay."""

    async def scene(receiver: Receiver) -> None:
        script(receiver, {"delay_s": 1.5, "status": 503, "headers": {"Retry-After": "7"}})
        reply = await receiver.handle(arrival())

        assert reply is not None
        assert (reply.status, reply.headers["Retry-After"]) == (503, "7")

    receiver = play(scene)

    assert seen(receiver) == [("replied", 1500, 503)]
    assert receiver.as_dict()["effects"] == {}


def test_a_204_has_no_body() -> None:
    """HTTP forbids content there."""

    async def scene(receiver: Receiver) -> None:
        script(receiver, {"status": 204, "headers": {"X": "1"}})

        assert await receiver.handle(arrival()) == Reply(status=204, headers={"X": "1"})

    play(scene)


def test_what_a_step_commits_is_committed_although_the_client_left() -> None:
    """Nobody can call work back by closing a connection."""

    async def scene(receiver: Receiver) -> None:
        script(receiver, {"delay_s": 10})
        await leave_after(receiver, 2, arrival())
        before = receiver.effects.lookup("k")
        await asyncio.sleep(8.1)

        assert (before, receiver.effects.lookup("k")) == (Lookup.IN_PROGRESS, Lookup.FOUND)

    receiver = play(scene)

    assert seen(receiver) == [("left", 2000, None)]


@pytest.mark.parametrize(
    ("commit", "at_arrival", "at_end"),
    [("before", Lookup.FOUND, 1), ("after", Lookup.IN_PROGRESS, 1), ("never", Lookup.ABSENT, 0)],
)
def test_the_effect_happens_when_the_step_says(
    commit: str, at_arrival: Lookup, at_end: int
) -> None:
    """Before: at arrival; after: with the reply; never: not, whatever the status."""

    async def scene(receiver: Receiver) -> None:
        script(receiver, {"delay_s": 1, "commit": commit})
        task = asyncio.ensure_future(receiver.handle(arrival()))
        await asyncio.sleep(0.5)
        early = receiver.effects.lookup("k")
        await task

        assert (early, receiver.effects.counts["k"]) == (at_arrival, at_end)

    play(scene)


def test_a_hanging_receiver_never_answers_and_has_committed() -> None:
    """Commit then hang: the case that makes an outcome unknown to the sender."""

    async def scene(receiver: Receiver) -> None:
        script(receiver, {"then": "hang"})
        await leave_after(receiver, 3600, arrival())

        assert receiver.effects.lookup("k") is Lookup.FOUND

    receiver = play(scene)

    assert seen(receiver) == [("hung", 0, None)]


def test_a_dropped_connection_gets_no_byte() -> None:
    """None tells the host to close."""

    async def scene(receiver: Receiver) -> None:
        script(receiver, {"delay_s": 1, "then": "drop", "commit": "never"})

        assert await receiver.handle(arrival()) is None

    receiver = play(scene)

    assert seen(receiver) == [("dropped", 1000, None)]


def test_a_receiver_that_is_down_reads_nothing() -> None:
    """Closed connections are counted apart: no request arrived."""

    async def scene(receiver: Receiver) -> None:
        receiver.down = True
        first = await receiver.handle(arrival())
        receiver.down = False
        second = await receiver.handle(arrival())

        assert (first, second is None) == (None, False)

    receiver = play(scene)

    assert receiver.as_dict()["refused"] == 1
    assert seen(receiver) == [("replied", 0, 200)]


def test_a_repeat_of_a_done_key_is_replayed_at_once_with_one_effect() -> None:
    """The receiver's own idempotency."""

    async def scene(receiver: Receiver) -> None:
        script(receiver, {"delay_s": 5})
        await receiver.handle(arrival())
        await receiver.handle(arrival())

    receiver = play(scene)

    assert seen(receiver) == [("replied", 5000, 200), ("replayed", 0, 200)]
    assert receiver.as_dict()["effects"] == {"k": 1}


def test_a_repeat_of_a_key_in_progress_is_told_so() -> None:
    """409 while the first request is still being worked on."""

    async def scene(receiver: Receiver) -> None:
        script(receiver, {"delay_s": 5})
        await leave_after(receiver, 1, arrival())
        await receiver.handle(arrival())

    receiver = play(scene)

    assert seen(receiver) == [("left", 1000, None), ("in_progress", 0, 409)]


def test_a_silent_step_that_never_commits_does_not_hold_its_key() -> None:
    """Repeats meet the next step, so silence can be scripted again and again."""

    async def scene(receiver: Receiver) -> None:
        script(receiver, {"then": "hang", "commit": "never"}, {"status": 200})
        await leave_after(receiver, 1, arrival())
        await receiver.handle(arrival())

    receiver = play(scene)

    assert seen(receiver) == [("hung", 0, None), ("replied", 0, 200)]


def test_the_same_key_with_another_body_is_refused() -> None:
    """422 exposes a sender that does not repeat its bytes, whatever the step says."""

    async def scene(receiver: Receiver) -> None:
        script(receiver, {}, {"replay": False})
        await receiver.handle(arrival(body=b"1"))
        await receiver.handle(arrival(body=b"2"))

    receiver = play(scene)

    assert seen(receiver) == [("replied", 0, 200), ("mismatched", 0, 422)]


def test_a_step_may_switch_the_replay_off_but_not_double_the_effect() -> None:
    """A deduping receiver can still be slow or broken on a repeat."""

    async def scene(receiver: Receiver) -> None:
        script(receiver, {}, {"replay": False, "status": 500, "commit": "before"})
        await receiver.handle(arrival())
        await receiver.handle(arrival())

    receiver = play(scene)

    assert seen(receiver) == [("replied", 0, 200), ("replied", 0, 500)]
    assert receiver.as_dict()["effects"] == {"k": 1}


@pytest.mark.parametrize(("wait_s", "effects"), [(59.9, 1), (60.0, 2)])
def test_a_key_is_forgotten_when_its_window_has_passed(wait_s: float, effects: int) -> None:
    """Repeating under idempotency is safe only inside the dedupe window."""

    async def scene(receiver: Receiver) -> None:
        script(receiver, {}, dedupe_window_s=60)
        await receiver.handle(arrival())
        await asyncio.sleep(wait_s)
        await receiver.handle(arrival())

    assert play(scene).as_dict()["effects"] == {"k": effects}


@pytest.mark.parametrize(
    ("receiver_dedupes", "script_dedupes", "key", "effects"),
    [
        (True, None, "k", 1),
        (False, None, "k", 2),
        (True, False, "k", 2),
        (False, True, "k", 1),
        (True, True, "", 2),
    ],
)
def test_dedupe_is_the_scripts_word_then_the_receivers_and_needs_a_key(
    receiver_dedupes: bool,  # noqa: FBT001  a parametrised value
    script_dedupes: bool | None,  # noqa: FBT001  a parametrised value
    key: str,
    effects: int,
) -> None:
    """Endpoints with and without idempotency live side by side."""

    async def scene(receiver: Receiver) -> None:
        script(receiver, {}, dedupe=script_dedupes)
        await receiver.handle(arrival(key))
        await receiver.handle(arrival(key))

    assert play(scene, dedupe=receiver_dedupes).as_dict()["effects"] == {key: effects}


def test_steps_in_the_payload_come_before_those_of_the_path() -> None:
    """The attempt number of the key chooses the step."""
    body = b'{"receiver": [{"status": 503}, {"status": 422}]}'

    async def scene(receiver: Receiver) -> None:
        script(receiver, {"status": 200})
        await receiver.handle(arrival(body=body))
        await receiver.handle(arrival("other", body=body))
        await receiver.handle(arrival(body=body))

    receiver = play(scene)

    assert [status for *_, status in seen(receiver)] == [503, 503, 422]
    assert [entry["attempt"] for entry in receiver.as_dict()["requests"]] == [1, 1, 2]


def test_a_payload_with_a_broken_script_is_refused_with_the_reason() -> None:
    """400 with the field, so that a typing mistake is found at the first try."""

    async def scene(receiver: Receiver) -> None:
        reply = await receiver.handle(arrival(body=b'{"receiver": [{"delay": 1}]}'))

        assert reply is not None
        assert (reply.status, b"unknown field `delay`" in reply.body) == (400, True)

    assert seen(play(scene)) == [("unreadable", 0, 400)]


def test_clearing_forgets_requests_effects_and_keys_but_not_scripts() -> None:
    """A new experiment on the same receiver; work from before counts nowhere."""

    async def scene(receiver: Receiver) -> None:
        script(receiver, {"delay_s": 5, "status": 201})
        await leave_after(receiver, 1, arrival())
        receiver.clear()
        await asyncio.sleep(10)
        empty = receiver.as_dict()
        await receiver.handle(arrival())

        assert empty == {"requests": [], "effects": {}, "refused": 0}

    receiver = play(scene)

    assert seen(receiver) == [("replied", 5000, 201)]


def test_closing_ends_work_that_is_still_going_on() -> None:
    """A receiver that stops leaves no task behind."""

    async def scene(receiver: Receiver) -> None:
        script(receiver, {"delay_s": 100})
        await leave_after(receiver, 1, arrival())

    async def leftovers() -> int:
        receiver = Receiver(now_ms=virtual_ms)
        await scene(receiver)
        await receiver.aclose()
        return len(asyncio.all_tasks()) - 1

    assert run_virtual(leftovers) == 0


def test_o18_a_receiver_that_crashed_after_taking_the_key_has_the_effect_later() -> None:
    """409 while its own lease on the key lasts, then the effect, then the stored answer."""

    async def scene(receiver: Receiver) -> None:
        script(receiver, {"status": 500, "key_lease_s": 30}, {"status": 200})
        for wait_s in (0.0, 10.0, 20.0, 60.0):
            await asyncio.sleep(wait_s)
            await receiver.handle(arrival())

    receiver = play(scene)

    assert seen(receiver) == [
        ("replied", 0, 500),
        ("in_progress", 0, 409),
        ("replied", 0, 200),
        ("replayed", 0, 200),
    ]
    assert receiver.effects.counts["k"] == 1


def test_without_dedupe_a_lost_effect_leaves_no_key_behind() -> None:
    """A receiver that knows no keys cannot hold one."""

    async def scene(receiver: Receiver) -> None:
        script(receiver, {"status": 500, "key_lease_s": 30}, {"status": 200}, dedupe=False)
        await receiver.handle(arrival())
        await receiver.handle(arrival())

    assert [status for _, _, status in seen(play(scene))] == [500, 200]
