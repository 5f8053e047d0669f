"""Playing a plan: what is noted, and when."""

import asyncio
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route

from platform_sim.lab.conformance.lifespan import AppFailed
from platform_sim.lab.conformance.plan import plan_of
from platform_sim.lab.conformance.play import play
from platform_sim.lifetime.profile import WORKERS
from tests.support.asgi import respond
from tests.support.traces import trace

END = (3.0, "driver", "observation:end")


def played(app: Any, *events: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """Play a request (or what is given) against an app; return what was noted."""
    asked = events or ((0.0, "client", "request:sent", {"path": "/x"}),)
    notes = play(plan_of(trace(*asked, END)), app, profile=WORKERS)
    return [(event.at_s, str(event), dict(event.fields)) for event in notes]


def log_of(scope: Any) -> Any:
    """Return the log an app finds in its scope."""
    return scope["extensions"]["outlast.conformance"]["log"]


def test_an_app_logs_into_the_same_story_as_its_client_and_the_platform() -> None:
    """With fields, and with the virtual time."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        del receive
        log_of(scope)("handler:start", n=1)
        await asyncio.sleep(1.25)
        await respond(send)

    assert played(app) == [
        (0.0, "client request:sent", {"path": "/x", "method": "GET"}),
        (0.0, "worker handler:start", {"n": 1}),
        (1.25, "client response:headers", {"status": 200}),
        (1.25, "client response:end", {"body": "ok"}),
        (
            1.25,
            "tail invocation:reported",
            {"outcome": "ok", "status": 200, "exceptions": [], "warnings": []},
        ),
    ]


def test_a_framework_runs_with_its_lifespan_and_streams_in_chunks() -> None:
    """Starlette, with state from its lifespan, a query and a body in pieces."""
    steps: list[str] = []

    async def chunks() -> Any:
        for letter in ("a", "", "b"):
            await asyncio.sleep(0.5)
            yield letter

    async def home(request: Request) -> StreamingResponse:
        log_of(request.scope)("query", q=request.query_params["q"])
        return StreamingResponse(chunks())

    class Lifespan:
        def __init__(self, app: Any) -> None:
            del app

        async def __aenter__(self) -> None:
            steps.append("started")

        async def __aexit__(self, *error: object) -> None:
            steps.append("stopped")

    app = Starlette(routes=[Route("/x", home)], lifespan=Lifespan)
    notes = played(app, (0.0, "client", "request:sent", {"path": "/x?q=1"}))

    assert [note[:2] for note in notes] == [
        (0.0, "client request:sent"),
        (0.0, "worker query"),
        (0.0, "client response:headers"),
        (0.5, "client response:chunk"),
        (1.5, "client response:chunk"),
        (1.5, "client response:end"),
        (1.5, "tail invocation:reported"),
    ]
    assert notes[5][2] == {"chunks": 2}
    assert steps == ["started", "stopped"]


@pytest.mark.parametrize("how", ["close", "reset", "halfclose"])
def test_a_client_that_leaves_is_a_disconnect_however_it_does(how: str) -> None:
    """The app hears of it; what it still sends goes nowhere."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        for _ in range(2):
            log_of(scope)((await receive())["type"])
        await respond(send)

    notes = played(
        app,
        (0.0, "client", "request:sent", {"path": "/x"}),
        (1.0, "client", "disconnect", {"how": how}),
    )

    assert [note[:2] for note in notes if note[1].startswith("worker")] == [
        (0.0, "worker http.request"),
        (1.0, "worker http.disconnect"),
    ]
    assert "client response:headers" not in [note[1] for note in notes]


@pytest.mark.parametrize("raises", [True, False])
def test_a_server_answers_in_place_of_an_app_that_did_not(
    raises: bool,  # noqa: FBT001  a parametrised fact
) -> None:
    """It raised, or it simply returned."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        del receive, send
        if raises and scope["type"] == "http":
            raise LookupError("x")

    answer = [(note[1], note[2]) for note in played(app) if "response:" in note[1]]
    assert answer == [
        ("client response:headers", {"status": 500}),
        ("client response:end", {"body": "Internal Server Error"}),
    ]


def test_an_answer_that_breaks_off_is_seen_as_that() -> None:
    """The connection closes inside the answer."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        del scope, receive
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"a", "more_body": True})
        raise LookupError("x")

    assert [note[1] for note in played(app) if "response:" in note[1]] == [
        "client response:headers",
        "client response:chunk",
        "client response:aborted",
    ]


def test_messages_the_client_does_not_see_pass_by() -> None:
    """Such as a push."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        del scope, receive
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.push", "path": "/y", "headers": []})
        await send({"type": "http.response.body"})

    assert [note[1] for note in played(app)][1:3] == [
        "client response:headers",
        "client response:end",
    ]


def test_scheduled_runs_are_dispatched_and_their_result_is_the_drivers() -> None:
    """A handler of one scope."""

    async def handler(scope: Any) -> None:
        log_of(scope)("handler:start", cron=scope["cron"])
        await asyncio.sleep(1.0)
        raise LookupError("x")

    notes = played(
        handler,
        (0.0, "driver", "sched:dispatched", {"cron": "* * * * *"}),
        (0.1, "worker", "handler:start"),
    )

    assert notes == [
        (0.0, "driver sched:dispatched", {"cron": "* * * * *"}),
        (0.1, "worker handler:start", {"cron": "* * * * *"}),
        (
            1.1,
            "tail invocation:reported",
            {
                "outcome": "exception",
                "status": None,
                "exceptions": ["LookupError: x"],
                "warnings": [],
            },
        ),
        (1.1, "driver sched:result", {"result": {"outcome": "exception", "noRetry": False}}),
    ]


def test_the_observation_ends_whatever_still_runs() -> None:
    """What a cut app would still log is not noted."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        del receive, send
        try:
            await asyncio.sleep(500.0)
        finally:
            log_of(scope)("finally")

    assert [note[1] for note in played(app)] == ["client request:sent"]


def test_an_app_that_refuses_to_start_is_told_with_its_reason() -> None:
    """Before anything is asked of it."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        del scope
        await receive()
        await send({"type": "lifespan.startup.failed", "message": "no table"})

    with pytest.raises(AppFailed, match="the app refused to start: no table"):
        played(app)


def test_an_app_that_lets_no_time_pass_is_told() -> None:
    """It would hang the comparison."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        del scope, receive, send
        while True:  # noqa: ASYNC110  the mistake under test
            await asyncio.sleep(0)

    with pytest.raises(AppFailed, match="the app never comes to rest"):
        played(app)


@pytest.mark.parametrize("manner", ["raises", "returns", "answers", "hangs"])
def test_an_app_without_lifespan_is_served_without(manner: str) -> None:
    """As servers do; time and log begin with the first request all the same."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        log_of(scope)("handler:start")
        if scope["type"] == "lifespan":
            await asyncio.sleep(1e6 if manner == "hangs" else 2.0)
            if manner == "raises":
                raise NotImplementedError
            if manner == "returns":
                return
        await PlainTextResponse("ok")(scope, receive, send)

    assert [note[:2] for note in played(app)] == [
        (0.0, "client request:sent"),
        (0.0, "worker handler:start"),
        (0.0, "client response:headers"),
        (0.0, "client response:end"),
        (0.0, "tail invocation:reported"),
    ]


def test_an_app_that_gives_no_reason_for_refusing_is_told_too() -> None:
    """The message is optional."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        del scope, receive
        await send({"type": "lifespan.startup.failed"})
        await send({"type": "lifespan.startup.failed", "message": "twice"})

    with pytest.raises(AppFailed, match="refused to start: it gives no reason"):
        played(app)
