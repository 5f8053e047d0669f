"""The demo's plan comes from its seed and holds every kind of trouble."""

from collections import Counter

from platform_sim.lab.demo_plan import plan
from platform_sim.world.script import parse_script


def test_a_seed_replays_the_plan_and_another_gives_another() -> None:
    """What was seen once can be seen again."""
    assert plan(5) == plan(5)
    assert plan(5) != plan(6)


def test_every_kind_of_trouble_is_in_every_plan() -> None:
    """A seed changes order and content, not what is shown."""
    for seed in range(20):
        kinds = Counter(one.name.split(" ", 1)[1] for one in plan(seed))

        assert kinds == {
            "fast": 4,
            "slower than ceiling": 1,
            "3 slow, then fast": 1,
            "commits, hangs": 1,
            "commits, hangs twice": 1,
            "503, recovers": 1,
            "503, Retry-After": 1,
            "422, refuses": 1,
            "killed pre-commit": 1,
            "killed post-commit": 1,
            "killed, no commit": 1,
        }


def test_victims_are_sent_last_and_keys_are_unique() -> None:
    """The first wave's passes are over before the killing begins."""
    planned = plan(1)

    assert [one.victim for one in planned] == [False] * 11 + [True] * 3
    assert len({one.key for one in planned}) == 14


def test_every_payload_carries_a_script_that_the_receiver_understands() -> None:
    """A mistyped step would show as a rejected operation."""
    assert all(parse_script(one.payload["receiver"]).steps for one in plan(2))
