"""Clients wait, or leave; an app is told of it as by a real server."""

import asyncio
from typing import Any

import pytest

from platform_sim.world.clients import Answer, Client, Leave
from tests.support.asgi import respond
from tests.support.virtual import run_virtual

BODY = b"0123456789"


def client(body_after_s: float = 0.0, **leave: Any) -> Client:
    """Return a client with a body of ten bytes."""
    return Client(
        path="/x",
        headers={"X-Key": "k"},
        body=BODY,
        body_after_s=body_after_s,
        leave=Leave(**leave),
    )


def ask(app: Any, asking: Client) -> tuple[Answer, float]:
    """Let a client ask an app; return its answer and when the app was done."""

    async def main() -> tuple[Answer, float]:
        answer = await asking.ask(app)
        return answer, round(asyncio.get_running_loop().time(), 3)

    return run_virtual(main)


def test_a_client_gets_the_whole_answer_and_its_request_is_whole() -> None:
    """Method, path, headers and body."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        message = await receive()
        assert (scope["method"], scope["path"]) == ("POST", "/x")
        assert scope["headers"] == [(b"x-key", b"k")]
        assert message == {"type": "http.request", "body": BODY, "more_body": False}
        await respond(send, status=202, chunks=(b"a", b"b"))

    assert ask(app, client()) == (Answer(status=202, body=b"ab"), 0.0)


def test_a_body_may_come_in_two_halves() -> None:
    """The second one when its time has come."""
    parts: list[tuple[float, bytes, bool]] = []

    async def app(_scope: Any, receive: Any, send: Any) -> None:
        for _ in range(2):
            message = await receive()
            now_s = asyncio.get_running_loop().time()
            parts.append((now_s, message["body"], message["more_body"]))
        await respond(send)

    ask(app, client(body_after_s=2.0))

    assert parts == [(0.0, b"01234", True), (2.0, b"56789", False)]


@pytest.mark.parametrize("body_after_s", [0.0, 9.0])
def test_a_client_that_leaves_is_told_and_hears_nothing_more(body_after_s: float) -> None:
    """Whether its body was whole or not; the app's call goes on."""
    heard: list[tuple[float, str]] = []

    async def app(_scope: Any, receive: Any, send: Any) -> None:
        message = await receive()
        while message["type"] != "http.disconnect":
            message = await receive()
        heard.append((asyncio.get_running_loop().time(), message["type"]))
        await respond(send)
        await asyncio.sleep(3.0)

    answer, ended_s = ask(app, client(body_after_s=body_after_s, after_s=1.0))

    assert heard == [(1.0, "http.disconnect")]
    assert (answer, ended_s) == (Answer(status=None, left_after_s=1.0), 4.0)


def test_a_client_may_leave_the_moment_it_has_its_answer() -> None:
    """It has the status, and is told of as gone."""

    async def app(_scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await asyncio.sleep(0.5)
        await respond(send, status=202)
        assert (await receive())["type"] == "http.disconnect"

    assert ask(app, client(at_answer=True)) == (
        Answer(status=202, body=b"ok", left_after_s=0.5),
        0.5,
    )


def test_an_app_that_fails_before_its_answer_gives_a_500() -> None:
    """As a server would answer in its place; after a started answer, that one's status."""

    async def fails(*_: Any) -> None:
        raise LookupError

    async def fails_late(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 202, "headers": []})
        raise LookupError

    async def answers_nothing(*_: Any) -> None:
        """Return without an answer."""

    assert ask(fails, client())[0].status == 500
    assert ask(fails_late, client())[0].status == 202
    assert ask(answers_nothing, client())[0].status is None


def test_messages_of_other_kinds_are_passed_over() -> None:
    """A server ignores what it does not know."""

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.debug"})
        await respond(send)

    assert ask(app, client())[0].status == 200
