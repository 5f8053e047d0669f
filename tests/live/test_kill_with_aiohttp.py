"""A kill in the middle of a delivery: what the client library shares stays whole."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from platform_sim.lifetime.cut import EndReason
from platform_sim.lifetime.emulator import App
from platform_sim.lifetime.invocation import Invocation
from platform_sim.lifetime.profile import CutMode
from tests.support.asgi import answer, call, lifetime_of
from tests.support.stage import Stage

pytestmark = pytest.mark.live


async def receiver(stack: AsyncExitStack, arrived: asyncio.Event) -> str:
    """Serve a receiver whose `/hang` never answers; return its address."""

    async def hang(request: web.Request) -> web.Response:
        del request
        arrived.set()
        await asyncio.sleep(60.0)
        return web.Response()

    async def quick(request: web.Request) -> web.Response:
        return web.Response(text=f"{await request.text()} received")

    app = web.Application()
    app.router.add_post("/hang", hang)
    app.router.add_post("/quick", quick)
    runner = web.AppRunner(app, shutdown_timeout=0.01)
    await runner.setup()
    stack.push_async_callback(runner.cleanup)
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    assert site._server is not None
    port = site._server.sockets[0].getsockname()[1]  # type: ignore[attr-defined]
    return f"http://127.0.0.1:{port}"


def test_a_delivery_killed_on_the_wire_leaves_the_session_to_others() -> None:
    """One session for all: the next request's deliveries still arrive."""
    invocations: list[Invocation] = []

    async def main() -> Stage:
        async with AsyncExitStack() as stack:
            arrived = asyncio.Event()
            url = await receiver(stack, arrived)
            limit = aiohttp.ClientTimeout(total=10.0)
            session = await stack.enter_async_context(aiohttp.ClientSession(timeout=limit))

            def app(stage: Stage) -> App:
                async def deliver(path: str) -> None:
                    try:
                        for _ in range(2):
                            async with session.post(url + path, data="event") as reply:
                                stage.log.append((0.0, await reply.text()))
                    except BaseException:
                        stage.log.append((0.0, "except"))
                        raise
                    finally:
                        stage.log.append((0.0, "finally"))

                async def handler(scope: Any) -> None:
                    lifetime_of(scope)["wait_until"](deliver(scope["path"]))

                return answer(handler)

            stage = Stage(app, cut=CutMode.KILL, on_start=invocations.append)
            await call(stage.emulator, path="/hang")
            await arrived.wait()
            invocations[0].end(EndReason.KILLED)
            await call(stage.emulator, path="/quick")
            await stage.rest(10.0)
        return stage

    stage = asyncio.run(main())

    assert [line for _, line in stage.log] == ["event received", "event received", "finally"]
