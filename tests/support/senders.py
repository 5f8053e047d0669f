"""Senders for tests: one that plays a script, one that reaches a simulated receiver."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import anyio

from handler.outcome import NoAnswer, NotSent, Reply, Result
from handler.sender import Request, Trace
from platform_sim.world.receiver import Arrival, Receiver

__all__ = ["HANG", "OK", "REFUSED", "ReceiverSender", "ScriptedSender", "Sent", "Step", "status"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What one send meets.

    Attributes:
        result: What comes back; None: nothing, ever. An exception is raised.
        after_s: Seconds until it does.
        sent: Whether a byte of the request leaves at once; a reply implies it.
    """

    result: Result | Exception | None
    after_s: float = 0.0
    sent: bool = True


def status(code: int, *, after_s: float = 0.0, headers: Mapping[str, str] | None = None) -> Step:
    """Return a step that answers with a status."""
    return Step(result=Reply(status=code, headers=headers or {}), after_s=after_s)


OK = status(204)
HANG = Step(result=None)
REFUSED = Step(result=NotSent(reason="refused"), sent=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """One send: when on the loop's clock, and what."""

    at_s: float
    request: Request


@dataclass(slots=True)
class ScriptedSender:
    """Plays steps in turn, the last one for ever; `by_url` has steps for single addresses."""

    steps: Sequence[Step] = (OK,)
    by_url: Mapping[str, Sequence[Step]] = field(default_factory=dict)
    sends: list[Sent] = field(default_factory=list)
    under_way: int = 0
    most_under_way: int = 0
    closed: int = 0
    before: Callable[[], None] | None = None

    @property
    def starts_s(self) -> list[float]:
        """Return when each send began, to the millisecond."""
        return [round(sent.at_s, 3) for sent in self.sends]

    @property
    def keys(self) -> list[str]:
        """Return the idempotency key of each send that carried one."""
        keys = (sent.request.headers.get("idempotency-key") for sent in self.sends)
        return [key for key in keys if key is not None]

    async def send(self, request: Request, trace: Trace) -> Result:
        """Play the next step of this address."""
        if self.before is not None:
            self.before()
        steps = self.by_url.get(request.url, self.steps)
        made = sum(
            (sent.request.url == request.url) if request.url in self.by_url else True
            for sent in self.sends
        )
        step = steps[min(made, len(steps) - 1)]
        self.sends.append(Sent(at_s=anyio.current_time(), request=request))
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            trace.byte_left = step.sent
            if step.result is None:
                await anyio.sleep_forever()
            await anyio.sleep(step.after_s)
        finally:
            self.under_way -= 1
        if isinstance(step.result, Exception):
            raise step.result
        assert step.result is not None
        return step.result

    async def aclose(self) -> None:
        """Count the close."""
        self.closed += 1


@dataclass(slots=True)
class ReceiverSender:
    """Carries requests to a simulated receiver, with no socket between."""

    receiver: Receiver

    async def send(self, request: Request, trace: Trace) -> Result:
        """Hand the request over; a dropped connection is no answer."""
        if self.receiver.down:
            return NotSent(reason="down")
        trace.byte_left = True
        arrival = Arrival(
            path=urlsplit(request.url).path,
            key=request.headers.get("idempotency-key", ""),
            body=request.body or b"",
        )
        reply = await self.receiver.handle(arrival)
        if reply is None:
            return NoAnswer(reason="dropped")
        headers = {name.lower(): value for name, value in reply.headers.items()}
        return Reply(status=reply.status, headers=headers)

    async def aclose(self) -> None:
        """Leave the receiver to its own work."""
