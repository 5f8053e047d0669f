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
from types import CoroutineType
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
    """The two directions of one request.

    Attributes:
        handover: The body on its way, if the app has handed it over.
    """

    def __init__(
        self, invocation: Invocation, scope: Scope, receive: Receive, send: Send, outside: Context
    ) -> None:
        self._invocation = invocation
        self._server_receive = receive
        self._server_send = send
        self._outside = outside
        self._scope = scope
        self._intake: Intake | None = None
        self._closed = False
        self._trailers = False
        self._started = False
        self._ended = False
        self._reading: asyncio.Task[None] | None = None
        self._answered_instead = False
        self.handover: Handover | None = None

    def read(self, loop: asyncio.AbstractEventLoop) -> None:
        """Read the client's messages from the app's first pause on.

        An app that answers in its first step, as many do, costs no reading task.
        """
        if not self._invocation.over.done() or self.handover is not None:
            self._reading = loop.create_task(self._pump(), context=self._outside)

    async def receive(self) -> Message:
        """Return the next message of the client: the app's own `receive`."""
        message: Message = await self._taken().receive()
        return message

    def _taken(self) -> Intake:
        if self._intake is None:
            self._intake = Intake(wait_for_app=_expects_continue(self._scope))
            if self._closed:
                self._intake.disconnect()
        return self._intake

    async def _pump(self) -> None:
        intake = self._taken()
        await intake.pump(self._server_receive)
        self._invocation.client_left()
        intake.disconnect()
        if self.handover is not None:
            self.handover.stop()

    def close(self) -> None:
        """Stop reading and passing on, and tell the app that no more messages will come."""
        if self._reading is not None:
            self._reading.cancel()
        if self.handover is not None:
            self.handover.stop()
        self._closed = True
        if self._intake is not None:
            self._intake.disconnect()

    async def send(self, message: Message) -> None:
        """Pass a message of the app to the server, and note what it means.

        Raises:
            RuntimeError: The body was handed over: it is not the app's any more.
        """
        if self.handover is not None:
            raise RuntimeError("the body was handed over: the app cannot send one of its own")
        if self._answered_instead:
            return
        if message["type"] == HANDOVER:
            self._hand_over(message)
            return
        starts = message["type"] == "http.response.start"
        self._started = self._started or starts
        sending = self._server_send(message)
        if not isinstance(sending, CoroutineType):
            sending = _awaited(sending)
        try:
            awaited = self._outside.run(sending.send, None)
        except StopIteration:
            pass  # taken at once, as by servers whose client is not slow
        else:
            await run_in(self._outside, sending, awaited)
        if starts:
            self._trailers = bool(message.get("trailers", False))
            self._invocation.response_started(message["status"])
        elif not self._ended and self._is_last(message):
            self._ended = True
            self._invocation.response_ended()

    def _hand_over(self, message: Message) -> None:
        self._ended = True
        if self._invocation.states.client is not Client.LEFT:
            self.handover = Handover(
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


async def _awaited(awaitable: Awaitable[None]) -> None:
    await awaitable


def _expects_continue(scope: Scope) -> bool:
    return any(
        name.lower() == b"expect" and value.lower() == b"100-continue"
        for name, value in scope.get("headers", ())
    )


@types.coroutine
def run_in(
    context: Context, coroutine: Coroutine[Any, Any, T], awaited: Any
) -> Generator[Any, Any, T]:
    """Await a coroutine in the current task, with every step of it in `context`.

    Args:
        context: Where it runs.
        coroutine: It has made its first step there.
        awaited: What that step gave.
    """
    while True:
        try:
            given = yield awaited
            step: Callable[[Any], Any] = coroutine.send
        except BaseException as error:  # noqa: BLE001  whatever is thrown in belongs to the coroutine
            given = error
            step = coroutine.throw
        try:
            awaited = context.run(step, given)
        except StopIteration as finished:
            result: T = finished.value
            return result
