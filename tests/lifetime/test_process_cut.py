"""A cut that takes the process along, and with it every request the process is at."""

import asyncio
from typing import Any

from platform_sim.lifetime.emulator import App, Emulator
from platform_sim.lifetime.profile import CutMode
from platform_sim.view.event import EventKind
from tests.support.asgi import AsgiClient, answer, call, lifetime_of
from tests.support.stage import Stage
from tests.support.virtual import run_virtual


def working(stage: Stage) -> App:
    """`/work` registers 60 s, `/floating` leaves a task, `/slow` answers after 60 s."""
    kept: list[Any] = []

    async def handler(scope: Any) -> None:
        if scope["path"] == "/work":
            lifetime_of(scope)["wait_until"](stage.work("work", 60.0))
        elif scope["path"] == "/floating":
            kept.append(asyncio.create_task(stage.work("floating", 60.0)))
        else:
            await stage.work("slow", 60.0)

    return answer(handler)


def test_all_requests_of_the_process_end_without_a_line_and_are_told() -> None:
    """The record is whole before the process is ended: it could not be written afterwards."""
    ended: list[tuple[float, int]] = []

    async def main() -> Stage:
        stage = Stage(working, cut=CutMode.PROCESS, allowance_s=5.0)
        stage.emulator = Emulator(
            working(stage),
            profile=stage.profile,
            observer=stage.recorder,
            end_process=lambda: ended.append(
                (asyncio.get_running_loop().time(), len(stage.recorder.events))
            ),
        )
        AsgiClient(stage.emulator, path="/slow").start()
        await asyncio.sleep(1.0)
        await call(stage.emulator, path="/work")
        await asyncio.sleep(10.0)
        return stage

    stage = run_virtual(main)

    assert ended == [(6.0, len(stage.recorder.events))]
    assert stage.log == []
    window = "window 5.0 s counted from the answer at 1.0"
    cuts = [(event.invocation_id, event.fields["text"]) for event in stage.events(EventKind.CUT)]
    assert cuts == [
        (
            "2",
            f"process at 6.0 (ceiling): Stage.work (registered at 1.0); {window}",
        ),
        ("1", "kill at 6.0 (neighbour): the app call"),
    ]
    (killed,) = stage.events(EventKind.PROCESS_KILLED)
    assert (killed.invocation_id, killed.fields) == (
        "2",
        {
            "shared_with": ["1"],
            "text": "the process was killed at the ceiling of request 2; requests 1 were there too",
        },
    )


def test_without_a_process_to_end_the_requests_end_as_if_there_were_one() -> None:
    """In an experiment on virtual time there is only one process, and it is the experiment's."""

    async def main() -> Stage:
        stage = Stage(working, cut=CutMode.PROCESS, allowance_s=5.0)
        await call(stage.emulator, path="/work")
        await stage.rest()
        return stage

    stage = run_virtual(main)

    assert stage.log == []
    assert stage.end() == (5.0, "ceiling")
    (killed,) = stage.events(EventKind.PROCESS_KILLED)
    assert killed.fields["text"] == "the process was killed at the ceiling of request 1"


def test_only_a_ceiling_takes_the_process_along() -> None:
    """Unregistered work dies with its request, and an orderly stop is no cut of the process."""

    async def main() -> Stage:
        stage = Stage(working, cut=CutMode.PROCESS)
        await call(stage.emulator, path="/floating")
        await asyncio.sleep(1.0)
        await call(stage.emulator, path="/work")
        await stage.rest(3.0)
        return stage

    stage = run_virtual(main)

    cuts = [(event.at_s, event.fields["mode"]) for event in stage.events(EventKind.CUT)]
    assert cuts == [(0.0, "kill"), (4.0, "kill")]
    assert stage.events(EventKind.PROCESS_KILLED) == []
