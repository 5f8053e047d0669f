"""The allowance: one window per request, shared, exact to the tick."""

import asyncio
import time
from typing import Any

import pytest
from freezegun import freeze_time

from platform_sim.lifetime.emulator import App
from platform_sim.lifetime.profile import WORKERS, CutMode
from platform_sim.view.cut_log import CutLog
from platform_sim.view.event import EventKind
from tests.support.asgi import answer, call, lifetime_of
from tests.support.stage import Stage
from tests.support.virtual import run_virtual


def three_tasks(stage: Stage) -> App:
    """Register work that needs until 12.0, 31.9 and 42.0, and answer at 2.0."""

    async def handler(scope: Any) -> None:
        lifetime = lifetime_of(scope)
        await asyncio.sleep(1.0)
        for name, sleep_s in (("a", 11.0), ("b", 30.9), ("c", 41.0)):
            work = asyncio.create_task(stage.work(name, sleep_s), name=name)
            lifetime["wait_until"](work)
        await asyncio.sleep(1.0)

    return answer(handler)


@pytest.mark.parametrize("cut", [CutMode.CANCEL, CutMode.KILL])
def test_o01_three_tasks_share_one_window_and_the_third_is_cut_at_exactly_32(cut: CutMode) -> None:
    """Counted from the answer at 2.0: not at 30.0 as from the request, not 42.0 as a fresh 30 s."""

    async def main() -> Stage:
        stage = Stage(three_tasks, cut=cut)
        await call(stage.emulator)
        await stage.rest()
        return stage

    stage = run_virtual(main)

    cut_kind = EventKind.TASK_CANCELLED if cut is CutMode.CANCEL else EventKind.TASK_KILLED
    kinds = (EventKind.TASK_DONE, EventKind.TASK_CANCELLED, EventKind.TASK_KILLED)
    assert stage.story(*kinds) == [
        (12.0, "task_done", "a"),
        (31.9, "task_done", "b"),
        (32.0, str(cut_kind), "c"),
    ]
    (text,) = [event.fields["text"] for event in stage.events(cut_kind)]
    assert text == (
        f"{cut} at 32.0 (ceiling): c (registered at 1.0); "
        "window 30.0 s counted from the answer at 2.0"
    )
    assert stage.end() == (32.0, "ceiling")
    assert stage.log == [(12.0, "a"), (31.9, "b")] + (
        [(32.0, "c cancelled")] if cut is CutMode.CANCEL else []
    )


def test_o02_a_nested_registration_gets_only_what_is_left() -> None:
    """A registers B at 21.0; the answer was at 1.0, so B is cut at 31.0, not at 51.0."""

    def nested(stage: Stage) -> App:
        async def first(lifetime: Any) -> None:
            await asyncio.sleep(20.0)
            stage.write(f"remaining {lifetime['remaining']()}")
            lifetime["wait_until"](stage.work("b", 40.0))
            stage.write("a done")

        async def handler(scope: Any) -> None:
            await asyncio.sleep(1.0)
            lifetime_of(scope)["wait_until"](first(lifetime_of(scope)))

        return answer(handler)

    async def main() -> Stage:
        stage = Stage(nested)
        await call(stage.emulator)
        await stage.rest()
        return stage

    stage = run_virtual(main)

    assert stage.log == [(21.0, "remaining 10.0"), (21.0, "a done"), (31.0, "b cancelled")]
    assert stage.end() == (31.0, "ceiling")
    (late,) = [e.fields for e in stage.events(EventKind.REGISTERED) if e.fields["task"] == 2]
    assert late["remaining_s"] == 10.0


def never_ending(stage: Stage) -> App:
    """Register a task that waits for ever."""

    async def handler(scope: Any) -> None:
        lifetime_of(scope)["wait_until"](stage.work("forever", 1e9))

    return answer(handler)


@pytest.mark.parametrize("frozen", [False, True])
def test_o35_the_window_closes_at_virtual_30_whether_or_not_wall_time_is_frozen(
    frozen: bool,  # noqa: FBT001  a parametrised fact
) -> None:
    """The loop's clock is the only one used: 30 virtual seconds take far less than 0.5 s."""

    async def main() -> Stage:
        stage = Stage(never_ending)
        await call(stage.emulator)
        await stage.rest()
        return stage

    began = time.perf_counter()
    if frozen:
        with freeze_time("2026-01-01", real_asyncio=True, ignore=["time.perf_counter"]):
            stage = run_virtual(main)
    else:
        stage = run_virtual(main)
    took_s = time.perf_counter() - began

    assert stage.end() == (30.0, "ceiling")
    assert frozen or took_s < 0.5


def test_o38_a_task_that_never_ends_leaves_one_warning_and_nothing_for_the_next_run(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The next emulator starts with no work and its own clock at 0."""

    async def never() -> Stage:
        stage = Stage(never_ending)
        await call(stage.emulator)
        await stage.rest()
        for event in stage.recorder.events:
            CutLog().observe(event)
        return stage

    async def nothing() -> tuple[Stage, float, int]:
        alive = len(asyncio.all_tasks())

        async def handler(scope: Any) -> None:
            del scope

        stage = Stage(lambda _: answer(handler))
        await call(stage.emulator)
        return stage, await stage.rest(), alive

    first = run_virtual(never)
    second, rested_at, alive = run_virtual(nothing)

    assert first.end() == (30.0, "ceiling")
    (warning,) = caplog.records
    assert warning.getMessage() == (
        "request 1: cancel at 30.0 (ceiling): Stage.work (registered at 0.0); "
        "window 30.0 s counted from the answer at 0.0"
    )
    assert (rested_at, alive) == (0.0, 1)
    assert second.end() == (0.0, "done")
    assert second.events(EventKind.REGISTERED) == []


def test_work_that_is_done_before_the_ceiling_ends_the_context_at_once() -> None:
    """s01, s02: the invocation is over with its last registered task, not at the ceiling."""

    def two(stage: Stage) -> App:
        async def handler(scope: Any) -> None:
            lifetime_of(scope)["wait_until"](stage.work("a", 1.0))
            lifetime_of(scope)["wait_until"](stage.work("b", 3.0))

        return answer(handler)

    async def main() -> Stage:
        stage = Stage(two)
        client = await call(stage.emulator)
        stage.write(f"answered {client.sent[-1][0]}")
        await stage.rest()
        return stage

    stage = run_virtual(main)

    assert stage.log == [(0.0, "answered 0.0"), (1.0, "a"), (3.0, "b")]
    assert stage.end() == (3.0, "done")


def test_a_late_call_is_accepted_while_earlier_work_holds_the_context() -> None:
    """s05, s24: called 1 s after the answer; it outlives the one that held the context."""

    def late(stage: Stage) -> App:
        async def keeper(lifetime: Any) -> None:
            await stage.work("call", 1.0)
            lifetime["wait_until"](stage.work("late", 2.0))
            await stage.work("keeper", 0.5)

        async def handler(scope: Any) -> None:
            lifetime_of(scope)["wait_until"](keeper(lifetime_of(scope)))

        return answer(handler)

    async def main() -> Stage:
        stage = Stage(late)
        await call(stage.emulator)
        await stage.rest()
        return stage

    stage = run_virtual(main)

    assert stage.log == [(1.0, "call"), (1.5, "keeper"), (3.0, "late")]
    assert stage.end() == (3.0, "done")


def test_a_stored_function_attaches_to_the_request_that_calls_it() -> None:
    """s07: A stores its wait_until and ends; B calls it, and the work holds B."""
    stored: list[Any] = []

    def storing(stage: Stage) -> App:
        async def handler(scope: Any) -> None:
            if scope["path"] == "/a":
                stored.append(lifetime_of(scope)["wait_until"])
            else:
                stored[0](stage.work("via a", 2.0))

        return answer(handler)

    async def main() -> Stage:
        stage = Stage(storing)
        await call(stage.emulator, path="/a")
        await asyncio.sleep(0.5)
        await call(stage.emulator, path="/b")
        await stage.rest()
        return stage

    stage = run_virtual(main)

    ends = [
        (event.invocation_id, event.at_s, event.fields["reason"])
        for event in stage.events(EventKind.CONTEXT_END)
    ]
    assert ends == [("1", 0.0, "done"), ("2", 2.5, "done")]
    assert [event.invocation_id for event in stage.events(EventKind.REGISTERED)] == ["2"]
    assert stage.log == [(2.5, "via a")]


def test_five_thousand_tasks_are_all_waited_for() -> None:
    """s20: every one of them holds the context."""
    done: list[int] = []

    def many(stage: Stage) -> App:
        async def one(number: int) -> None:
            await asyncio.sleep(1.0 + (number % 1000) / 1000)
            done.append(number)

        async def handler(scope: Any) -> None:
            for number in range(5000):
                lifetime_of(scope)["wait_until"](one(number))

        return answer(handler)

    async def main() -> Stage:
        stage = Stage(many)
        await call(stage.emulator)
        await stage.rest()
        return stage

    stage = run_virtual(main)

    assert len(done) == 5000
    assert stage.end() == (1.999, "done")


def test_remaining_is_the_whole_allowance_before_the_answer_and_what_is_left_after_it() -> None:
    """And never negative: also code that outlives the ceiling reads 0.0."""

    def asking(stage: Stage) -> App:
        async def work(remaining: Any) -> None:
            try:
                for _ in range(10):
                    stage.write(f"{remaining()}")
                    await asyncio.sleep(1.0)
            except asyncio.CancelledError:
                await asyncio.sleep(0.05)
                stage.write(f"{remaining()}")

        async def handler(scope: Any) -> None:
            lifetime = lifetime_of(scope)
            await asyncio.sleep(1.0)
            stage.write(f"{lifetime['remaining']()}")
            lifetime["wait_until"](work(lifetime["remaining"]))
            await asyncio.sleep(0.5)

        return answer(handler)

    async def main() -> Stage:
        stage = Stage(asking, allowance_s=1.5)
        await call(stage.emulator)
        await stage.rest()
        return stage

    stage = run_virtual(main)

    assert stage.log == [(1.0, "1.5"), (1.0, "1.5"), (2.0, "1.0"), (3.05, "0.0")]


def test_without_an_allowance_registered_work_is_cut_with_the_answer() -> None:
    """A platform that grants nothing after the response: remaining is 0.0 from the start."""

    async def main() -> Stage:
        stage = Stage(three_tasks, allowance_s=0.0)
        await call(stage.emulator)
        await stage.rest()
        return stage

    stage = run_virtual(main)

    assert stage.end() == (2.0, "ceiling")
    assert [event.fields["remaining_s"] for event in stage.events(EventKind.REGISTERED)] == [0] * 3


def test_an_unbounded_allowance_has_no_ceiling() -> None:
    """None means unbounded, for remaining as for the window."""

    async def main() -> Stage:
        stage = Stage(three_tasks, allowance_s=None)
        await call(stage.emulator)
        await stage.rest()
        return stage

    stage = run_virtual(main)

    assert stage.end() == (42.0, "done")
    assert [e.fields["remaining_s"] for e in stage.events(EventKind.REGISTERED)] == [None] * 3


def test_two_requests_have_windows_of_their_own() -> None:
    """The second's allowance is counted from the second's answer."""

    async def main() -> Stage:
        stage = Stage(never_ending)
        await call(stage.emulator)
        await asyncio.sleep(7.0)
        await call(stage.emulator)
        await stage.rest()
        return stage

    stage = run_virtual(main)

    assert stage.story(EventKind.CONTEXT_END) == [
        (30.0, "context_end", "ceiling"),
        (37.0, "context_end", "ceiling"),
    ]


def test_the_reference_profile_is_30_seconds_after_the_response() -> None:
    """The documented limit, as data."""
    assert (WORKERS.allowance_s, WORKERS.cut) == (30.0, CutMode.CANCEL)
