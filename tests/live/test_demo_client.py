"""The demo's client: without an answer it asks again with the same key, and then gives up."""

import asyncio
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from platform_sim.lab import demo
from platform_sim.lab.demo_plan import plan
from platform_sim.lab.verdict import Answer

pytestmark = pytest.mark.live


def post(*answers: int) -> tuple[Answer, list[str]]:
    """Post one operation to a server that gives these statuses in turn; 0 drops the connection.

    Returns the client's answer and the keys that the server saw.
    """
    keys: list[str] = []
    left = list(answers)

    async def answer(request: web.Request) -> web.Response:
        keys.append(request.headers["Idempotency-Key"])
        status = left.pop(0) if len(left) > 1 else left[0]
        if not status:
            assert request.transport is not None
            request.transport.close()
        return web.json_response({"id": "a"}, status=status or 200)

    async def run() -> Answer:
        server = web.Application()
        server.router.add_post("/operations", answer)
        runner = web.AppRunner(server, access_log=None)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            async with aiohttp.ClientSession() as session:
                url = f"http://127.0.0.1:{runner.addresses[0][1]}/operations"
                return await demo.post(session, url, plan(1)[0])
        finally:
            await runner.cleanup()

    return asyncio.run(run()), keys


@pytest.mark.parametrize(
    ("answers", "status", "operation_id"),
    [((202,), 202, "a"), ((0, 0, 202), 202, "a"), ((503,), 503, None)],
)
def test_any_answer_ends_the_asking(
    answers: tuple[int, ...], status: int, operation_id: str | None
) -> None:
    """Only a 2xx promises anything, and every repeat carries the first key."""
    answer, keys = post(*answers)

    assert (answer.status, answer.operation_id) == (status, operation_id)
    assert keys == ["demo-1-1"] * len(answers)


def test_a_client_that_never_gets_an_answer_was_promised_nothing(monkeypatch: Any) -> None:
    """It gives up after a while and is counted as unanswered."""
    monkeypatch.setattr(demo, "CLIENT_S", 0.01)
    answer, keys = post(0)

    assert (answer.status, answer.acknowledged, set(keys)) == (0, False, {"demo-1-1"})
