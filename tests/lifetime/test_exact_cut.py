"""The cut to the tick, from whatever the window is counted: what no recorded runtime shows."""

import asyncio
from typing import Any

import pytest

from platform_sim.lifetime.emulator import App
from platform_sim.lifetime.handover import HANDOVER
from platform_sim.lifetime.profile import ClockStart, CutMode
from platform_sim.view.event import EventKind
from tests.support.asgi import AsgiClient, lifetime_of, respond
from tests.support.stage import Stage
from tests.support.virtual import run_virtual

TICK_S = 1e-5


def working_from(origin: str) -> Any:
    """Register at 0.5 work that is due a tick before and a tick after 30 s from the origin."""

    def app(stage: Stage) -> App:
        async def body() -> Any:
            await asyncio.sleep(4.0)
            yield b"x"

        async def run(scope: Any, receive: Any, send: Any) -> None:
            del receive
            opens_at_s = {"request": 0.0, "disconnect": 1.0, "answer": 2.0, "handover": 2.0}[origin]
            await asyncio.sleep(0.5)
            for name, tick_s in (("in time", -TICK_S), ("late", TICK_S)):
                work = asyncio.create_task(
                    stage.work(name, opens_at_s + 30.0 + tick_s - 0.5), name=name
                )
                lifetime_of(scope)["wait_until"](work)
            await asyncio.sleep(1.5)
            if origin == "handover":
                await send({"type": "http.response.start", "status": 200, "headers": []})
                await send({"type": HANDOVER, "chunks": body()})
            else:
                await respond(send)

        return run

    return app


@pytest.mark.parametrize("cut", [CutMode.CANCEL, CutMode.KILL])
@pytest.mark.parametrize(
    ("origin", "cut_at_s", "counted_from"),
    [
        ("request", 30.0, "the request at 0.0"),
        ("disconnect", 31.0, "the disconnect at 1.0"),
        ("answer", 32.0, "the answer at 2.0"),
        ("handover", 32.0, "the answer at 2.0"),
    ],
)
def test_the_window_closes_at_the_tick_and_the_warning_says_from_where(
    origin: str, cut_at_s: float, counted_from: str, cut: CutMode
) -> None:
    """A tick before it is done, a tick after it is cut, and the text has name and times."""

    async def main() -> Stage:
        start = ClockStart.REQUEST if origin == "request" else ClockStart.RESPONSE_OVER
        stage = Stage(working_from(origin), cut=cut, clock_start=start)
        client = AsgiClient(stage.emulator)
        serving = client.start()
        await asyncio.sleep(1.0)
        if origin == "disconnect":
            client.leave()
        await serving
        await stage.rest()
        return stage

    stage = run_virtual(main)

    cancelled = [(cut_at_s, "late cancelled")] if cut is CutMode.CANCEL else []
    assert stage.log == [(round(cut_at_s - TICK_S, 6), "in time"), *cancelled]
    (warning,) = stage.events(EventKind.CUT)
    assert warning.fields["text"] == (
        f"{cut} at {cut_at_s} (ceiling): late (registered at 0.5); "
        f"window 30.0 s counted from {counted_from}"
    )
    assert stage.end() == (cut_at_s, "ceiling")
