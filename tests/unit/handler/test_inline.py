"""The inline pass is handed over before the answer leaves and begins when it has left."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import anyio
import pytest

from handler.inline import InlineAnswer, InlinePass
from tests.support.virtual import run_virtual


class Story:
    """Writes down in which order things happen."""

    def __init__(self, *, wait_until_raises: bool = False, send_raises: bool = False) -> None:
        self.lines = list[str]()
        self._tasks = list[asyncio.Task[None]]()
        self._wait_until_raises = wait_until_raises
        self._send_raises = send_raises

    async def _run(self, answered: anyio.Event) -> None:
        await answered.wait()
        self.lines.append("pass begins")

    def _wait_until(self, work: Coroutine[Any, Any, None]) -> None:
        if self._wait_until_raises:
            raise RuntimeError("too late")
        self.lines.append("handed over")
        self._tasks.append(asyncio.ensure_future(work))

    async def _send(self, message: Any) -> None:
        await anyio.sleep(1)
        if self._send_raises:
            raise OSError("the client is gone")
        self.lines.append(message["type"])

    async def answer(self) -> None:
        """Send an answer and wait for what follows it."""
        answer = InlineAnswer({}, status_code=202)
        answer.follow_up = InlinePass(
            run=self._run,
            wait_until=self._wait_until,
            refused=lambda error: self.lines.append(f"refused: {error}"),
        )
        scope = {"type": "http"}
        try:
            await answer(scope, None, self._send)  # type: ignore[arg-type]
        finally:
            await asyncio.gather(*self._tasks)


def test_the_pass_begins_when_the_answer_has_left() -> None:
    """The platform's clock starts with the answer, so nothing is spent before it."""
    story = Story()
    run_virtual(story.answer)

    assert story.lines == [
        "handed over",
        "http.response.start",
        "http.response.body",
        "pass begins",
    ]


def test_o05_the_pass_begins_also_when_the_client_hung_up() -> None:
    """The operation is owed, whether or not anybody heard the answer."""
    story = Story(send_raises=True)
    with pytest.raises(OSError, match="the client is gone"):
        run_virtual(story.answer)

    assert story.lines == ["handed over", "pass begins"]


def test_a_platform_that_refuses_costs_the_pass_and_not_the_answer() -> None:
    """The work is closed without ever having begun, so that nothing is left un-awaited."""
    story = Story(wait_until_raises=True)
    run_virtual(story.answer)

    assert story.lines == ["refused: too late", "http.response.start", "http.response.body"]


def test_an_answer_that_owes_nothing_hands_over_nothing() -> None:
    """A replay is answered and that is all."""
    sent = list[str]()

    async def main() -> None:
        async def send(message: Any) -> None:
            sent.append(message["type"])

        await InlineAnswer({})({"type": "http"}, None, send)  # type: ignore[arg-type]

    run_virtual(main)

    assert sent == ["http.response.start", "http.response.body"]
