"""Platforms that freeze: the process stands still between requests, and time goes on meanwhile."""

import asyncio
from typing import Any

import pytest

from platform_sim.lifetime.emulator import App
from platform_sim.lifetime.profile import CLOUD_RUN, LAMBDA, ClockStart, CutMode, Profile
from platform_sim.view.event import EventKind
from tests.support.asgi import AsgiClient, answer, call, lifetime_of, respond
from tests.support.stage import Stage
from tests.support.virtual import run_virtual

KEPT: list[Any] = []


def leaving(stage: Stage) -> App:
    """`/floating` leaves a task of 5 s, `/work` registers one; `/slow` answers after 3 s."""

    async def handler(scope: Any) -> None:
        if scope["path"] == "/floating":
            KEPT.append(asyncio.create_task(stage.work("floating", 5.0), name="mailer"))
        elif scope["path"] == "/work":
            lifetime_of(scope)["wait_until"](stage.work("work", 5.0, 5.0))
        elif scope["path"] == "/slow":
            await stage.work("slow", 3.0)

    return answer(handler)


async def request(stage: Stage, path: str, *, at_s: float) -> AsgiClient:
    """Send a request at that time."""
    await asyncio.sleep(at_s - asyncio.get_running_loop().time())
    return await call(stage.emulator, path=path)


@pytest.mark.parametrize(
    ("profile", "path"), [(LAMBDA, "/floating"), (CLOUD_RUN, "/floating"), (CLOUD_RUN, "/work")]
)
def test_what_nothing_holds_sleeps_until_the_next_request(profile: Profile, path: str) -> None:
    """Its timer of 5 s has passed by then, so it goes on at once, in the later request's time."""

    async def main() -> Stage:
        stage = Stage(leaving, profile=profile)
        await request(stage, path, at_s=0.0)
        stage.write("answered")
        await request(stage, "/", at_s=300.0)
        await asyncio.sleep(1.0)
        await stage.rest()
        return stage

    stage = run_virtual(main)

    name = path.removeprefix("/")
    assert stage.log[:2] == [(0.0, "answered"), (300.0, name)]
    (frozen, *_), (thawed,) = stage.events(EventKind.FROZEN), stage.events(EventKind.THAWED)
    assert (frozen.at_s, frozen.invocation_id) == (0.0, "1")
    assert (thawed.at_s, thawed.invocation_id, thawed.fields) == (300.0, "1", {"frozen_s": 300.0})
    assert all(cut.fields["reason"] == "shutdown" for cut in stage.events(EventKind.CUT))


def test_what_is_left_runs_on_while_another_request_is_served_and_is_frozen_with_it() -> None:
    """A first leg of 5 s passes in the sleep; of the second only 3 s pass before the next one."""

    async def main() -> Stage:
        stage = Stage(leaving, profile=CLOUD_RUN)
        await request(stage, "/work", at_s=0.0)
        await request(stage, "/slow", at_s=100.0)
        await request(stage, "/slow", at_s=200.0)
        await stage.rest()
        return stage

    stage = run_virtual(main)

    assert stage.log == [(100.0, "work"), (103.0, "slow"), (200.0, "work"), (203.0, "slow")]
    assert [
        (event.at_s, event.fields.get("frozen_s"))
        for event in stage.events(EventKind.FROZEN, EventKind.THAWED)
    ] == [(0.0, None), (100.0, 100.0), (103.0, None), (200.0, 97.0)]
    ends = [(event.at_s, event.invocation_id) for event in stage.events(EventKind.CONTEXT_END)]
    assert ends == [(103.0, "2"), (200.0, "1"), (203.0, "3")]


def test_registered_work_holds_off_the_freeze_where_the_platform_allows_it() -> None:
    """Lambda with an extension: floating work runs beside registered work, and sleeps after it."""

    def app(stage: Stage) -> App:
        async def handler(scope: Any) -> None:
            KEPT.append(asyncio.create_task(stage.work("floating", 1.0, 10.0)))
            lifetime_of(scope)["wait_until"](stage.work("work", 2.0))

        return answer(handler)

    async def main() -> Stage:
        stage = Stage(app, profile=LAMBDA)
        await call(stage.emulator)
        await asyncio.sleep(60.0)
        await stage.rest()
        return stage

    stage = run_virtual(main)

    assert stage.log == [(1.0, "floating"), (2.0, "work")]
    (unheld,) = stage.events(EventKind.UNHELD)
    assert (unheld.at_s, unheld.fields["reason"]) == (2.0, "done")
    assert unheld.fields["names"] == ["Stage.work"]
    assert unheld.fields["text"].startswith(
        f"freeze at 2.0 (done): Stage.work (never given to wait_until; created at {__file__}:"
    )
    assert stage.end() == (60.0, "shutdown")


def test_a_process_that_stops_ends_what_is_frozen_without_a_line_of_it() -> None:
    """The frozen never run again; what becomes unheld during the stop ends likewise."""

    async def main() -> Stage:
        stage = Stage(leaving, profile=CLOUD_RUN)
        await request(stage, "/work", at_s=0.0)
        slow = AsgiClient(stage.emulator, path="/slow").start()
        await asyncio.sleep(1.0)
        stage.write(f"rest {await stage.rest(60.0)}")
        await slow
        return stage

    stage = run_virtual(main)

    assert stage.log == [(3.0, "slow"), (3.0, "rest 3.0")]
    ends = [(event.at_s, event.fields["reason"]) for event in stage.events(EventKind.CONTEXT_END)]
    assert ends == [(1.0, "shutdown"), (3.0, "done")]


def test_what_is_left_behind_during_a_stop_ends_at_once() -> None:
    """There is no later request that could thaw it."""

    def app(stage: Stage) -> App:
        async def handler(scope: Any) -> None:
            del scope
            KEPT.append(asyncio.create_task(stage.work("floating", 50.0)))
            await asyncio.sleep(2.0)

        return answer(handler)

    async def main() -> Stage:
        stage = Stage(app, profile=LAMBDA)
        AsgiClient(stage.emulator).start()
        await asyncio.sleep(1.0)
        stage.write(f"rest {await stage.rest(60.0)}")
        return stage

    stage = run_virtual(main)

    assert stage.log == [(2.0, "rest 2.0")]
    assert stage.end() == (2.0, "shutdown")


def test_an_answer_over_its_limit_is_504_and_the_container_goes_on() -> None:
    """Cloud Run answers in the app's place; the app sleeps, and what it sends later is dropped."""

    def app(stage: Stage) -> App:
        async def run(scope: Any, receive: Any, send: Any) -> None:
            del receive
            if scope["path"] == "/late":
                await stage.work("late", 400.0)
            await respond(send)
            stage.write("sent")

        return run

    async def main() -> tuple[Stage, AsgiClient]:
        stage = Stage(app, profile=CLOUD_RUN)
        late = await call(stage.emulator, path="/late")
        stage.write("504")
        await request(stage, "/", at_s=500.0)
        await asyncio.sleep(1.0)
        await stage.rest()
        return stage, late

    stage, late = run_virtual(main)

    assert (late.status, late.sent[-1][0]) == (504, 300.0)
    assert sorted(stage.log) == [(300.0, "504"), (500.0, "late"), (500.0, "sent"), (500.0, "sent")]
    (overdue,) = stage.events(EventKind.OVERDUE)
    assert (overdue.at_s, overdue.fields) == (300.0, {"limit_s": 300.0})
    (unheld,) = stage.events(EventKind.UNHELD)
    assert unheld.fields["reason"] == "overdue"


def test_an_answer_that_has_begun_is_broken_off_at_its_limit() -> None:
    """A second status cannot be sent."""

    def app(stage: Stage) -> App:
        async def run(scope: Any, receive: Any, send: Any) -> None:
            del scope, receive
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"half", "more_body": True})
            await stage.work("rest", 50.0)

        return run

    async def main() -> tuple[Stage, AsgiClient]:
        stage = Stage(app, answer_limit_s=5.0)
        client = await call(stage.emulator)
        await stage.rest()
        return stage, client

    stage, client = run_virtual(main)

    assert (client.status, client.body) == (200, b"half")
    assert not client.answered
    assert stage.log == [(5.0, "rest cancelled")]
    assert stage.end() == (5.0, "overdue")


def test_an_answer_within_its_limit_takes_the_limit_back() -> None:
    """It is no limit for what comes after."""

    async def main() -> Stage:
        stage = Stage(leaving, answer_limit_s=4.0)
        await request(stage, "/slow", at_s=0.0)
        await request(stage, "/work", at_s=4.0)
        await stage.rest()
        return stage

    stage = run_virtual(main)

    assert stage.log == [(3.0, "slow"), (9.0, "work"), (14.0, "work")]
    assert stage.events(EventKind.OVERDUE) == []


@pytest.mark.parametrize("leaves", [False, True])
def test_one_limit_for_answer_and_work_freezes_an_app_that_has_not_answered(
    leaves: bool,  # noqa: FBT001  a parameter of the test
) -> None:
    """The client gets 504; a request whose client has left has nobody to answer, and is killed."""

    async def main() -> tuple[Stage, AsgiClient]:
        stage = Stage(
            leaving,
            profile=LAMBDA,
            clock_start=ClockStart.REQUEST,
            allowance_s=1.0,
            cut=CutMode.FREEZE,
        )
        client = AsgiClient(stage.emulator, path="/slow")
        client.start()
        await asyncio.sleep(0.5)
        if leaves:
            client.leave()
        await asyncio.sleep(9.5)
        await call(stage.emulator)
        await asyncio.sleep(1.0)
        await stage.rest()
        return stage, client

    stage, client = run_virtual(main)

    assert client.status == (None if leaves else 504)
    assert stage.log == ([] if leaves else [(10.0, "slow")])
    assert len(stage.events(EventKind.UNHELD)) == (0 if leaves else 1)
