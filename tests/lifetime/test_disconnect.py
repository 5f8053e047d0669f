"""The client leaves: what the function may still do, and what the window is counted from."""

import asyncio
import gc
from typing import Any

import pytest

from platform_sim.lifetime.emulator import App
from platform_sim.lifetime.profile import GENERIC, CutMode
from platform_sim.view.event import EventKind
from tests.support.asgi import AsgiClient, answer, call, lifetime_of, respond
from tests.support.stage import Stage
from tests.support.virtual import run_virtual


async def leave_at(client: AsgiClient, at_s: float) -> None:
    """Let the client go away after that many seconds, and wait for the server's call to end."""
    call = client.start()
    await asyncio.sleep(at_s)
    client.leave()
    await call


def slow_handler(stage: Stage) -> App:
    """Answer at 3.0, writing each half second, without any wait_until."""

    async def handler(scope: Any) -> None:
        del scope
        await stage.work("tick", *[0.5] * 6)

    return answer(handler)


def test_a_handler_that_nothing_holds_is_cut_when_its_client_leaves() -> None:
    """s12, reset: the invocation is over at the disconnect."""

    async def main() -> Stage:
        stage = Stage(slow_handler)
        await leave_at(AsgiClient(stage.emulator), 1.2)
        await stage.rest()
        return stage

    stage = run_virtual(main)

    assert stage.log == [(0.5, "tick"), (1.0, "tick"), (1.2, "tick cancelled")]
    assert stage.end() == (1.2, "client_left")
    assert stage.story(EventKind.CLIENT_LEFT, EventKind.APP_CANCELLED) == [
        (1.2, "client_left", ""),
        (1.2, "app_cancelled", "the app call"),
    ]


def test_registered_work_holds_the_handler_too_and_late_work_counts() -> None:
    """s11: left at 1.0; the handler runs on to 3.0, its work registered at 2.0 is accepted."""

    def app(stage: Stage) -> App:
        async def handler(scope: Any) -> None:
            lifetime = lifetime_of(scope)
            lifetime["wait_until"](stage.work("bg", *[1.0] * 5))
            await asyncio.sleep(2.0)
            stage.write("handler 2s")
            lifetime["wait_until"](stage.work("late", 1.5))
            await asyncio.sleep(1.0)
            stage.write("handler returns")

        return answer(handler)

    async def main() -> Stage:
        stage = Stage(app)
        await leave_at(AsgiClient(stage.emulator), 1.0)
        stage.write("server released")
        await stage.rest()
        return stage

    stage = run_virtual(main)

    assert sorted(stage.log) == [
        (1.0, "bg"),
        (1.0, "server released"),
        (2.0, "bg"),
        (2.0, "handler 2s"),
        (3.0, "bg"),
        (3.0, "handler returns"),
        (3.5, "late"),
        (4.0, "bg"),
        (5.0, "bg"),
    ]
    assert stage.end() == (5.0, "done")
    (late,) = [e.fields for e in stage.events(EventKind.REGISTERED) if e.fields["task"] == 2]
    assert late["remaining_s"] == 29.0


def test_the_window_is_counted_from_the_disconnect() -> None:
    """s22 under the documented limit: left at 1.0, so work of 40 s is cut at 31.0."""

    def app(stage: Stage) -> App:
        async def handler(scope: Any) -> None:
            lifetime_of(scope)["wait_until"](stage.work("bg", *[5.0] * 8))
            await stage.work("handler", 50.0)

        return answer(handler)

    async def main() -> Stage:
        stage = Stage(app)
        await leave_at(AsgiClient(stage.emulator), 1.0)
        await stage.rest()
        return stage

    stage = run_virtual(main)

    assert stage.log[-2:] == [(31.0, "bg cancelled"), (31.0, "handler cancelled")]
    assert stage.end() == (31.0, "ceiling")
    (cut,) = stage.events(EventKind.CUT)
    assert cut.fields["text"] == (
        "cancel at 31.0 (ceiling): Stage.work (registered at 0.0), the app call; "
        "window 30.0 s counted from the disconnect at 1.0"
    )


def test_an_answer_after_the_disconnect_moves_nothing() -> None:
    """The window is opened once: left at 1.0, answered into the void at 3.0, cut at 31.0."""

    def app(stage: Stage) -> App:
        async def handler(scope: Any) -> None:
            lifetime_of(scope)["wait_until"](stage.work("bg", 50.0))
            await asyncio.sleep(3.0)

        return answer(handler)

    async def main() -> Stage:
        stage = Stage(app)
        await leave_at(AsgiClient(stage.emulator), 1.0)
        await stage.rest()
        return stage

    stage = run_virtual(main)

    (answered,) = stage.events(EventKind.RESPONSE_END)
    assert (answered.at_s, answered.fields["remaining_s"]) == (3.0, 28.0)
    (cut,) = stage.events(EventKind.CUT)
    assert cut.fields["text"].endswith("window 30.0 s counted from the disconnect at 1.0")
    assert stage.end() == (31.0, "ceiling")


def test_a_handler_is_cut_with_the_last_work_that_held_it() -> None:
    """s22, reset: the work ends at 2.0, the handler that would answer at 50.0 ends with it."""

    def app(stage: Stage) -> App:
        async def handler(scope: Any) -> None:
            lifetime_of(scope)["wait_until"](stage.work("bg", 2.0))
            await stage.work("handler", 50.0)

        return answer(handler)

    async def main() -> Stage:
        stage = Stage(app)
        await leave_at(AsgiClient(stage.emulator), 1.0)
        await stage.rest()
        return stage

    stage = run_virtual(main)

    assert stage.log == [(2.0, "bg"), (2.0, "handler cancelled")]
    assert stage.end() == (2.0, "client_left")


def test_leaving_is_seen_although_the_app_never_receives() -> None:
    """O04, s13: the client leaves a stream half-way; its work starts no later for that."""

    def app(stage: Stage) -> App:
        async def run(scope: Any, receive: Any, send: Any) -> None:
            del receive
            lifetime_of(scope)["wait_until"](stage.work("delivery", 4.0))
            await send({"type": "http.response.start", "status": 200, "headers": []})
            for _ in range(10):
                await send({"type": "http.response.body", "body": b"x", "more_body": True})
                await asyncio.sleep(0.5)
            await send({"type": "http.response.body"})

        return run

    async def main() -> tuple[Stage, AsgiClient]:
        stage = Stage(app)
        client = AsgiClient(stage.emulator)
        await leave_at(client, 1.2)
        await stage.rest()
        return stage, client

    stage, client = run_virtual(main)

    assert stage.log == [(4.0, "delivery")]
    assert client.body == b"xxx"
    assert stage.end() == (4.0, "client_left")
    assert stage.story(EventKind.CLIENT_LEFT) == [(1.2, "client_left", "")]


def test_the_disconnect_after_the_answer_is_no_client_that_left(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What uvicorn does: receive also says http.disconnect once the response is complete."""

    def app(stage: Stage) -> App:
        async def run(scope: Any, receive: Any, send: Any) -> None:
            lifetime_of(scope)["wait_until"](stage.work("bg", 2.0))
            await asyncio.sleep(0.5)
            await respond(send)
            await receive()
            stage.write(str(await receive()))

        return run

    async def main() -> Stage:
        stage = Stage(app)
        await call(stage.emulator)
        await stage.rest()
        return stage

    stage = run_virtual(main)

    gc.collect()
    assert caplog.records == []
    assert stage.log == [(0.5, "{'type': 'http.disconnect'}"), (2.0, "bg")]
    assert stage.events(EventKind.CLIENT_LEFT) == []
    assert stage.end() == (2.0, "done")


def test_the_app_is_told_that_its_client_left() -> None:
    """What a framework listens for: receive returns http.disconnect at once."""

    def app(stage: Stage) -> App:
        async def run(scope: Any, receive: Any, send: Any) -> None:
            del send
            lifetime_of(scope)["wait_until"](stage.work("bg", 5.0))
            stage.write((await receive())["type"])
            stage.write((await receive())["type"])

        return run

    async def main() -> Stage:
        stage = Stage(app)
        await leave_at(AsgiClient(stage.emulator), 1.0)
        await stage.rest()
        return stage

    stage = run_virtual(main)

    assert stage.log == [(0.0, "http.request"), (1.0, "http.disconnect"), (5.0, "bg")]
    assert stage.end() == (5.0, "done")


@pytest.mark.parametrize("cut", [CutMode.CANCEL, CutMode.KILL])
def test_a_listening_app_hears_of_its_client_before_it_is_cut(cut: CutMode) -> None:
    """s12, reset, with the signal: what needs no wait is done, then the invocation is over."""
    listeners: list[Any] = []

    def app(stage: Stage) -> App:
        async def listen(receive: Any) -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            stage.write("client left")
            await stage.work("reaction", 1.0)

        async def run(scope: Any, receive: Any, send: Any) -> None:
            del scope, send
            listeners.append(asyncio.create_task(listen(receive)))
            await stage.work("tick", *[0.5] * 6)

        return run

    async def main() -> Stage:
        stage = Stage(app, cut=cut)
        await leave_at(AsgiClient(stage.emulator), 1.2)
        await stage.rest()
        return stage

    stage = run_virtual(main)

    cancelled = [(1.2, "reaction cancelled"), (1.2, "tick cancelled")]
    assert stage.log[:3] == [(0.5, "tick"), (1.0, "tick"), (1.2, "client left")]
    assert sorted(stage.log[3:]) == (cancelled if cut is CutMode.CANCEL else [])
    assert stage.end() == (1.2, "client_left")


def test_a_killed_handler_writes_nothing_when_its_client_leaves() -> None:
    """The cut of a disconnect follows the cut mode."""

    async def main() -> Stage:
        stage = Stage(slow_handler, cut=CutMode.KILL)
        await leave_at(AsgiClient(stage.emulator), 1.2)
        await stage.rest()
        return stage

    stage = run_virtual(main)

    assert stage.log == [(0.5, "tick"), (1.0, "tick")]
    assert stage.end() == (1.2, "client_left")


def test_a_plain_process_runs_on_when_the_client_leaves() -> None:
    """The generic profile ignores the disconnect; the context ends with the app call."""

    async def main() -> Stage:
        stage = Stage(slow_handler, profile=GENERIC)
        await leave_at(AsgiClient(stage.emulator), 1.2)
        stage.write("server released")
        await stage.rest()
        return stage

    stage = run_virtual(main)

    assert stage.log == [(at / 2, "tick") for at in range(1, 7)] + [(3.0, "server released")]
    assert stage.end() == (3.0, "done")


def test_a_plain_process_is_told_of_the_disconnect_it_ignores() -> None:
    """The app may listen; the server is not released for it."""

    def app(stage: Stage) -> App:
        async def run(scope: Any, receive: Any, send: Any) -> None:
            del scope
            await receive()
            stage.write((await receive())["type"])
            await stage.work("app", 1.0)
            await respond(send)

        return run

    async def main() -> Stage:
        stage = Stage(app, profile=GENERIC)
        await leave_at(AsgiClient(stage.emulator), 1.2)
        stage.write("server released")
        await stage.rest()
        return stage

    stage = run_virtual(main)

    assert stage.log == [(1.2, "http.disconnect"), (2.2, "app"), (2.2, "server released")]


def test_code_that_trails_its_answer_receives_a_disconnect() -> None:
    """As from a server: also if nothing was read before the answer."""

    def app(stage: Stage) -> App:
        async def run(scope: Any, receive: Any, send: Any) -> None:
            lifetime_of(scope)["wait_until"](stage.work("bg", 2.0))
            await respond(send)
            stage.write((await receive())["type"])

        return run

    async def main() -> Stage:
        stage = Stage(app)
        await call(stage.emulator)
        await stage.rest()
        return stage

    stage = run_virtual(main)

    assert stage.log == [(0.0, "http.disconnect"), (2.0, "bg")]


def test_a_request_its_server_gives_up_is_one_whose_client_left() -> None:
    """A server that cancels the call will take no answer any more."""

    async def main() -> Stage:
        stage = Stage(slow_handler)
        task = AsgiClient(stage.emulator).start()
        await asyncio.sleep(0.7)
        task.cancel()
        await asyncio.wait({task})
        await stage.rest()
        return stage

    stage = run_virtual(main)

    assert stage.log == [(0.5, "tick"), (0.7, "tick cancelled")]
    assert stage.end() == (0.7, "client_left")
