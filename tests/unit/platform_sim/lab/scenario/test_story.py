"""The story is told in order, to everybody, and no listener breaks who tells it."""

import asyncio

from platform_sim.lab.scenario.story import CURRENT_REQUEST, Story, StoryEvent
from platform_sim.world.clocks import WorldClock
from tests.support.virtual import run_virtual


def test_events_are_kept_and_found_by_kind_and_operation() -> None:
    """With the instant at which they were told."""

    async def main() -> Story:
        loop = asyncio.get_running_loop()
        story = Story(WorldClock(loop, loop.time()))
        story.tell("web-1", "accepted", operation_id="x")
        await asyncio.sleep(1.5)
        story.tell("web-1", "settled", operation_id="y", state="delivered")
        return story

    story = run_virtual(main)

    assert [event.at_s for event in story.events] == [0.0, 1.5]
    assert [event.operation_id for event in story.of("accepted", "settled")] == ["x", "y"]
    assert [event.kind for event in story.of("accepted", "settled", operation_id="y")] == [
        "settled"
    ]


def test_the_first_operation_told_of_in_a_requests_context_is_its_own() -> None:
    """That is how a request without a key gets its name."""

    async def main() -> dict[str, str]:
        loop = asyncio.get_running_loop()
        story = Story(WorldClock(loop, loop.time()))
        CURRENT_REQUEST.set("first")
        story.tell("web-1", "accepted", operation_id="x")
        story.tell("web-1", "accepted", operation_id="y")
        return story.names

    assert run_virtual(main) == {"first": "x"}


def test_a_listener_that_fails_is_kept_as_a_defect() -> None:
    """The product passes over what its sinks raise, and would hide it."""
    heard: list[str] = []

    def fails(event: StoryEvent) -> None:
        raise LookupError(event.kind)

    async def main() -> Story:
        loop = asyncio.get_running_loop()
        story = Story(WorldClock(loop, loop.time()))
        story.listeners += [fails, lambda event: heard.append(event.kind)]
        story.tell("web-1", "accepted")
        return story

    assert [repr(defect) for defect in run_virtual(main).defects] == ["LookupError('accepted')"]
    assert heard == ["accepted"]


def test_a_story_that_grows_too_long_says_so_once() -> None:
    """It is a world that never ends."""
    told: list[str] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        story = Story(WorldClock(loop, loop.time()), most_events=2)
        story.on_full = told.append
        for _ in range(5):
            story.tell("web-1", "accepted")

    run_virtual(main)

    assert told == ["more than 2 events"]
