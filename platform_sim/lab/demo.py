"""Demo: a dozen operations on a local platform that is made to fail, and what became of them.

The processes are those of `outlast up`, at a tenth of the full scale. A first wave meets receivers
that are fast, slow, silent, busy or unwilling; then the web process is killed with SIGKILL while a
second wave is being delivered. Redrive finishes what was left. What is judged is in `verdict`.
"""

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import aiohttp

from platform_sim.host.platform import running_platform
from platform_sim.host.processes import SUPERVISOR, Supervisor
from platform_sim.host.signals import stop_requests
from platform_sim.host.topology import Topology
from platform_sim.lab.demo_kill import record_kill
from platform_sim.lab.demo_plan import Planned, plan
from platform_sim.lab.evidence import Ledger, StoreRows
from platform_sim.lab.verdict import Answer, Evidence, Row

__all__ = ["CLIENT_S", "Demo", "Outcome", "Tell", "post", "run_demo"]

Tell = Callable[[str], None]
"""Gets one line of progress."""

CLIENT_S = 15.0
"""Seconds after which a client gives up on an answer."""
_WAVE_S = 6.0  # the first wave's passes get this long before the killing
_SETTLE_S = 35.0  # redrive gets this long to finish everything
_POLL_S = 0.1
_SETTLED = frozenset({"delivered", "rejected", "parked"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a run brought to light.

    Attributes:
        seed: Replays the plan.
        evidence: What the witnesses said at the end.
        killed_ids: Operations that were being delivered when the web process was killed.
        kills: SIGKILLs sent.
        took_s: Seconds from the first request to the last look.
    """

    seed: int
    evidence: Evidence
    killed_ids: frozenset[str]
    kills: int
    took_s: float


class Demo:
    """One run against processes that are up."""

    def __init__(
        self, session: aiohttp.ClientSession, rows: StoreRows, topology: Topology, tell: Tell
    ) -> None:
        self._session = session
        self._rows = rows
        self._ledger = Ledger(session, topology.receiver_url)
        self._url = f"{topology.web_url}/operations"
        self._record = topology.record
        self._tell = tell
        self._answers: list[Answer] = []
        self._told = (0, 0)

    async def run(self, seed: int, supervisor: Supervisor) -> Outcome:
        """Send both waves, kill in the middle of the second, and wait for redrive."""
        started = time.monotonic()
        planned = plan(seed)
        self._tell(f"sending {len(planned)} operations (seed {seed})")
        await self._send([one for one in planned if not one.victim])
        await self._until(self._nothing_claimed, _WAVE_S)
        await self._send([one for one in planned if one.victim])
        killed_ids = await self._kill(supervisor)
        await self._until(self._all_settled, _SETTLE_S)
        return Outcome(
            seed=seed,
            evidence=await self._gather(),
            killed_ids=killed_ids,
            kills=1,
            took_s=round(time.monotonic() - started, 1),
        )

    async def _send(self, wave: Sequence[Planned]) -> None:
        async def later(one: Planned) -> None:
            await asyncio.sleep(one.pause_s)
            self._answers.append(await post(self._session, self._url, one))

        async with asyncio.TaskGroup() as clients:
            for one in wave:
                clients.create_task(later(one))
        self._tell(f"{len(wave)} answered")

    async def _kill(self, supervisor: Supervisor) -> frozenset[str]:
        """Kill the web process once the last wave's deliveries are on the wire."""
        victims = {answer.operation_id for answer in self._answers[-3:]}

        async def on_the_wire() -> bool:
            arrived = {request["key"] for request in (await self._ledger.read())["requests"]}
            return victims <= arrived

        await self._until(on_the_wire, _WAVE_S)
        pid = supervisor.pid("web")
        os.kill(pid, signal.SIGKILL)
        killed_at_s = time.time()
        killed = frozenset(
            key for key, row in (await self._read()).items() if row.state == "claimed"
        )
        if self._record is not None:
            record_kill(self._record, pid, now_s=killed_at_s, under_way=len(killed))
        self._tell(f"web ({pid}) killed with SIGKILL, {len(killed)} deliveries were under way")
        return killed

    async def _nothing_claimed(self) -> bool:
        return all(row.state != "claimed" for row in (await self._read()).values())

    async def _all_settled(self) -> bool:
        rows = await self._read()
        return all(
            answer.operation_id in rows and rows[answer.operation_id].state in _SETTLED
            for answer in self._answers
            if answer.operation_id is not None
        )

    async def _read(self) -> dict[str, Row]:
        rows = await self._rows.read()
        settled = sum(row.state in _SETTLED for row in rows.values())
        if (settled, len(rows)) != self._told:
            self._told = (settled, len(rows))
            self._tell(f"{settled} of {len(rows)} settled")
        return rows

    async def _until(self, condition: Callable[[], Awaitable[bool]], within_s: float) -> None:
        """Wait for a condition; when it does not come, the verdict will say what that means."""
        end = time.monotonic() + within_s
        while True:
            if await condition() or time.monotonic() > end:
                return
            await asyncio.sleep(_POLL_S)

    async def _gather(self) -> Evidence:
        ledger = await self._ledger.read()
        return Evidence(
            answers=tuple(self._answers),
            requests=ledger["requests"],
            effects=ledger["effects"],
            rows=await self._read(),
        )


async def post(session: aiohttp.ClientSession, url: str, one: Planned) -> Answer:
    """Post as a careful client does: without an answer, again with the same key."""
    body = {"destination": "receiver", "payload": one.payload}
    headers = {"Idempotency-Key": one.key}
    give_up = time.monotonic() + CLIENT_S
    while True:
        started = time.monotonic()
        status, operation_id = 0, None
        with suppress(aiohttp.ClientConnectionError, TimeoutError):
            async with session.post(url, json=body, headers=headers) as reply:
                status, content = reply.status, await reply.json(content_type=None)
                operation_id = content.get("id") if reply.ok else None
        if status or time.monotonic() > give_up:
            return Answer(
                name=one.name,
                status=status,
                operation_id=operation_id,
                ack_ms=round((time.monotonic() - started) * 1000, 1),
                at_ms=time.time_ns() // 1_000_000,
            )
        await asyncio.sleep(_POLL_S)


async def run_demo(topology: Topology, seed: int, tell: Tell) -> Outcome:
    """Bring the processes up, run the demo and take them down again.

    Raises:
        ChildError: A process did not start.
        Stopped: A stop signal came first; everything is down.
    """

    def say(role: str, line: str) -> None:
        if role == SUPERVISOR:
            tell(line)

    async def experiment(supervisor: Supervisor) -> Outcome:
        limits = aiohttp.ClientTimeout(total=CLIENT_S)
        rows = StoreRows(topology.environment)
        async with aiohttp.ClientSession(timeout=limits) as session:
            return await Demo(session, rows, topology, tell).run(seed, supervisor)

    tell("starting store, receiver, web and redrive")
    with stop_requests() as stop:
        async with running_platform(topology, say, stop) as supervisor:
            return await stop.unless(experiment(supervisor))
