"""The wrapper as its host sees it: the record's beginning, who is alive, and the drain."""

import asyncio
import gc
import weakref
from typing import Any

import pytest

from platform_sim.lifetime.emulator import App, Emulator
from platform_sim.lifetime.invocation import Invocation
from platform_sim.lifetime.profile import WORKERS, ClockStart, CutMode
from platform_sim.view.event import EventKind
from platform_sim.view.recorder import Recorder
from tests.support.asgi import AsgiClient, answer, call, lifetime_of
from tests.support.stage import Stage
from tests.support.virtual import run_virtual


async def quick(scope: Any) -> None:
    """Do nothing before the answer."""
    del scope


def test_the_record_begins_with_the_run_it_belongs_to() -> None:
    """Once per event loop; wall time only where a host gives it."""
    recorder = Recorder()
    emulator = Emulator(answer(quick), profile=WORKERS, observer=recorder, wall_ms=lambda: 1234)

    async def main() -> None:
        await call(emulator)
        await call(emulator)

    run_virtual(main)
    run_virtual(main)

    started = recorder.of(EventKind.STARTED)
    assert [event.at_s for event in started] == [0.0, 0.0]
    assert started[0].fields == {
        "profile": "workers",
        "allowance_s": 30.0,
        "cut": "cancel",
        "wall_ms": 1234,
    }


def test_requests_are_named_in_order_or_as_the_host_likes() -> None:
    """Names are handed out as requests come."""
    recorder = Recorder()

    async def main() -> None:
        named = Emulator(
            answer(quick), profile=WORKERS, observer=recorder, ids=iter(["alpha", "beta"])
        )
        await call(named, path="/x", method="POST")
        await call(named)
        await call(Emulator(answer(quick), profile=WORKERS))

    run_virtual(main)

    requests = recorder.of(EventKind.REQUEST)
    assert [(event.invocation_id, event.fields["name"]) for event in requests] == [
        ("alpha", "POST /x"),
        ("beta", "GET /"),
    ]


def working(stage: Stage) -> App:
    """Answer at 1.0 and work until 5.0."""

    async def handler(scope: Any) -> None:
        lifetime_of(scope)["wait_until"](stage.work("bg", 5.0))
        await stage.work("handler", 1.0)

    return answer(handler)


def test_who_is_alive_is_known_until_the_context_ends() -> None:
    """The server's call returns at 1.0, the request is alive until 5.0."""

    async def main() -> list[int]:
        stage = Stage(working)
        await call(stage.emulator)
        alive = [len(stage.emulator.alive)]
        await asyncio.sleep(3.9)
        alive.append(len(stage.emulator.alive))
        await asyncio.sleep(0.2)
        alive.append(len(stage.emulator.alive))
        return alive

    assert run_virtual(main) == [1, 1, 0]


@pytest.mark.parametrize(
    ("within_s", "gone_at", "log"),
    [
        (10.0, 5.0, [(1.0, "handler"), (5.0, "bg")]),
        (3.0, 2.9, [(1.0, "handler"), (2.9, "bg cancelled")]),
        (0.5, 0.4, [(0.4, "bg cancelled"), (0.4, "handler cancelled")]),
        (0.0, 0.0, [(0.0, "bg cancelled"), (0.0, "handler cancelled")]),
    ],
)
def test_a_drain_waits_and_then_cuts_in_time(
    within_s: float, gone_at: float, log: list[tuple[float, str]]
) -> None:
    """Requests in flight and registered work are gone by the time given, their grace included."""

    async def main() -> tuple[Stage, float]:
        stage = Stage(working)
        serving = AsgiClient(stage.emulator).start()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        gone = await stage.rest(within_s)
        await serving
        return stage, gone

    stage, gone = run_virtual(main)

    assert gone == gone_at
    assert stage.log == log
    assert stage.end()[1] == ("done" if within_s == 10.0 else "shutdown")


def test_a_drain_under_kill_needs_no_grace() -> None:
    """The cut comes exactly at the time given."""

    async def main() -> Stage:
        stage = Stage(working, cut=CutMode.KILL)
        serving = AsgiClient(stage.emulator).start()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await stage.rest(3.0)
        await serving
        return stage

    stage = run_virtual(main)

    assert stage.log == [(1.0, "handler")]
    assert stage.end() == (3.0, "shutdown")


def test_a_drain_without_requests_is_over_at_once() -> None:
    """Also before the first request, when no loop is known yet."""

    async def main() -> float:
        stage = Stage(working)
        await stage.rest()
        await call(Emulator(answer(quick), profile=WORKERS))
        await asyncio.sleep(1.0)
        return await stage.rest()

    assert run_virtual(main) == 1.0


@pytest.mark.parametrize("within_s", [10.0, 3.0])
def test_nothing_of_a_request_is_kept_after_its_end(within_s: float) -> None:
    """Neither its ceiling's timer nor its grace's holds it until they would have fired."""
    requests: list[weakref.ref[Invocation]] = []

    async def main() -> Invocation | None:
        stage = Stage(working, on_start=lambda request: requests.append(weakref.ref(request)))
        await call(stage.emulator)
        await stage.rest(within_s)
        await asyncio.sleep(0)
        gc.collect()
        return requests[0]()

    assert run_virtual(main) is None


def test_an_answer_given_while_being_shut_down_still_reaches_the_client() -> None:
    """Cleanup code may answer in the cancel grace."""

    def app(stage: Stage) -> App:
        del stage

        async def handler(scope: Any) -> None:
            del scope
            try:
                await asyncio.sleep(50.0)
            except asyncio.CancelledError:
                await asyncio.sleep(0.05)

        return answer(handler, status=503)

    async def main() -> tuple[Stage, AsgiClient]:
        stage = Stage(app)
        client = AsgiClient(stage.emulator)
        serving = client.start()
        await asyncio.sleep(1.0)
        await stage.rest(1.0)
        await serving
        return stage, client

    stage, client = run_virtual(main)

    assert client.status == 503
    assert stage.end() == (1.95, "shutdown")


def test_an_allowance_counted_from_the_request_bounds_the_answer_too() -> None:
    """Platforms with one limit for both cut a handler that has not answered by then."""

    async def main() -> tuple[Stage, AsgiClient]:
        stage = Stage(working, clock_start=ClockStart.REQUEST, allowance_s=0.75)
        client = await call(stage.emulator)
        await stage.rest()
        return stage, client

    stage, client = run_virtual(main)

    assert (client.status, client.sent[0][0]) == (504, 0.75)
    assert stage.log == [(0.75, "bg cancelled"), (0.75, "handler cancelled")]
    assert stage.end() == (0.75, "ceiling")
    (cut,) = stage.events(EventKind.CUT)
    assert cut.fields["text"].endswith("window 0.75 s counted from the request at 0.0")


def test_a_client_that_leaves_a_request_being_cut_changes_nothing() -> None:
    """The context is ending already; it ends once."""

    def app(stage: Stage) -> App:
        async def handler(scope: Any) -> None:
            del scope
            try:
                await asyncio.sleep(50.0)
            finally:
                await asyncio.sleep(0.05)
                stage.write("clean")

        return answer(handler)

    async def main() -> Stage:
        stage = Stage(app)
        client = AsgiClient(stage.emulator)
        serving = client.start()
        await asyncio.sleep(1.0)
        draining = asyncio.create_task(stage.emulator.drain(within_s=0.1))
        await asyncio.sleep(0.02)
        client.leave()
        await serving
        await draining
        return stage

    stage = run_virtual(main)

    assert stage.log == [(1.05, "clean")]
    assert stage.story(EventKind.CLIENT_LEFT, EventKind.CONTEXT_END) == [
        (1.02, "client_left", ""),
        (1.05, "context_end", "shutdown"),
    ]
