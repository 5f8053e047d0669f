"""The ASGI side of one request: messages in, messages out, and what they mean for its life.

Rules: the server's `send` and `receive` always run in the server's own context. What they start (a
keep-alive timer, the connection's next request) then belongs to the server and not to the request
that happened to call. A disconnect message after the answer is no client that left.

Not here: what the meaning leads to (`invocation`).
"""

import asyncio
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator, MutableMapping
from contextvars import Context
from typing import Any, TypeVar

from platform_sim.lifetime.handover import HANDOVER, Handover
from platform_sim.lifetime.intake import Intake
from platform_sim.lifetime.invocation import Invocation
from platform_sim.lifetime.states import Client

__all__ = ["Exchange", "Message", "Receive", "Scope", "Send", "run_in"]

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
T = TypeVar("T")

_OVERDUE = b"the platform's limit for an answer has passed\n"


class Exchange:
    """The two directions of one request."""

    def __init__(
        self, invocation: Invocation, scope: Scope, receive: Receive, send: Send, outside: Context
    ) -> None:
        self._invocation = invocation
        self._server_receive = receive
        self._server_send = send
        self._outside = outside
        self._intake = Intake(wait_for_app=_expects_continue(scope))
        self._trailers = False
        self._started = False
        self._ended = False
        self._reading: asyncio.Task[None] | None = None
        self._answered_instead = False
        self._handover: Handover | None = None
        self.receive = self._intake.receive

    def read(self, loop: asyncio.AbstractEventLoop) -> None:
        """Read the client's messages from the app's first pause on.

        An app that answers in its first step, as many do, costs no reading task.
        """
        loop.call_soon(self._start_reading, loop, context=self._outside)

    def _start_reading(self, loop: asyncio.AbstractEventLoop) -> None:
        if not self._invocation.over.done() or self._handover is not None:
            self._reading = loop.create_task(self._pump(), context=self._outside)

    async def _pump(self) -> None:
        await self._intake.pump(self._server_receive)
        self._invocation.client_left()
        self._intake.disconnect()
        if self._handover is not None:
            self._handover.stop()

    def close(self) -> None:
        """Stop reading and passing on, and tell the app that no more messages will come."""
        if self._reading is not None:
            self._reading.cancel()
        if self._handover is not None:
            self._handover.stop()
        self._intake.disconnect()

    async def send(self, message: Message) -> None:
        """Pass a message of the app to the server, and note what it means.

        Raises:
            RuntimeError: The body was handed over: it is not the app's any more.
        """
        if self._handover is not None:
            raise RuntimeError("the body was handed over: the app cannot send one of its own")
        if self._answered_instead:
            return
        if message["type"] == HANDOVER:
            self._hand_over(message)
            return
        starts = message["type"] == "http.response.start"
        self._started = self._started or starts
        await run_in(self._outside, _call(self._server_send, message))
        if starts:
            self._trailers = bool(message.get("trailers", False))
            self._invocation.response_started(message["status"])
        elif not self._ended and self._is_last(message):
            self._ended = True
            self._invocation.response_ended()

    def _hand_over(self, message: Message) -> None:
        self._ended = True
        if self._invocation.states.client is not Client.LEFT:
            self._handover = Handover(
                message["chunks"],
                self._server_send,
                outside=self._outside,
                on_over=self._invocation.body_over,
            )
        self._invocation.response_ended("handed_over")

    async def answer_instead(self) -> None:
        """Answer 504 in the app's place, unless its answer has begun; it can send no more."""
        self._answered_instead = True
        if not self._started:
            headers = [(b"content-type", b"text/plain"), (b"content-length", b"%d" % len(_OVERDUE))]
            await self._server_send(
                {"type": "http.response.start", "status": 504, "headers": headers}
            )
            await self._server_send({"type": "http.response.body", "body": _OVERDUE})

    async def handed_over(self) -> None:
        """Wait until a body that was handed over is over, raising what broke it."""
        if self._handover is not None:
            await self._handover.over()

    def _is_last(self, message: Message) -> bool:
        match message["type"]:
            case "http.response.body":
                return not self._trailers and not message.get("more_body", False)
            case "http.response.trailers":
                return not message.get("more_trailers", False)
            case "http.response.pathsend":
                return not self._trailers
            case _:
                return False


async def _call(send: Send, message: Message) -> None:
    await send(message)


def _expects_continue(scope: Scope) -> bool:
    return any(
        name.lower() == b"expect" and value.lower() == b"100-continue"
        for name, value in scope.get("headers", ())
    )


@types.coroutine
def run_in(context: Context, coroutine: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
    """Await `coroutine` in the current task, with every step of it in `context`."""
    step: Callable[[Any], Any] = coroutine.send
    given: Any = None
    while True:
        try:
            awaited = context.run(step, given)
        except StopIteration as finished:
            result: T = finished.value
            return result
        try:
            given = yield awaited
            step = coroutine.send
        except BaseException as error:  # noqa: BLE001  whatever is thrown in belongs to the coroutine
            given = error
            step = coroutine.throw
