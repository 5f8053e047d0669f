"""The client of a trial."""

import asyncio
from typing import Any

import pytest

from platform_sim.lab.sweep.asking import Answer, Asking, SweptRequest
from platform_sim.lab.sweep.errors import BadSweep
from tests.support.asgi import respond
from tests.support.virtual import run_virtual


def ask(app: Any, request: SweptRequest | None = None) -> Answer:
    """Send one request."""
    asked = request or SweptRequest.of("POST /orders?fast=1", data={"id": 1}, headers={"X-A": "b"})
    return run_virtual(lambda: Asking(asked).ask(app, {"pool": "open"}))


def test_the_app_sees_an_ordinary_request() -> None:
    """Path, query, headers, state and body are where ASGI has them."""
    seen: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.extend([scope, await receive()])
        await respond(send, chunks=(b'{"a"', b": 1}"))
        seen.append(await receive())

    answer = ask(app)
    scope, body, last = seen

    assert (scope["method"], scope["path"], scope["query_string"]) == ("POST", "/orders", b"fast=1")
    assert (b"x-a", b"b") in scope["headers"]
    assert (b"content-type", b"application/json") in scope["headers"]
    assert scope["state"] == {"pool": "open"}
    assert body == {"type": "http.request", "body": b'{"id": 1}', "more_body": False}
    assert last == {"type": "http.disconnect"}
    assert (answer.status, answer.json(), answer.acknowledged) == (200, {"a": 1}, True)


def test_an_app_that_raises_is_a_500() -> None:
    """As any server would have it."""

    async def app(*_: Any) -> None:
        raise ValueError

    assert ask(app) == Answer(status=500)


def test_an_answer_that_breaks_off_is_none() -> None:
    """The connection was dropped in the middle of it."""

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"X-A", b"b")]})
        await send({"type": "http.response.body", "body": b"half", "more_body": True})
        raise ValueError

    answer = ask(app)

    assert (answer.status, answer.body, answer.headers) == (None, b"half", {"x-a": "b"})
    assert not answer.acknowledged


def test_messages_that_are_no_answer_are_passed_over() -> None:
    """An early hint is none."""

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.debug", "info": {}})
        await respond(send, status=204)

    assert ask(app).status == 204


def test_a_turn_passes_between_the_answer_and_the_apps_next_line() -> None:
    """There a cut can fall: the client has its answer, and the app does not know."""
    answered: list[bool] = []

    async def main() -> None:
        asking = Asking(SweptRequest.of("GET /"))
        send = asyncio.ensure_future(
            asking._send({"type": "http.response.body", "body": b"", "more_body": False})
        )
        await asyncio.sleep(0)
        answered.extend([asking._is_whole, send.done()])
        await send

    run_virtual(main)

    assert answered == [True, False]


@pytest.mark.parametrize(
    "line", ["", "POST", "/orders", "FETCH /orders", "POST orders", "GET /a b"]
)
def test_a_line_that_is_no_request_is_refused(line: str) -> None:
    """The message shows one that is."""
    with pytest.raises(BadSweep, match="write it like 'POST /orders'"):
        SweptRequest.of(line)


def test_a_request_says_itself() -> None:
    """As it would be typed; a body that is given stays as it is."""
    request = SweptRequest.of(" PUT  /a ", body=b"x")

    assert (str(request), request.body, dict(request.headers)) == ("PUT /a", b"x", {})
