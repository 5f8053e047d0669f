"""Thousands of histories of a hostile world: the promises hold after every step, and at rest.

Each history drives the real handler, redrive and store on virtual time. Clients send and repeat,
receivers change their minds, replicas are killed, frozen, stopped and cancelled at an instant or at
the n-th resumption of their code, the store and its index misbehave, wall clocks disagree. The
oracle (`tests.support.model_oracle`) looks at every event. At the end the world is healed, redrive
runs to rest, and every operation must be delivered, rejected by a refusal, or parked where the
design has a person decide.

A failure is shrunk, and printed as steps and as a `@reproduce_failure` blob that replays it.
`OUTLAST_MODEL_HISTORIES` sets how many histories are run, `OUTLAST_MODEL_SEED` repeats a run.
"""

import os
import secrets
from collections.abc import Callable

import hypothesis
from hypothesis import HealthCheck, Phase
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from platform_sim.lifetime.profile import CutMode
from platform_sim.world.clients import Leave
from platform_sim.world.network import Turn
from platform_sim.world.script import Commit, Step, Then
from tests.support.model_replicas import SteppedRedrive, SteppedWeb
from tests.support.model_store import Failure, Trouble
from tests.support.model_world import RECEIVERS, ModelWorld, Plan

HISTORIES = 300
STEPS = 30

PLANS = (
    Plan(),
    Plan(cut=CutMode.KILL, allowance_s=5.0),
    # Leases that fire early are the normal case, and heartbeats try to hold them.
    Plan(handler={"lease_s": 0.0, "skew_margin_s": 0.0}),
    Plan(handler={"lease_s": 3.0, "skew_margin_s": 1.0, "heartbeat_every_s": 1.0}),
    Plan(handler={"lease_s": 6.0, "budget_s": 5.0, "attempt_limit_s": 2.0}),
    Plan(profile="generic", allowance_s=None, handler={"max_passes": 4}),
    # One limit for the answer and the work after it.
    Plan(profile="vercel", allowance_s=20.0),
    # Nothing after the answer: every operation is left to redrive.
    Plan(allowance_s=0.0, handler={"redrive_budget_s": 6.0, "redrive_concurrency": 1}),
)
BEHAVIOURS = {
    "fast": Turn(),
    "slow": Turn(delay_s=3.0),
    "very slow": Turn(delay_s=60.0),
    "slow to connect": Turn(connect_s=2.5),
    "never connects": Turn(connect_s=100.0),
    "refuses": Turn(refuse=True),
    "drops before": Turn(commit=Commit.NEVER, then=Then.DROP),
    "drops after": Turn(commit=Commit.BEFORE, then=Then.DROP),
    "hangs before": Turn(commit=Commit.NEVER, then=Then.HANG),
    "hangs after": Turn(commit=Commit.BEFORE, then=Then.HANG),
    "resets": Turn(reset_at_byte=5),
    "500 before": Turn(status=500),
    "500 after": Turn(status=500, commit=Commit.BEFORE),
    "503": Turn(status=503),
    "429": Turn(status=429, headers={"Retry-After": "60"}),
    "409": Turn(status=409),
    "422": Turn(status=422),
}
LOOKUPS: dict[str, tuple[Step, ...]] = {
    "true": (),
    "500": (Step(status=500),),
    "hangs": (Step(then=Then.HANG),),
    "slow and silent": (Step(status=503, delay_s=3.0),),
}
WAITS_S = (0.0, 0.02, 0.5, 1.0, 3.0, 5.0, 11.0, 20.0, 30.0, 50.0, 60.0, 500.0)
LEAVES = (Leave(), Leave(at_answer=True), Leave(after_s=0.0), Leave(after_s=0.5))
CALLS = ("accept", "claim", "takeover", "heartbeat", "confirm", "release", "reject", "park", "due")
POINTS = (
    "accepted", "pass_started", "attempt_started", "byte_left", "committed", "attempt_ended",
    "looked_up", "write", "claimed", "taken_over", "settled", "handed_back", "store_trouble",
)  # fmt: skip

places = st.integers(0, 1)
behaviours = st.sampled_from(sorted(BEHAVIOURS))
Act = Callable[[ModelWorld], Callable[[SteppedWeb | SteppedRedrive], None]]
ACTS: dict[str, Act] = {
    "kill": lambda world: world.fleet.kill,
    "freeze": lambda world: world.fleet.freeze_soon,
    "cancel": lambda world: lambda _: world.fleet.cancel_pass(),
    "term": lambda world: lambda replica: world.fleet.term(replica, 1.0),
}


class Histories(RuleBasedStateMachine):
    """One history, step by step."""

    world: ModelWorld | None = None

    @initialize(plan=st.sampled_from(PLANS))
    def begin(self, plan: Plan) -> None:
        """Make the world."""
        self.world = ModelWorld(plan)

    @property
    def lived(self) -> ModelWorld:
        """The world, which every rule but the first finds."""
        assert self.world is not None
        return self.world

    # Clients.

    @rule(
        key=st.sampled_from(("k1", "k2", "k3", None)),
        destination=st.sampled_from(RECEIVERS),
        body=st.sampled_from((1, 2)),
        leave=st.sampled_from(LEAVES),
        at=places,
    )
    def post(self, key: str | None, destination: str, body: int, leave: Leave, at: int) -> None:
        """Send a request: a new key, a repeat, or a key with another body."""
        self.lived.post(key, destination, body, leave=leave, at=at)

    @rule(
        destination=st.sampled_from(RECEIVERS),
        behaviour=behaviours,
        wait_s=st.sampled_from(WAITS_S),
    )
    def post_to(self, destination: str, behaviour: str, wait_s: float) -> None:
        """Send a new request to a receiver that has just changed its mind, and wait."""
        self.lived.behave(destination, BEHAVIOURS[behaviour])
        self.lived.post(None, destination, 1)
        self.lived.advance(wait_s)

    @rule(
        destination=st.sampled_from(RECEIVERS),
        behaviour=behaviours,
        count=st.integers(1, 60),
        act=st.sampled_from(sorted(ACTS)),
        waits_s=st.tuples(st.sampled_from(WAITS_S), st.sampled_from(WAITS_S)),
    )
    def post_and_strike(
        self, destination: str, behaviour: str, count: int, act: str, waits_s: tuple[float, float]
    ) -> None:
        """Strike whatever works on a new request, then let both redrives at what is left."""
        self.lived.behave(destination, BEHAVIOURS[behaviour])
        self.lived.fleet.at_step(count, ACTS[act](self.lived))
        self.lived.post(None, destination, 1)
        self.lived.advance(waits_s[0])
        self.redrive_twice(waits_s[1])

    # Time and redrive.

    @rule(seconds=st.sampled_from(WAITS_S))
    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.lived.advance(seconds)

    @rule(place=places, life_s=st.sampled_from((None, 0.5, 5.0)), wait_s=st.sampled_from(WAITS_S))
    def redrive(self, place: int, life_s: float | None, wait_s: float) -> None:
        """Let a redrive run begin, perhaps beside the other and perhaps with a short life."""
        self.lived.fleet.run_redrive(place, life_s)
        self.lived.advance(wait_s)

    @rule(wait_s=st.sampled_from(WAITS_S))
    def redrive_twice(self, wait_s: float) -> None:
        """Let both redrive replicas begin at the same instant."""
        self.lived.fleet.run_redrive(0)
        self.lived.fleet.run_redrive(1)
        self.lived.advance(wait_s)

    # Receivers.

    @rule(
        receiver=st.sampled_from(RECEIVERS),
        turns=st.lists(behaviours, min_size=1, max_size=3),
        lookups=st.sampled_from(sorted(LOOKUPS)),
        down=st.booleans(),
    )
    def behave(self, receiver: str, turns: list[str], lookups: str, *, down: bool) -> None:
        """Let a receiver change its mind, for a key's next requests in turn."""
        self.lived.behave(receiver, *(BEHAVIOURS[turn] for turn in turns), lookups=LOOKUPS[lookups])
        self.lived.sites[receiver].receiver.down = down

    # Replicas.

    @rule(kind=st.sampled_from(("web", "redrive")), place=places, act=st.sampled_from(sorted(ACTS)))
    def strike(self, kind: str, place: int, act: str) -> None:
        """Do something to a replica now."""
        ACTS[act](self.lived)(self.lived.fleet.replica(kind, place))

    @rule(
        count=st.integers(1, 60),
        act=st.sampled_from(sorted(ACTS)),
        kind=st.sampled_from(("", "web", "redrive")),
    )
    def strike_at_step(self, count: int, act: str, kind: str) -> None:
        """Do something to whatever replica is resumed the n-th time from now."""
        self.lived.fleet.at_step(count, ACTS[act](self.lived), kind)

    @rule(point=st.sampled_from(POINTS), count=st.integers(1, 3), act=st.sampled_from(sorted(ACTS)))
    def strike_at_point(self, point: str, count: int, act: str) -> None:
        """Do something to a replica at a named point."""
        self.lived.fleet.at_event(point, ACTS[act](self.lived), count)

    @rule()
    def thaw(self) -> None:
        """Let what is frozen go on."""
        self.lived.fleet.thaw()

    @rule(
        kind=st.sampled_from(("web", "redrive")),
        place=places,
        seconds=st.sampled_from((0.0, 2.0, -2.0, 10.0, -10.0)),
    )
    def skew(self, kind: str, place: int, seconds: float) -> None:
        """Set a replica's wall clock."""
        self.lived.fleet.skew(self.lived.fleet.replica(kind, place), seconds)

    # The store.

    @rule(
        how=st.sampled_from(Failure),
        count=st.sampled_from((0, 1, 2, 5, 100)),
        by_s=st.sampled_from((0.0, 0.5, 1.5, 3.0, 40.0)),
        calls=st.frozensets(st.sampled_from(CALLS), max_size=2),
        replica=st.sampled_from(("", "web", "redrive")),
        lag_s=st.sampled_from((0.0, 0.0, 5.0, 60.0)),
    )
    def trouble(
        self,
        how: Failure,
        count: int,
        by_s: float,
        calls: frozenset[str],
        replica: str,
        lag_s: float,
    ) -> None:
        """Let the next calls to the store fail in this way alone, and its index show the past."""
        self.lived.store.troubles[:] = [
            Trouble(how=how, count=count, by_s=by_s, calls=calls, replica=replica)
        ]
        self.lived.store.lag_s = lag_s

    # Judgement.

    @invariant()
    def every_promise_holds(self) -> None:
        """Nothing the oracle saw so far breaks a promise."""
        if self.world is not None:
            assert self.world.oracle.broken == []

    def teardown(self) -> None:
        """Heal the world, run redrive to rest, judge what is left."""
        if self.world is None:
            return
        try:
            if not self.world.oracle.broken:
                self.world.rest()
            assert self.world.oracle.broken == []
        finally:
            self.world.close()


def test_the_promises_hold_in_every_history() -> None:
    """Promises 1 to 8, over random histories against the real code."""
    histories = int(os.environ.get("OUTLAST_MODEL_HISTORIES", HISTORIES))
    seed = int(os.environ.get("OUTLAST_MODEL_SEED", secrets.randbits(32)))
    print(f"OUTLAST_MODEL_SEED={seed} OUTLAST_MODEL_HISTORIES={histories}")

    class Seeded(Histories):
        pass

    hypothesis.seed(seed)(Seeded)
    run_state_machine_as_test(
        Seeded,
        settings=hypothesis.settings(
            max_examples=histories,
            stateful_step_count=STEPS,
            deadline=None,
            database=None,
            derandomize=False,
            print_blob=True,
            report_multiple_bugs=False,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        ),
    )
