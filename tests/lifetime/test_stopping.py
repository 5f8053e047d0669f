"""An orderly stop: what the app is told, and what the grace is for."""

import asyncio
from typing import Any

import pytest

from platform_sim.lifetime.profile import ShutdownRule
from platform_sim.lifetime.wait_until import EXTENSION
from platform_sim.view.event import EventKind
from tests.support.asgi import AsgiClient, answer, call, lifetime_of, respond
from tests.support.stage import Stage
from tests.support.virtual import run_virtual


def test_o07_stopping_is_said_from_the_drain_on_to_work_under_way() -> None:
    """Also to a request that was accepted before."""

    def asking(stage: Stage) -> Any:
        async def app(scope: Any, _receive: Any, send: Any) -> None:
            contract = scope["extensions"][EXTENSION]

            async def work() -> None:
                for _ in range(2):
                    stage.write(f"stopping: {contract['stopping']()}")
                    await asyncio.sleep(1.0)

            contract["wait_until"](work())
            await respond(send)

        return app

    async def main() -> Stage:
        stage = Stage(asking)
        serving = AsgiClient(stage.emulator).start()
        await asyncio.sleep(0.5)
        await stage.rest(10.0)
        await serving
        return stage

    assert run_virtual(main).log == [(0.0, "stopping: False"), (1.0, "stopping: True")]


def working(stage: Stage) -> Any:
    """Answer after a pause of 3.0 at `/slow`, at once elsewhere; registered work needs 5.0."""

    async def handler(scope: Any) -> None:
        lifetime_of(scope)["wait_until"](stage.work("work", 5.0))
        if scope["path"] == "/slow":
            await stage.work("handler", 3.0)

    return answer(handler)


@pytest.mark.parametrize(
    ("rule", "ended"),
    [
        (ShutdownRule.WORK, [(5.0, "work"), (5.0, "rest")]),
        (ShutdownRule.ANSWERS, [(1.0, "work cancelled"), (1.0, "rest")]),
    ],
)
def test_work_after_the_answer_gets_the_grace_only_where_the_rule_says_so(
    rule: ShutdownRule, ended: list[Any]
) -> None:
    """s27: a local runtime exits at once although registered work is pending."""

    async def main() -> Stage:
        stage = Stage(working, shutdown=rule)
        await call(stage.emulator)
        await asyncio.sleep(1.0)
        await stage.rest(20.0)
        stage.write("rest")
        return stage

    stage = run_virtual(main)

    assert stage.log == ended
    assert stage.end() == (ended[0][0], "done" if rule is ShutdownRule.WORK else "shutdown")


def test_an_answer_under_way_gets_the_grace_and_takes_its_work_along() -> None:
    """s28: the handler answers at 3.0 after a stop at 1.0; what it registered ends with it."""

    async def main() -> tuple[Stage, AsgiClient]:
        stage = Stage(working, shutdown=ShutdownRule.ANSWERS)
        client = AsgiClient(stage.emulator, path="/slow")
        serving = client.start()
        await asyncio.sleep(1.0)
        await stage.rest(20.0)
        await serving
        return stage, client

    stage, client = run_virtual(main)

    assert (client.status, client.sent[-1][0]) == (200, 3.0)
    assert stage.log == [(3.0, "handler"), (3.0, "work cancelled")]
    assert stage.end() == (3.0, "shutdown")
    (cut,) = stage.events(EventKind.CUT)
    assert cut.fields["text"] == (
        "cancel at 3.0 (shutdown): Stage.work (registered at 0.0); "
        "window 30.0 s counted from the answer at 3.0"
    )
