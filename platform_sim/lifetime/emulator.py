"""Any ASGI app, living by a platform's rules: a pure ASGI wrapper.

Rules: each HTTP request runs in its own task and its own context. The wrapper's call returns to the
server when the response is over, raising what the app raised before it; the request's work goes on
here. The lifespan scope passes through with the contract present, so that an app can refuse to
start without it. Other scopes pass untouched. All requests here share one process: where the
platform freezes, they stand still together, and a cut of the process ends them together.

Not here: sockets and processes (`platform_sim.host`).
"""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterator
from contextvars import Context, copy_context
from typing import Any

from platform_sim.lifetime.births import mind_births
from platform_sim.lifetime.clock import Clock
from platform_sim.lifetime.cut import EndReason
from platform_sim.lifetime.exchange import Exchange, Receive, Scope, Send
from platform_sim.lifetime.handover import HANDOVER
from platform_sim.lifetime.invocation import Invocation, Surroundings
from platform_sim.lifetime.profile import CutMode, Profile, ShutdownRule
from platform_sim.lifetime.standstill import Standstill
from platform_sim.lifetime.wait_until import CURRENT_INVOCATION, extend
from platform_sim.view.event import Event, EventKind
from platform_sim.view.recorder import Observer, Silent, kinds_of

__all__ = ["App", "Emulator"]

App = Callable[[Scope, Receive, Send], Awaitable[None]]


class Emulator:
    """An ASGI app that runs another one under a profile.

    Args:
        app: The app.
        profile: The platform's limits.
        observer: Is told what happens.
        ids: Names for the requests, in order; by default 1, 2, 3.
        on_start: Is given each request before its first step: an experiment sets its gate's hook.
        wall_ms: Gives epoch milliseconds, asked once at the start, for the record; may be None.
        end_process: Ends the process at once, for the cut mode `process`; without it the requests
            end as if it had.
    """

    def __init__(
        self,
        app: App,
        *,
        profile: Profile,
        observer: Observer | None = None,
        ids: Iterator[str] | None = None,
        on_start: Callable[[Invocation], None] | None = None,
        wall_ms: Callable[[], int] | None = None,
        end_process: Callable[[], None] | None = None,
    ) -> None:
        self._app = app
        self._profile = profile
        self._observer = observer or Silent()
        self._ids = ids or map(str, itertools.count(1))
        self._on_start = on_start
        self._wall_ms = wall_ms
        self._end_process = end_process
        self._standstill = Standstill()
        self._clock: Clock | None = None
        self._surroundings: Surroundings | None = None
        self._alive: dict[Invocation, None] = {}
        self._waiting: list[asyncio.Future[None]] = []
        self._stopping = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI scope."""
        if scope["type"] == "http":
            await self._serve(scope, receive, send)
        elif scope["type"] == "lifespan":
            self._attach()
            await self._app(self._extended(scope), receive, send)
        else:
            await self._app(scope, receive, send)

    @property
    def alive(self) -> tuple[Invocation, ...]:
        """The requests whose context has not ended, oldest first."""
        return tuple(self._alive)

    @property
    def idle(self) -> bool:
        """Whether no request holds the process."""
        return len(self._alive) == len(self._standstill)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        clock = self._attach()
        self._standstill.thaw(clock)
        outside = copy_context()
        invocation = self._invocation(clock, outside)
        exchange = Exchange(invocation, scope, receive, send, outside)
        inside = outside.copy()
        inside.run(CURRENT_INVOCATION.set, invocation)
        name = f"{scope.get('method', '')} {scope.get('path', '')}".strip()
        extended = self._extended(scope)
        extended["extensions"][HANDOVER] = {}
        if self._on_start is not None:
            self._on_start(invocation)
        invocation.start(self._run(extended, exchange), name=name, inside=inside)
        exchange.read(clock.loop)
        try:
            await invocation.over
            if invocation.overdue:
                await exchange.answer_instead()
            if exchange.handover is not None:
                await exchange.handover.over()
        except asyncio.CancelledError:
            # The server gave the request up; nobody is left who would take an answer.
            invocation.client_left()
            raise
        finally:
            exchange.close()

    def _invocation(self, clock: Clock, outside: Context) -> Invocation:
        if self._surroundings is None or self._surroundings.clock is not clock:
            self._surroundings = Surroundings(
                profile=self._profile,
                clock=clock,
                observer=self._observer,
                wanted=kinds_of(self._observer),
                on_unheld=self._let_be,
                on_process_cut=self._cut_process,
            )
        invocation = Invocation(next(self._ids), self._surroundings, outside, on_ended=self._forget)
        self._alive[invocation] = None
        return invocation

    def _extended(self, scope: Scope) -> Scope:
        return extend(scope, platform=self._profile.name, stopping=self._is_stopping)

    def _is_stopping(self) -> bool:
        return self._stopping

    async def _run(self, scope: Scope, exchange: Exchange) -> None:
        await self._app(scope, exchange.receive, exchange.send)

    def tell(self, kind: EventKind, invocation_id: str = "", **fields: Any) -> None:
        """Tell a fact that somebody else has seen; what it is about may be over already."""
        at_s = 0.0 if self._clock is None else round(self._clock.now_s(), 6)
        self._observer.observe(
            Event(at_s=at_s, kind=kind, invocation_id=invocation_id, fields=fields)
        )

    def _attach(self) -> Clock:
        loop = asyncio.get_running_loop()
        mind_births(loop)
        if self._clock is None or self._clock.loop is not loop:
            self._clock = Clock(loop, loop.time())
            self._tell_start()
        return self._clock

    def _tell_start(self) -> None:
        profile = self._profile
        fields = {
            "profile": profile.name,
            "allowance_s": profile.allowance_s,
            "cut": str(profile.cut),
        }
        if self._wall_ms is not None:
            fields["wall_ms"] = self._wall_ms()
        self._observer.observe(
            Event(at_s=0.0, kind=EventKind.STARTED, invocation_id="", fields=fields)
        )

    def _let_be(self, invocation: Invocation) -> None:
        if self._stopping:
            invocation.end(EndReason.SHUTDOWN)
            return
        self._standstill.add(invocation)
        self._rest()

    def _rest(self) -> None:
        if self._clock is not None and len(self._standstill):
            self._standstill.settle(self._clock, lambda: self.idle)

    def _cut_process(self, cause: Invocation) -> None:
        others = self.alive
        for invocation in others:
            invocation.end(EndReason.NEIGHBOUR, CutMode.KILL)
        ids = [invocation.invocation_id for invocation in others]
        shared = f"; requests {', '.join(ids)} were there too" if ids else ""
        text = f"the process was killed at the ceiling of request {cause.invocation_id}{shared}"
        cause.tell(EventKind.PROCESS_KILLED, shared_with=ids, text=text)
        if self._end_process is not None:
            self._end_process()

    def _forget(self, invocation: Invocation) -> None:
        self._alive.pop(invocation, None)
        self._standstill.discard(invocation)
        self._rest()
        while self._waiting and not self._alive:
            self._waiting.pop().set_result(None)

    async def drain(self, *, within_s: float) -> None:
        """Wait for all requests and their work; cut what is left in time to be gone by `within_s`.

        Work is not waited for where the profile's shutdown grace is for answers only.

        With the cut mode `cancel` the cut comes early by the cancel grace. From now on the contract
        says that the platform is stopping.
        """
        self._stopping = True
        for invocation in self._standstill.left:
            invocation.end(EndReason.SHUTDOWN)
        if self._profile.shutdown is ShutdownRule.ANSWERS:
            for invocation in self.alive:
                invocation.let_go()
        grace_s = self._profile.cancel_grace_s if self._profile.cut is CutMode.CANCEL else 0.0
        await self._wait_gone(max(0.0, within_s - grace_s))
        for invocation in self.alive:
            invocation.end(EndReason.SHUTDOWN)
        await self._wait_gone(None)

    async def _wait_gone(self, within_s: float | None) -> None:
        if self._alive:
            gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(gone)
            await asyncio.wait({gone}, timeout=within_s)
