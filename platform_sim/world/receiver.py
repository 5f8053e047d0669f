"""Receiver: the other side of a delivery, scripted, with a ledger.

It knows no socket: a host gives it requests and does with the connection what it answers, under a
real event loop or a virtual one. Its rules:

- Every request is in the ledger from its arrival on.
- Work that was begun goes on when the client leaves: what a step commits is committed.
- With dedupe, a repeat of a key that is done gets 200 again, of one in progress 409, and a key
  with another body 422.
- `down` closes new connections unread; work already begun goes on.

What a step may say is in `script`; sockets are in `platform_sim.host.receiver_server`.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from platform_sim.world.effects import Effects, Known
from platform_sim.world.ledger import Ledger, Outcome
from platform_sim.world.script import Commit, Script, ScriptError, Step, Then, parse_steps

__all__ = ["HOOKS", "Arrival", "Receiver", "Reply"]

HOOKS = "/hooks/"
"""Path prefix; what follows it names a script."""

_NO_CONTENT = 204


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """A request as it came in; `key` is its `Idempotency-Key`, empty without one."""

    path: str
    key: str
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A reply to write."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


_REPEATS = {
    Known.DONE: (Outcome.REPLAYED, 200, "done before"),
    Known.IN_PROGRESS: (Outcome.IN_PROGRESS, 409, "this key is in progress"),
    Known.MISMATCHED: (Outcome.MISMATCHED, 422, "this key came with another body"),
}


class Receiver:
    """One receiver with any number of scripted endpoints.

    Args:
        now_ms: Wall clock, epoch milliseconds.
        sleep: Waits for seconds, on the loop's clock.
        dedupe: Whether keys are recognised, for scripts that do not say.
        on_commit: Told of each effect's key when it becomes real.
    """

    def __init__(
        self,
        *,
        now_ms: Callable[[], int],
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        dedupe: bool = True,
        on_commit: Callable[[str], None] | None = None,
    ) -> None:
        self.ledger = Ledger()
        self.effects = Effects(now_ms, on_commit=on_commit)
        self._on_commit = on_commit
        self.down = False
        self._now_ms = now_ms
        self._sleep = sleep
        self._dedupe = dedupe
        self._scripts: dict[str, Script] = {}
        self._work: set[asyncio.Task[None]] = set()

    def learn(self, name: str, script: Script) -> None:
        """Use `script` for requests to `/hooks/<name>` from now on."""
        self._scripts[name] = script

    def clear(self) -> None:
        """Forget requests, effects and keys; scripts stay."""
        self.ledger = Ledger()
        self.effects = Effects(self._now_ms, on_commit=self._on_commit)

    def as_dict(self) -> dict[str, Any]:
        """Return ledger and effects as JSON-able data."""
        return {
            "requests": self.ledger.rows(),
            "effects": dict(+self.effects.counts),
            "refused": self.ledger.refused,
        }

    async def handle(self, arrival: Arrival, *, step: Step | None = None) -> Reply | None:
        """Do what the script says; None means: close the connection without a byte.

        Cancelling this call is the client leaving: the work goes on without it.

        Args:
            arrival: The request.
            step: What it meets, in place of the script's step for its number.
        """
        if self.down:
            self.ledger.refuse()
            return None
        ledger, body_sha256 = self.ledger, hashlib.sha256(arrival.body).hexdigest()
        place = ledger.arrive(
            key=arrival.key, path=arrival.path, at_ms=self._now_ms(), body_sha256=body_sha256
        )

        def end(outcome: Outcome, status: int | None = None) -> None:
            ledger.end(place, outcome, at_ms=self._now_ms(), status=status)

        try:
            script = self._script_for(arrival)
        except ScriptError as invalid:
            end(Outcome.UNREADABLE, 400)
            return _reply(400, str(invalid))
        step = step or script.step(ledger.requests[place].attempt)
        known = self.effects.recall(arrival.key, body_sha256) if _dedupes(script, arrival) else None
        if known is not None and (step.replay or known is Known.MISMATCHED):
            outcome, status, text = _REPEATS[known]
            end(outcome, status)
            return _reply(status, text)
        work = self._begin(step, script, arrival, body_sha256)
        try:
            await asyncio.shield(work)
        except asyncio.CancelledError:
            end(Outcome.LEFT)
            raise
        if step.then is Then.HANG:
            end(Outcome.HUNG)
            return await _never()
        if step.then is Then.DROP:
            end(Outcome.DROPPED)
            return None
        end(Outcome.REPLIED, step.status)
        return _reply(step.status, "scripted", step.headers)

    async def aclose(self) -> None:
        """Cancel work that is still going on."""
        for task in self._work:
            task.cancel()
        await asyncio.gather(*self._work, return_exceptions=True)

    def _script_for(self, arrival: Arrival) -> Script:
        script = self._scripts.get(arrival.path.removeprefix(HOOKS), Script())
        if script.dedupe is None:
            script = msgspec.structs.replace(script, dedupe=self._dedupe)
        steps = parse_steps(arrival.body)
        return script if steps is None else msgspec.structs.replace(script, steps=steps)

    def _begin(
        self, step: Step, script: Script, arrival: Arrival, body_sha256: str
    ) -> asyncio.Task[None]:
        """Start the step's work in a task of its own, so that it outlives the client."""
        key, effects, dedupe = arrival.key, self.effects, _dedupes(script, arrival)

        def commit() -> None:
            effects.commit(key, body_sha256, dedupe=dedupe, window_s=script.dedupe_window_s)

        async def work() -> None:
            await self._sleep(step.delay_s)
            if step.commits is Commit.AFTER:
                commit()

        if step.key_lease_s is not None and dedupe:
            effects.lose(key, body_sha256, lease_s=step.key_lease_s)
        if step.commits is not Commit.NEVER:
            effects.begin(key, body_sha256, dedupe=dedupe)
        if step.commits is Commit.BEFORE:
            commit()
        task = asyncio.get_running_loop().create_task(work())
        self._work.add(task)
        task.add_done_callback(self._work.discard)
        return task


def _never() -> asyncio.Future[Reply | None]:
    return asyncio.get_running_loop().create_future()


def _dedupes(script: Script, arrival: Arrival) -> bool:
    return bool(script.dedupe and arrival.key)


def _reply(status: int, text: str, headers: Mapping[str, str] | None = None) -> Reply:
    if status == _NO_CONTENT:
        return Reply(status=status, headers=dict(headers or {}))
    return Reply(
        status=status,
        headers={"Content-Type": "application/json", **(headers or {})},
        body=msgspec.json.encode({"receiver": text}),
    )
