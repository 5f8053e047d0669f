"""One request's life, from its first message to the end of its context.

Rules (the profile's data decides the variants):
1. While the answer is under way, it holds the context. There is no limit.
2. When the answer ends, or the client leaves, the window opens: once, shared by every registration.
3. Registered work holds the context until the window's ceiling. The app call's own code and
   floating tasks live on beside it, but hold nothing.
4. When nothing holds it, the context ends. Code that needs only the event loop's next turns to
   finish may do so (a framework taking itself down is no lost work); what waits is cut.
5. At the ceiling everything is cut: cancelled, and killed after the grace, or killed at once.
6. Where the platform freezes, what is left is not cut: it is let be, holds nothing, and ends by
   itself or with its process.
7. An answer that takes longer than its limit is the platform's: the response is over.

Nothing here awaits: the event loop calls, the machines move, the narrator tells. Callbacks run in
the server's context, so that none of them belongs to the request they are about.

Not here: ASGI (`exchange`), the tables (`states`), the cut itself (`ending`).
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import Context
from dataclasses import dataclass
from functools import partial
from traceback import format_exception
from typing import Any

from platform_sim.lifetime.allowance import Allowance
from platform_sim.lifetime.births import CURRENT_GATE, make_task
from platform_sim.lifetime.clock import Clock
from platform_sim.lifetime.cut import EndReason, find_doomed, mode_of
from platform_sim.lifetime.ending import Ending
from platform_sim.lifetime.errors import NoLiveInvocation
from platform_sim.lifetime.gate import Gate, Stepper
from platform_sim.lifetime.narrator import Narrator
from platform_sim.lifetime.profile import (
    ClockStart,
    CutMode,
    DisconnectRule,
    FloatingRule,
    Profile,
)
from platform_sim.lifetime.registry import Registry
from platform_sim.lifetime.states import Client, Function, Happening, Platform, States, advance
from platform_sim.lifetime.window import CountedFrom
from platform_sim.view.event import EventKind
from platform_sim.view.recorder import Observer

__all__ = ["SETTLE_TURNS", "Invocation", "Surroundings"]

SETTLE_TURNS = 64
"""Turns of the event loop in which code that waits for nothing may finish (rule 4).

A streaming response needs 4 for itself and for each BaseHTTPMiddleware round it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What all requests of one emulator are given.

    Attributes:
        profile: The limits.
        clock: Emulator time.
        observer: Is told what happens.
        wanted: The kinds of events it wants to be told; None: all.
        on_unheld: Told when nothing holds a request that is let be; None: it cannot be, and is
            killed instead.
        on_process_cut: Told when a request's cut takes the process along.
    """

    profile: Profile
    clock: Clock
    observer: Observer
    wanted: frozenset[EventKind] | None = None
    on_unheld: "Callable[[Invocation], None] | None" = None
    on_process_cut: "Callable[[Invocation], None] | None" = None


class Invocation:
    """One request.

    Args:
        invocation_id: Names it in the record.
        surroundings: What all requests here are given.
        outside: The server's context, in which our own callbacks run.
        on_ended: Told when nothing of it is left.

    Attributes:
        invocation_id: Names it in the record.
        gate: Its coroutines.
        states: Client, function and platform.
        over: Done when the server has nothing more to wait for; carries the app's error.
        overdue: Whether the platform has to answer in the app's place.
    """

    def __init__(
        self,
        invocation_id: str,
        surroundings: Surroundings,
        outside: Context,
        *,
        on_ended: Callable[["Invocation"], None],
    ) -> None:
        self.invocation_id = invocation_id
        self.gate = Gate(owner=invocation_id, on_empty=self._on_empty)
        self.states = States()
        self.overdue = False
        self._profile = surroundings.profile
        self._clock = surroundings.clock
        self._loop = surroundings.clock.loop
        self._outside = outside
        self._narrator = Narrator(
            invocation_id, surroundings.clock, surroundings.observer, surroundings.wanted
        )
        self._on_ended = on_ended
        self._on_unheld = surroundings.on_unheld
        self._on_process_cut = surroundings.on_process_cut
        self.over: asyncio.Future[None] = self._loop.create_future()
        self._registry = Registry(self.gate)
        self._app: asyncio.Task[None] | None = None
        self._app_done = False
        self._starting = False
        self._allowance = Allowance(self._profile.allowance_s, self._clock, self._outside)
        self._answer_limit: asyncio.TimerHandle | None = None
        self._settling = False
        self._let_go = False
        self._end_reason: EndReason | None = None
        self._ending: Ending | None = None

    # Stage 1: the request arrives.

    def start(
        self,
        app: Coroutine[Any, Any, None],
        *,
        name: str,
        inside: Context,
        counted_from: CountedFrom = CountedFrom.REQUEST,
    ) -> None:
        """Run the app call in `inside`, which becomes this request's context.

        Args:
            app: The app call.
            name: For people.
            inside: The context.
            counted_from: What a window that opens with the start is said to be counted from.
        """
        if self._narrator.is_heard(EventKind.REQUEST):
            self._narrator.tell(EventKind.REQUEST, name=name)
        if self._profile.clock_start is ClockStart.REQUEST:
            self._allowance.open(counted_from)
            self._arm()
        if self._profile.answer_limit_s is not None:
            self._answer_limit = self._clock.call_at(
                self._clock.now_s() + self._profile.answer_limit_s,
                self._answer_overdue,
                context=self._outside,
            )
        stepper = self.gate.admit(app, None)
        self._app = make_task(self._loop, stepper, name=name, context=inside)
        self._starting = True
        returned = inside.run(self._begin, stepper)
        self._starting = False
        if returned and self._end_reason is None:
            self._app_over(None)
        else:
            self._app.add_done_callback(self._app_finished, context=self._outside)
            self._look()

    def _begin(self, stepper: Stepper) -> bool:
        CURRENT_GATE.set(self.gate)
        return stepper.begin()

    def tell(self, kind: EventKind, **fields: Any) -> None:
        """Tell a fact about this request that somebody else has seen."""
        self._narrator.tell(kind, **fields)

    def remaining_s(self) -> float | None:
        """Return what work registered now would get: seconds, None when unbounded."""
        return self._allowance.remaining_s()

    # Stage 2: what the client and the function do.

    def response_started(self, status: int) -> None:
        """Note the answer's first message."""
        self._narrator.tell(EventKind.RESPONSE_START, status=status)

    def response_ended(self, how: str = "complete") -> None:
        """Note the answer's last message, or that its body was handed over."""
        self._happen(Happening.RESPONSE_END)
        self._response_over(how)

    def body_over(self, how: str) -> None:
        """Note that a body that was handed over is over: complete, left or failed."""
        self._narrator.tell(EventKind.BODY_OVER, how=how)

    def client_left(self) -> None:
        """Note that the client went away; nothing once it has its answer or the context ended."""
        if self.states.client is not Client.CONNECTED or self.states.platform is Platform.ENDED:
            return
        self._happen(Happening.CLIENT_LEFT)
        if self._profile.on_disconnect is DisconnectRule.ENDS_RESPONSE:
            self._allowance.open(CountedFrom.DISCONNECT)
            self._release_server()
        self._narrator.tell(EventKind.CLIENT_LEFT, remaining_s=self.remaining_s())
        self._look()

    def _answer_overdue(self) -> None:
        if self.states.client is not Client.CONNECTED or self._end_reason is not None:
            return
        self.overdue = True
        self._happen(Happening.OVERDUE)
        self._allowance.open(CountedFrom.OVERDUE)
        self._narrator.tell(EventKind.OVERDUE, limit_s=self._profile.answer_limit_s)
        self._release_server()
        self._look()

    def _app_finished(self, app: "asyncio.Task[None]") -> None:
        self._app_over(asyncio.CancelledError() if app.cancelled() else app.exception())

    def _app_over(self, error: BaseException | None) -> None:
        self._app_done = True
        cancelled = isinstance(error, asyncio.CancelledError)
        answered = self.states.client is not Client.CONNECTED
        self._happen(Happening.APP_RETURNED if error is None else Happening.APP_RAISED)
        if cancelled and self._end_reason is not None:
            error = None  # the platform did that, and told it
        elif error is not None:
            self._narrator.tell(
                EventKind.APP_FAILED,
                error=repr(error),
                traceback="".join(format_exception(error)),
                after_response=answered,
            )
        if answered:
            self._release_server(error)
            self._look()
        else:
            self._response_over("missing" if error is None else "failed", error)

    def _happen(self, happening: Happening) -> None:
        self.states = advance(self.states, happening, self._profile.on_disconnect)

    def _response_over(self, how: str, error: BaseException | None = None) -> None:
        self._allowance.open(CountedFrom.ANSWER)
        if self._narrator.is_heard(EventKind.RESPONSE_END):
            self._narrator.tell(EventKind.RESPONSE_END, how=how, remaining_s=self.remaining_s())
        self._release_server(error)
        self._look()

    def _release_server(self, error: BaseException | None = None) -> None:
        if self._answer_limit is not None:
            self._answer_limit.cancel()
        if self.over.done():
            return
        if error is None:
            self.over.set_result(None)
        else:
            self.over.set_exception(error)

    # Stage 3: work that holds the context.

    def register(self, awaitable: Awaitable[Any]) -> None:
        """Let `awaitable` hold the context.

        Raises:
            NoLiveInvocation: The context has ended or is being cut.
        """
        if self._end_reason is not None:
            raise NoLiveInvocation(
                f"wait_until came too late: request {self.invocation_id} is over "
                f"({self._end_reason}). Register work while the response or earlier work "
                "holds it."
            )
        registration = self._registry.add(awaitable, loop=self._loop, now_s=self._clock.now_s())
        if registration is None:
            return
        self._narrator.tell_work(EventKind.REGISTERED, registration, remaining_s=self.remaining_s())
        registration.future.add_done_callback(self._work_finished, context=self._outside)
        self._look()

    def _work_finished(self, future: "asyncio.Future[Any]") -> None:
        registration = self._registry.settle(future)
        if registration is None:
            return
        cut = self._end_reason is not None
        tell = partial(self._narrator.tell_work, registration=registration)
        if future.cancelled():
            if not cut:
                tell(EventKind.TASK_CANCELLED, by="app")
        elif (error := future.exception()) is not None:
            trace = "".join(format_exception(error))
            tell(EventKind.TASK_FAILED, error=repr(error), traceback=trace, after_cut=cut)
        else:
            tell(EventKind.TASK_DONE, after_cut=cut)
        self._look()

    def let_go(self) -> None:
        """Let registered work hold the context no more: it ends with the answer."""
        self._let_go = True
        self._look()

    def _held(self) -> bool:
        if self._registry:
            return not self._let_go
        return self._profile.floating is FloatingRule.HOLDS and self._is_alive()

    def _is_alive(self) -> bool:
        return bool(self.gate.live) or not self._app_done

    def _on_empty(self) -> None:
        # Inside the last coroutine's last step: its task is not done yet.
        if not self._starting:
            self._loop.call_soon(self._look, context=self._outside)

    def _look(self) -> None:
        """Do what the present state calls for; not while the app call makes its first step."""
        if self._starting:
            return
        platform = self.states.platform
        if platform is Platform.DRAINING:
            if self._held():
                self._arm()
            elif not self._is_alive():
                self.end(self._natural_reason())
            elif not self._settling:
                self._settling = True
                self._settle(SETTLE_TURNS)
        elif platform is Platform.UNHELD and not self._registry and not self._is_alive():
            self.end(self._natural_reason())
        elif platform is Platform.ENDING and not self._registry and not self._is_alive():
            self._finish()

    def _settle(self, turns: int) -> None:
        if self.states.platform is not Platform.DRAINING or self._held():
            self._settling = False
        elif turns and self._is_alive():
            self._loop.call_soon(partial(self._settle, turns - 1), context=self._outside)
        else:
            self.end(self._natural_reason())

    def _natural_reason(self) -> EndReason:
        if self._registry:
            return EndReason.SHUTDOWN
        if self.states.function is Function.FAILED:
            return EndReason.FAILED
        if self.states.function is Function.RUNNING:
            left = self.states.client is Client.LEFT
            return EndReason.CLIENT_LEFT if left else EndReason.OVERDUE
        return EndReason.DONE

    def _arm(self) -> None:
        self._allowance.arm(partial(self.end, EndReason.CEILING))

    # Stage 4: the context ends.

    def end(self, reason: EndReason, mode: CutMode | None = None) -> None:
        """End the context now, cutting what is alive; nothing if it is ending already.

        Args:
            reason: Why.
            mode: How; None means as the profile says.
        """
        if self._end_reason is not None:
            return
        if not self._registry and not self._is_alive():
            self._end_reason = reason
            self._happen(Happening.END)
            self._finish()
            return
        mode = mode or mode_of(reason, self._profile)
        if reason is EndReason.CEILING and self.states.client is Client.CONNECTED:
            self.overdue = True
        if mode is CutMode.FREEZE:
            if self._let_be(reason):
                return
            mode = CutMode.KILL
        self._end_reason = reason
        self._happen(Happening.END)
        self._ending = Ending(
            reason,
            mode,
            gate=self.gate,
            registry=self._registry,
            app=self._app_stepper(),
            window=self._allowance.window,
            narrator=self._narrator,
        )
        self._ending.cut(
            self._clock,
            grace_s=self._profile.cancel_grace_s,
            outside=self._outside,
            on_killed=self._killed,
        )
        self._look()
        if mode is CutMode.PROCESS and self._on_process_cut is not None:
            self._on_process_cut(self)

    def _let_be(self, reason: EndReason) -> bool:
        left = find_doomed(self.gate, self._registry, self._app_stepper())
        if not left or self._on_unheld is None:
            return False
        if self.states.client is Client.CONNECTED:
            self._happen(Happening.OVERDUE)
            self._release_server()
        if self.states.platform is not Platform.DRAINING:
            return False
        self._happen(Happening.LET_BE)
        self._allowance.disarm()
        self._narrator.tell_unheld(reason, left, self._allowance.window)
        self._on_unheld(self)
        return True

    def _killed(self) -> None:
        assert self._app is not None
        self._app.remove_done_callback(self._app_finished)
        self._app_done = True
        self._look()

    def _finish(self) -> None:
        self._allowance.disarm()
        self._happen(Happening.GONE)
        if self._ending is not None:
            self._ending.finish()
        self._narrator.tell(EventKind.CONTEXT_END, reason=str(self._end_reason))
        self._release_server()
        self._on_ended(self)

    def _app_stepper(self) -> Stepper:
        assert self._app is not None
        stepper = self._app.get_coro()
        assert isinstance(stepper, Stepper)
        return stepper
