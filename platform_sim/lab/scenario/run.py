"""Running a scenario: checked against the product, played in a world of its own, and over.

Rules: one event loop for each run, whose time is virtual; nothing waits in real time.

Not here: what the world does (`world`), judging what happened (`judge`, `invariants`).
"""

import asyncio
from dataclasses import replace
from enum import Enum

from platform_sim.lab.scenario.errors import BadScenario
from platform_sim.lab.scenario.file import Scenario
from platform_sim.lab.scenario.loop import VirtualLoop
from platform_sim.lab.scenario.played import Played
from platform_sim.lab.scenario.probe import Probe
from platform_sim.lab.scenario.product import Product
from platform_sim.lab.scenario.vocabulary import unknown_words
from platform_sim.lab.scenario.world import World
from platform_sim.lifetime.errors import BadProfile
from platform_sim.lifetime.profile import CutMode, Profile, find_profile

__all__ = ["check", "play", "profile_of"]

_OVERRIDES = ("allowance_s", "cancel_grace_s", "shutdown_grace_s")


def check(scenario: Scenario, product: Product) -> None:
    """Refuse a scenario that could not be played.

    Raises:
        BadScenario: It names a profile, a setting or a word that there is not.
    """
    profile_of(scenario)
    product.check(scenario)
    for problem in unknown_words(scenario, product.words()):
        raise BadScenario(problem)


def play(scenario: Scenario, product: Product, *, probe: Probe | None = None) -> Played:
    """Run a scenario to its end.

    Args:
        scenario: What happens.
        product: What it happens to.
        probe: Where an experiment takes part; nowhere when left out.

    Raises:
        BadScenario: It names a profile, a setting or a word that there is not.
    """
    check(scenario, product)
    loops: list[VirtualLoop] = []

    def new_loop() -> VirtualLoop:
        loops.append(VirtualLoop())
        return loops[0]

    with asyncio.Runner(loop_factory=new_loop) as runner:
        world = World(scenario, profile_of(scenario), product, probe or Probe())
        runner.get_loop()
        loops[0].on_stuck = world.stop
        return runner.run(world.play())


def profile_of(scenario: Scenario) -> Profile:
    """Return the profile a scenario runs under, with its overrides.

    Raises:
        BadScenario: There is no such profile or cut, or an override does not fit.
    """
    platform = scenario.platform
    try:
        profile = find_profile(platform.profile)
    except BadProfile as error:
        raise BadScenario(f"platform.profile: {error}") from error
    if platform.cut is not None:
        if platform.cut not in set(CutMode):
            raise BadScenario(f"platform.cut: {platform.cut!r} is none of {_words(CutMode)}")
        profile = replace(profile, cut=CutMode(platform.cut))
    overrides = {key: getattr(platform, key) for key in _OVERRIDES}
    given = {key: value for key, value in overrides.items() if value is not None}
    try:
        return replace(profile, **given)
    except BadProfile as error:
        raise BadScenario(f"platform.{', '.join(given)}: {error}") from error


def _words(closed_set: type[Enum]) -> str:
    return ", ".join(str(member.value) for member in closed_set)
