"""Front: holds the listening socket, and sees to it that some worker always serves it.

Rules:
1. One worker serves. Another is kept ready where workers are killed, so that it takes over at once;
   until it does, new connections wait at the socket, which the front never closes.
2. A worker that is to be replaced (it keeps too much of what was killed, or the code has changed)
   serves until its successor is ready, then finishes what it has and ends: no request is lost.
3. A worker that ends unasked is replaced. If the successor cannot start, that is said and tried
   again after a pause; if the very first cannot, the front gives up.
4. A worker whose process is cut kills itself at the ceiling. One whose event loop is blocked then
   is killed from here, a little later.
5. A worker that stands still is woken when somebody connects.

Not here: the worker process (`hand`, `worker`), watching files (`watch`).
"""

import asyncio
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

import msgspec

from platform_sim.host.child import describe_exit
from platform_sim.host.errors import LaunchError
from platform_sim.host.front.hand import Hand
from platform_sim.host.front.messages import (
    Dying,
    Full,
    Held,
    Order,
    Ready,
    Released,
    Resting,
    Retire,
    Serve,
    Word,
)
from platform_sim.host.lifeline import Lifeline
from platform_sim.host.signals import StopRequests

__all__ = ["Front", "FrontOptions"]

_PAUSE_S: Final = 0.2
_PAUSE_CAP_S: Final = 5.0
_BLOCKED_S: Final = 0.5  # from a ceiling to the kill from outside
_END_S: Final = 3.0  # from the end of the shutdown grace to SIGKILL
_HURRY_S: Final = 1.0  # from the second request to the kill


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontOptions:
    """What a front is told.

    Attributes:
        order: What each worker is told; number and control socket are filled in.
        spare: Whether a second worker is kept ready.
    """

    order: Order
    spare: bool


class Front:
    """The workers behind one socket.

    Args:
        options: What it is told.
        listener: The socket, listening already.
        say: Told what becomes of workers: a text, and the request it is about if it is about one.
    """

    def __init__(
        self, options: FrontOptions, listener: socket.socket, say: Callable[..., None]
    ) -> None:
        self._options = options
        self._listener = listener
        self._say = say
        self._lifeline = Lifeline()
        self._serving: Hand | None = None
        self._next: Hand | None = None
        self._hands: dict[Hand, asyncio.Task[None]] = {}
        self._retiring: set[Hand] = set()
        self._ceilings: dict[tuple[Hand, str], asyncio.TimerHandle] = {}
        self._successor_wanted = False
        self._starting: asyncio.Task[Hand] | None = None
        self._stopping = False
        self._started = 0
        self._oldest_fit = 1
        self._pause_s = _PAUSE_S
        self._up: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run(self, stop: StopRequests, up: Callable[[], None]) -> None:
        """Serve until asked to stop; `up` is called when the first worker serves.

        Raises:
            LaunchError: The first worker could not start.
            Stopped: Somebody asked to stop before that.
        """
        try:
            self._advance()
            await stop.unless(self._up)
            up()
            await stop.wait()
        finally:
            await self._stop(stop)

    def replace(self, why: str, *, anew: bool = False) -> None:
        """Let another worker take over from the one that serves.

        Args:
            why: For people.
            anew: Whether it has to be one that starts from now on.
        """
        self._say(why)
        self._successor_wanted = True
        if anew:
            self._oldest_fit = self._started + 1
        self._advance()

    # Who serves.

    def _advance(self) -> None:
        """Do what the present state calls for."""
        if self._stopping:
            return
        if self._next is not None and self._next.number < self._oldest_fit:
            self._next.kill()  # its code is not the present one
            self._next = None
        if (
            self._next is not None
            and self._next.ready
            and (self._serving is None or self._successor_wanted)
        ):
            self._hand_over(self._next)
        wanted = self._options.spare or self._successor_wanted or self._serving is None
        if wanted and self._next is None and self._starting is None:
            self._starting = asyncio.ensure_future(self._start())
            self._starting.add_done_callback(self._started_one)

    def _hand_over(self, successor: Hand) -> None:
        former, self._serving, self._next = self._serving, successor, None
        self._successor_wanted = False
        successor.say(Serve())
        if former is not None:
            self._say(
                f"worker {successor.number} ({successor.pid}) serves; worker {former.number} "
                f"({former.pid}) finishes what it has"
            )
            self._retiring.add(former)
            former.say(Retire())
            former.signal(signal.SIGCONT)
        if not self._up.done():
            self._up.set_result(None)

    async def _start(self) -> Hand:
        self._started += 1
        order = msgspec.structs.replace(self._options.order, number=self._started)
        return await Hand.spawn(order, self._lifeline)

    def _started_one(self, starting: "asyncio.Task[Hand]") -> None:
        self._starting = None
        error = starting.exception()
        if error is not None:
            self._could_not_be_made(error)
            return
        self._next = hand = starting.result()
        self._hands[hand] = asyncio.ensure_future(self._mind(hand))
        if self._stopping:
            hand.kill()
        else:
            self._advance()

    def _could_not_be_made(self, error: BaseException) -> None:
        if not self._up.done():
            self._up.set_exception(error)
            return
        self._say(f"a worker could not be started: {error}; trying again in {self._pause_s:g} s")
        asyncio.get_running_loop().call_later(self._pause_s, self._advance)

    # What workers say, and how they end.

    async def _mind(self, hand: Hand) -> None:
        code = await hand.listen(self._hear)
        del self._hands[hand]
        for key in [key for key in self._ceilings if key[0] is hand]:
            self._ceilings.pop(key).cancel()
        self._asleep(hand, listening=False)
        if self._stopping:
            return
        await self._ended(hand, code)
        self._advance()

    async def _ended(self, hand: Hand, code: int) -> None:
        name = f"worker {hand.number} ({hand.pid})"
        if hand in self._retiring:
            self._retiring.discard(hand)
            self._say(f"{name} has finished" if code == 0 else f"{name} {describe_exit(code)}")
        elif hand is self._serving:
            self._serving = None
            after = "takes over" if self._next is not None else "is started"
            self._say(f"{name} {describe_exit(code)}; another {after}")
        elif hand is self._next:
            await self._could_not_start(hand, code)

    async def _could_not_start(self, hand: Hand, code: int) -> None:
        self._next = None
        end = f"{describe_exit(code)} before it was ready"
        if not self._up.done():
            self._up.set_exception(LaunchError(f"the app {end}: what it wrote is above"))
        elif self._serving is not None and self._successor_wanted:
            self._successor_wanted = False
            self._say(f"worker {hand.number} {end}: worker {self._serving.number} serves on")
        else:
            self._say(f"worker {hand.number} {end}; trying again in {self._pause_s:g} s")
            await asyncio.sleep(self._pause_s)
            self._pause_s = min(self._pause_s * 2, _PAUSE_CAP_S)

    def _hear(self, hand: Hand, word: Word) -> None:
        match word:
            case Ready():
                hand.ready = True
                self._pause_s = _PAUSE_S
                self._advance()
            case Held(request=request, ceiling_at_s=at_s):
                self._release(hand, request)
                self._ceilings[hand, request] = asyncio.get_running_loop().call_at(
                    at_s + _BLOCKED_S, partial(self._kill_blocked, hand, word)
                )
            case Released(request=request):
                self._release(hand, request)
            case Dying(connections=connections):
                self._say(
                    f"worker {hand.number} ({hand.pid}) kills itself at a ceiling, with "
                    f"{connections} open connections"
                )
            case Full(coroutines=coroutines):
                self.replace(
                    f"worker {hand.number} ({hand.pid}) keeps {coroutines} killed coroutines, "
                    "which can be neither run nor closed: another takes over"
                )
            case _:
                self._asleep(hand, listening=isinstance(word, Resting))

    def _release(self, hand: Hand, request: str) -> None:
        timer = self._ceilings.pop((hand, request), None)
        if timer is not None:
            timer.cancel()

    def _kill_blocked(self, hand: Hand, held: Held) -> None:
        self._say(
            f"its ceiling passed {_BLOCKED_S:g} s ago and worker {hand.number} ({hand.pid}) does "
            "not react, its event loop is blocked: killed from outside, and every request there "
            f"with it; unsettled: {held.text}",
            held.request,
        )
        hand.kill()

    # Standing still.

    def _asleep(self, hand: Hand, *, listening: bool) -> None:
        loop = asyncio.get_running_loop()
        if listening and self._stopping:
            hand.signal(signal.SIGCONT)
        elif listening and hand is self._serving:
            loop.add_reader(self._listener, self._somebody_came, hand)
        elif hand is self._serving:
            loop.remove_reader(self._listener)

    def _somebody_came(self, hand: Hand) -> None:
        self._asleep(hand, listening=False)
        self._waking = asyncio.ensure_future(hand.wake())

    # The end.

    async def _stop(self, stop: StopRequests) -> None:
        self._stopping = True
        asyncio.get_running_loop().remove_reader(self._listener)
        for hand in self._hands:
            hand.signal(signal.SIGTERM)
            hand.signal(signal.SIGCONT)
        hurrying = asyncio.ensure_future(stop.wait_again())
        ending = asyncio.ensure_future(self._all_ended())
        patience_s = self._options.order.profile.shutdown_grace_s + _END_S
        await asyncio.wait(
            {hurrying, ending}, timeout=patience_s, return_when=asyncio.FIRST_COMPLETED
        )
        hurrying.cancel()
        if not ending.done():
            # Asked once more, a worker cuts what it has, says so, and ends.
            for hand in self._hands:
                hand.signal(signal.SIGTERM)
            await asyncio.wait({ending}, timeout=_HURRY_S)
        for hand in self._hands:
            hand.kill()
        await ending
        self._lifeline.close()

    async def _all_ended(self) -> None:
        while self._hands or self._starting:
            starting = () if self._starting is None else (self._starting,)
            await asyncio.wait({*self._hands.values(), *starting})
