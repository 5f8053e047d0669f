"""A scenario as the subject of a sweep: the product in a scenario's world, cut and driven to rest.

Rules: every request of the web replicas is swept. The scenario's faults stay; its expectations do
not, since a cut changes what they count. Redrive runs until nothing is due, and the world ends when
what it has started has had its time. A cut of the request kills that request alone; a cut of
redrive kills its replica, as the scenario's own faults do it.

Not here: what must be so afterwards (`promises`).
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import msgspec

from platform_sim.lab.scenario.asks import asks_of
from platform_sim.lab.scenario.faults import Act, Fault
from platform_sim.lab.scenario.file import Scenario
from platform_sim.lab.scenario.loop import VirtualLoop
from platform_sim.lab.scenario.played import Played
from platform_sim.lab.scenario.probe import Probe
from platform_sim.lab.scenario.product import Product
from platform_sim.lab.scenario.run import check, profile_of
from platform_sim.lab.scenario.world import World
from platform_sim.lab.sweep.asking import Answer
from platform_sim.lab.sweep.cutter import Cutter
from platform_sim.lab.sweep.errors import BadSweep
from platform_sim.lab.sweep.kill import kill_request
from platform_sim.lab.sweep.loop import ForgetfulLoop
from platform_sim.lab.sweep.places import Code
from platform_sim.lab.sweep.promises import findings_of, waiting_of
from platform_sim.lab.sweep.trial import Cuts, Trial
from platform_sim.lifetime.gate import Gate
from platform_sim.lifetime.invocation import Invocation
from platform_sim.lifetime.profile import Profile

__all__ = ["ScenarioSubject"]

_REST_S = 600.0
_REST_RUNS = 10


class ScenarioSubject:
    """A scenario and the product it happens to.

    Args:
        scenario: What happens; its expectations are left out.
        product: What it happens to.
        own: Top-level modules whose code is the product's.

    Raises:
        BadScenario: It cannot be played.
        BadSweep: It sends no request.
    """

    has_redrive = True
    if_not_acknowledged = None

    def __init__(self, scenario: Scenario, product: Product, *, own: frozenset[str]) -> None:
        check(scenario, product)
        if not scenario.requests:
            raise BadSweep("the scenario sends no request, so there is nothing to cut")
        self.title = scenario.name
        self.seed = scenario.seed
        self._scenario = _swept(scenario)
        self._profile = profile_of(scenario)
        self._product = product
        self._code = Code(own=own)
        self._uncut: Played | None = None

    def run(self, cuts: Cuts) -> Trial:
        """Run one trial."""
        run = _Run(self._scenario, self._profile, self._product, self._code, cuts)
        played = run.play()
        if cuts.redrive_at is not None:
            played = replace(played, scenario=_with_kills(self._scenario))
        uncut = self._uncut = self._uncut or played
        trial = Trial(
            resumptions=run.request.count,
            redrive_resumptions=run.redrive.count,
            place=run.request.place,
            redrive_place=run.redrive.place,
            places=tuple(run.request.places),
            findings=tuple(findings_of(played, uncut)),
            answers=_answers(played) if cuts.request_at is None else (),
        )
        if played is not uncut:
            played.story.events.clear()  # what was killed keeps its world alive for ever
        return trial


def _answers(played: Played) -> tuple[Answer, ...]:
    return tuple(Answer(status=event.fields["status"]) for event in played.story.of("answer"))


def _swept(scenario: Scenario) -> Scenario:
    """Return the scenario without expectations, with redrive, and with time to come to rest."""
    plan = scenario.redrive
    return msgspec.structs.replace(
        scenario,
        expect=(),
        totals=(),
        redrive=msgspec.structs.replace(plan, replicas=max(1, plan.replicas), until_s=None),
        run_for_s=scenario.run_for_s + max(_REST_S, _REST_RUNS * plan.every_s),
    )


def _with_kills(scenario: Scenario) -> Scenario:
    """Return the scenario saying that redrive was killed, which the invariants ask for."""
    kills = tuple(
        Fault(do=Act.KILL, at="run_started", replica=f"redrive-{number}")
        for number in range(1, scenario.redrive.replicas + 1)
    )
    return msgspec.structs.replace(scenario, faults=(*scenario.faults, *kills))


class _Loop(ForgetfulLoop, VirtualLoop):
    """A scenario's loop that keeps nothing when it closes."""


@dataclass(slots=True)
class _Run:
    """One trial."""

    scenario: Scenario
    profile: Profile
    product: Product
    code: Code
    cuts: Cuts
    request: Cutter = field(init=False)
    redrive: Cutter = field(init=False)
    world: World = field(init=False)
    _gates: list[Gate] = field(default_factory=list)
    _is_ending: bool = False

    def play(self) -> Played:
        """Play the world to its rest."""
        self.request = Cutter(self.code, at=self.cuts.request_at, recording=self.cuts.recording)
        self.redrive = Cutter(self.code, at=self.cuts.redrive_at)
        loop = _Loop()
        probe = Probe(on_request=self._watch_request, on_run=self._watch_redrive)
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            self.world = World(self.scenario, self.profile, self.product, probe)
            loop.on_stuck = self.world.stop
            return runner.run(self.world.play())

    def _watch_request(self, invocation: Invocation) -> None:
        self._gates.append(invocation.gate)
        self.request.watch(invocation.gate, partial(kill_request, invocation))

    def _watch_redrive(self, gate: Gate, kill: Callable[[], None]) -> None:
        if self._is_at_rest():
            self._end()
        elif self.request.place is not None:
            self.redrive.watch(gate, kill, root="the redrive run")

    def _is_at_rest(self) -> bool:
        """Tell whether every request is over and nothing is due."""
        last_s = max(at_s for ask in asks_of(self.scenario) for at_s in ask.at_s)
        if self.world.clock.now_s() <= last_s or any(gate.live for gate in self._gates):
            return False
        return not waiting_of(self.world.opened.rows())

    def _end(self) -> None:
        """End the world when everything that it has begun has had its time."""
        if not self._is_ending:
            self._is_ending = True
            over_s = self.world.clock.now_s() + _longest_s(self.scenario)
            self.world.at(over_s, partial(self.world.stop, "at rest"))


def _longest_s(scenario: Scenario) -> float:
    """Return the longest that anything goes on after the one who began it is gone."""
    waits = [fault.by_s for fault in scenario.faults]
    for receiver in scenario.receivers.values():
        waits += [turn.delay_s + turn.connect_s for turn in receiver.replies]
    for request in scenario.requests:
        waits += [turn.delay_s + turn.connect_s for turn in request.replies or ()]
    return max(waits, default=0.0)
