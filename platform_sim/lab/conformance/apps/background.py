"""Registered and floating work beside a plain answer: s01 to s05, s07, s16, s18, s20, s21, s24."""

import asyncio
from typing import Any

from platform_sim.lab.conformance.apps.desk import Desk, answering, lifespan
from platform_sim.lifetime.errors import NoLiveInvocation
from platform_sim.lifetime.wait_until import wait_until

__all__ = [
    "five_thousand",
    "floating",
    "foreign_context",
    "imported",
    "late_call",
    "long_work",
    "one_wait",
    "rejects_after",
    "rejects_before",
    "throws",
    "two_waits",
]


@answering
async def one_wait(desk: Desk) -> None:
    """s01, s27: one wait_until of 2 s."""
    desk.log("handler:start")
    desk.wait_until(desk.work("bg", 2.0))
    desk.log("handler:return")


@answering
async def two_waits(desk: Desk) -> None:
    """s02: two wait_untils of 1 s and 3 s."""
    desk.log("handler:start")
    desk.wait_until(desk.work("a", 1.0))
    desk.wait_until(desk.work("b", 3.0))
    desk.log("handler:return")


async def _reject(desk: Desk, tag: str, after_s: float, error: Exception) -> None:
    await desk.pause("handler:return", f"{tag}:reject", after_s)
    desk.log(f"{tag}:reject")
    raise error


@answering
async def rejects_after(desk: Desk) -> None:
    """s03: wait_untils that fail after 0.5 s and 1 s, beside one of 2 s."""
    desk.log("handler:start")
    desk.wait_until(_reject(desk, "a", 0.5, RuntimeError("bg-a-failed")))
    desk.wait_until(desk.work("b", 2.0))
    desk.wait_until(_reject(desk, "c", 1.0, TypeError("bg-c-failed")))
    desk.log("handler:return")


@answering
async def rejects_before(desk: Desk) -> None:
    """s04: a wait_until that has failed before the answer, which takes 0.5 s."""
    desk.log("handler:start")
    failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    failed.set_exception(RuntimeError("early-reject"))
    desk.wait_until(failed)
    await desk.pause("handler:start", "handler:return", 0.5)
    desk.log("handler:return")


@answering
async def late_call(desk: Desk) -> None:
    """s05: a floating task calls wait_until 1 s after the answer, while other work holds."""

    async def late() -> None:
        await desk.pause("handler:return", "late:call", 1.0)
        desk.log("late:call")
        desk.wait_until(desk.work("late", 2.0))
        desk.log("late:accepted")

    desk.log("handler:start")
    desk.wait_until(desk.work("keeper", 1.5))
    desk.floating.append(asyncio.create_task(late()))
    desk.log("handler:return")


@answering
async def foreign_context(desk: Desk) -> str:
    """s07: request A stores its wait_until and ends; request B calls it."""
    if desk.scope["path"].endswith("/a"):
        desk.state["saved"] = desk.wait_until
        desk.log("A:handler:return")
        return "a"
    desk.log("B:handler:start")
    desk.state["saved"](desk.work("B:viaA", 2.0))
    desk.log("B:accepted")
    desk.log("B:handler:return")
    return "b"


@answering
async def throws(desk: Desk) -> None:
    """s16: the handler fails after wait_until(2 s)."""
    desk.log("handler:start")
    desk.wait_until(desk.work("bg", 2.0))
    desk.log("handler:throw")
    raise RuntimeError("handler-failed")


@answering
async def floating(desk: Desk) -> None:
    """s18: work of 2 s that is given to nobody."""
    desk.log("handler:start")
    desk.float("floating", 2.0, 0.5)
    desk.log("handler:return")


@answering
async def five_thousand(desk: Desk) -> None:
    """s20: 5,000 wait_untils of 1 to 2 s."""
    number = desk.pace.number("handler:return", "n", 5000)
    done = 0

    async def one(after_s: float) -> None:
        nonlocal done
        await asyncio.sleep(after_s)
        done += 1
        if done in {1, number}:
            desk.log("bg:done", done=done)

    desk.log("handler:start")
    for each in range(number):
        desk.wait_until(one(1.0 + each % 1000 / 1000))
    desk.log("handler:return", n=number)


@answering
async def long_work(desk: Desk) -> None:
    """s21: one wait_until of 45 s."""
    desk.log("handler:start")
    desk.wait_until(desk.work("bg", 45.0, 5.0))
    desk.log("handler:return")


async def imported(scope: Any, receive: Any, send: Any) -> None:
    """s24: an imported wait_until, called before any request, in the handler and late."""
    if scope["type"] == "lifespan":
        await _outside_any_request(scope, receive, send)
    else:
        await _imported_in_handler(scope, receive, send)


async def _outside_any_request(scope: Any, receive: Any, send: Any) -> None:
    try:
        wait_until(asyncio.sleep(0))
        scope["state"]["result"] = "accepted"
    except NoLiveInvocation as refused:
        scope["state"]["result"] = f"Error: {refused}"
    await lifespan(scope, receive, send)


@answering
async def _imported_in_handler(desk: Desk) -> None:
    async def late() -> None:
        await desk.pause("handler:return", "late:call", 1.0)
        desk.log("late:call")
        wait_until(desk.work("late", 1.0))

    desk.log("module-scope", result=desk.scope["state"]["result"])
    wait_until(late())
    desk.log("handler:return")
