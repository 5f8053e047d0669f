"""The platform contract: how a platform hands the handler its lifetime, without imports either way.

`scope["extensions"]["outlast.lifetime"]` is a mapping with `wait_until(awaitable)`, which lets
work go on after the answer, `remaining()`, the seconds the platform still grants (None: no bound;
before the answer: all of what follows it), and `platform`, its name. A platform that is told
before it stops may add `stopping()`: once it says so, no pass and no attempt begins here. The
mapping stands in request scopes and in the lifespan scope, so that strict mode can refuse to start
on a server that would own no work after an answer.

Not here: the supplying side (the emulator, and `handler.targets`).
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from starlette.types import ASGIApp, Receive, Scope, Send

from handler.errors import LifetimeMissing

__all__ = ["EXTENSION", "Lifetime", "LifetimeGuard", "never"]

EXTENSION = "outlast.lifetime"


def never() -> bool:
    """Say that no stop has begun, for a platform that does not tell."""
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifetime:
    """What one request's platform grants.

    Attributes:
        wait_until: Lets an awaitable go on after the answer.
        remaining: Returns the seconds still granted, or None when there is no bound.
        platform: The platform's name.
        stopping: Tells whether an orderly stop has begun.
    """

    wait_until: Callable[[Awaitable[Any]], None]
    remaining: Callable[[], float | None]
    platform: str
    stopping: Callable[[], bool] = never

    @classmethod
    def of(cls, scope: Mapping[str, Any]) -> Self | None:
        """Return the lifetime a scope carries, or None when it carries none."""
        supplied = (scope.get("extensions") or {}).get(EXTENSION)
        if supplied is None:
            return None
        return cls(
            wait_until=supplied["wait_until"],
            remaining=supplied["remaining"],
            platform=supplied["platform"],
            stopping=supplied.get("stopping", never),
        )


class LifetimeGuard:
    """Pure ASGI middleware of strict mode: no start-up, and no request, without a lifetime."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a scope pass that carries a lifetime; refuse any other, naming what is missing.

        Raises:
            LifetimeMissing: A request came from a server that supplies none and asked for no
            start-up.
        """
        if Lifetime.of(scope) is not None or scope["type"] not in {"http", "lifespan"}:
            await self._app(scope, receive, send)
        elif scope["type"] == "lifespan":
            await receive()
            await send({"type": "lifespan.startup.failed", "message": str(LifetimeMissing())})
        else:
            raise LifetimeMissing
