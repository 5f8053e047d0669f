"""The platform contract as the app sees it: `scope["extensions"]["outlast.lifetime"]`.

Rules: the functions act on the request whose context the caller is in, whichever request they were
taken from: one that stores them and ends leaves them usable to the next. Called where no request is
alive, they raise.

Not here: what registering does (`invocation`).
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, MutableMapping
from contextvars import ContextVar
from typing import Any

from platform_sim.lifetime.errors import NoLiveInvocation
from platform_sim.lifetime.invocation import Invocation

__all__ = ["CURRENT_INVOCATION", "EXTENSION", "extend", "remaining", "wait_until"]

EXTENSION = "outlast.lifetime"
"""The name of the scope extension."""

CURRENT_INVOCATION: ContextVar[Invocation | None] = ContextVar("outlast_invocation", default=None)
"""The request whose context this is."""


def wait_until(awaitable: Awaitable[Any]) -> None:
    """Let `awaitable` hold the caller's request until it ends or the allowance does.

    A coroutine is started as a task. Work registered late, or by other registered work, gets only
    what is left of the allowance.

    Raises:
        TypeError: `awaitable` is none.
        NoLiveInvocation: The caller is in no request, or in one that is over.
    """
    if not inspect.isawaitable(awaitable):
        raise TypeError(
            f"wait_until takes an awaitable, not {type(awaitable).__name__}: call the async "
            "function and pass what it returns"
        )
    try:
        _current("wait_until").register(awaitable)
    except NoLiveInvocation:
        if inspect.iscoroutine(awaitable):
            awaitable.close()  # it will never be awaited, and has not begun
        raise


def remaining() -> float | None:
    """Return the seconds that work registered now would get; None when unbounded.

    Raises:
        NoLiveInvocation: The caller is in no request.
    """
    return _current("remaining").remaining_s()


def _current(function: str) -> Invocation:
    invocation = CURRENT_INVOCATION.get()
    if invocation is None:
        raise NoLiveInvocation(
            f"{function} was called outside any request: call it in the handler, or in work that "
            "a handler started"
        )
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise NoLiveInvocation(
            f"{function} was called in a worker thread: call it on the event loop, for example "
            "with anyio.from_thread.run_sync"
        ) from None
    return invocation


def extend(
    scope: MutableMapping[str, Any], *, platform: str, stopping: Callable[[], bool]
) -> dict[str, Any]:
    """Return a copy of an ASGI scope that carries the contract.

    Args:
        scope: The scope as the server made it.
        platform: The platform's name.
        stopping: Tells whether an orderly stop has begun; work that is not begun by then should
            not be begun here.
    """
    return {
        **scope,
        "extensions": {
            **(scope.get("extensions") or {}),
            EXTENSION: {
                "wait_until": wait_until,
                "remaining": remaining,
                "platform": platform,
                "stopping": stopping,
            },
        },
    }
