"""Scheduled handlers: s25. Each takes the scope of one run."""

import asyncio
from typing import Any

from platform_sim.lab.conformance.apps.desk import Desk
from platform_sim.lifetime.scheduled import SCHEDULED

__all__ = ["long", "no_retry", "succeeds", "throws", "work_fails"]


async def succeeds(scope: Any) -> None:
    """Return at once, with a wait_until of 2 s."""
    desk = Desk(scope)
    desk.log("handler:start")
    desk.wait_until(desk.work("bg", 2.0))
    desk.log("handler:return")


async def no_retry(scope: Any) -> None:
    """Ask not to be repeated, with a wait_until of 0.2 s."""
    desk = Desk(scope)
    desk.log("handler:start")
    scope["extensions"][SCHEDULED]["no_retry"]()
    desk.wait_until(desk.work("bg", 0.2))
    desk.log("handler:return")


async def throws(scope: Any) -> None:
    """Fail, with a wait_until of 1 s."""
    desk = Desk(scope)
    desk.log("handler:start")
    desk.wait_until(desk.work("bg", 1.0))
    desk.log("handler:throw")
    raise RuntimeError("sched-handler-failed")


async def work_fails(scope: Any) -> None:
    """Return at once, with a wait_until that fails at 0.5 s and one of 1.5 s."""
    desk = Desk(scope)

    async def fail() -> None:
        await asyncio.sleep(desk.pace.span("handler:return", "a:reject", 0.5))
        desk.log("a:reject")
        raise RuntimeError("sched-bg-failed")

    desk.log("handler:start")
    desk.wait_until(fail())
    desk.wait_until(desk.work("b", 1.5))
    desk.log("handler:return")


async def long(scope: Any) -> None:
    """Return at once, with a wait_until of 40 s."""
    desk = Desk(scope)
    desk.log("handler:start")
    desk.wait_until(desk.work("bg", 40.0, 10.0))
    desk.log("handler:return")
