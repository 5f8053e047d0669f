"""The inline pass: handed to the platform before the answer leaves, begun when it has left.

Rules: the platform's clock starts with the answer, so the pass begins then and not earlier, and it
begins also when the client has hung up. A platform that refuses the work owns nothing, and the
operation stays acknowledged: its marker is claimed, and redrive takes it over when the lease is
over.

Not here: what a pass does (`delivery`), and whether one may follow at all (`accept`, `places`).
"""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

import anyio
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

__all__ = ["InlineAnswer", "InlinePass"]


@dataclass(frozen=True, slots=True, kw_only=True)
class InlinePass:
    """A pass that follows an answer.

    Attributes:
        run: Makes the pass; it waits for the event before it does anything.
        wait_until: The platform's.
        refused: Told when the platform raises in place of taking the pass.
    """

    run: Callable[[anyio.Event], Coroutine[Any, Any, None]]
    wait_until: Callable[[Coroutine[Any, Any, None]], None]
    refused: Callable[[Exception], None]

    def hand_over(self, answered: anyio.Event) -> None:
        """Give the pass to the platform, to begin when `answered` is set."""
        work = self.run(answered)
        try:
            self.wait_until(work)
        except Exception as error:  # noqa: BLE001  a platform's failure must not cost the answer
            work.close()
            self.refused(error)


class InlineAnswer(JSONResponse):
    """An answer that hands its pass over before it leaves."""

    follow_up: InlinePass | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the answer; the pass begins also when the client is gone before its end."""
        answered = anyio.Event()
        if self.follow_up is not None:
            self.follow_up.hand_over(answered)
        try:
            await super().__call__(scope, receive, send)
        finally:
            answered.set()
