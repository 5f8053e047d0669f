"""Histories that each need one guard of the promises, as short as they get.

Each returns its world, at the instant that matters, and what must be so in it besides the oracle's
promises.
"""

from collections.abc import Mapping

from platform_sim.lifetime.profile import CutMode
from platform_sim.world.network import Turn
from platform_sim.world.script import Commit, Step, Then
from tests.support.model_store import Failure, Trouble
from tests.support.model_world import ModelWorld, Plan

__all__ = [
    "Facts",
    "a_503_follows_an_unknown",
    "a_cancel_cuts",
    "a_clock_is_ahead",
    "a_clock_is_set_back",
    "a_heartbeat_comes_between",
    "a_lost_pass_parks",
    "a_lost_pass_rejects",
    "a_lost_pass_releases",
    "a_pass_knows_it_is_lost",
    "a_process_thaws",
    "a_receiver_is_busy_once",
    "an_attempt_takes_all_it_gets",
    "killed_in_flight",
    "one_key_comes_with_two_bodies",
    "taken_over",
    "the_deadline_cuts",
    "the_first_reply_is_dropped",
    "the_index_lags",
    "the_reply_to_a_claim_is_lost",
    "the_store_is_down",
    "the_window_closes",
    "two_confirm",
    "two_judge_one_claim",
]

Facts = Mapping[str, bool]

HANGS = Turn(commit=Commit.NEVER, then=Then.HANG)
HANGS_AFTER = Turn(commit=Commit.BEFORE, then=Then.HANG)
DROPS_AFTER = Turn(commit=Commit.BEFORE, then=Then.DROP)
BUSY = Turn(status=503)

# A lease of 3 s that no heartbeat extends, under a pass that has 8 s.
SHORT = Plan(
    allowance_s=8.0,
    handler={"lease_s": 3.0, "skew_margin_s": 1.0, "heartbeat_every_s": 1000.0},
)
HELD = Plan(
    handler={
        "lease_s": 3.0,
        "skew_margin_s": 1.0,
        "heartbeat_every_s": 1.0,
        "backoff_jitter": 0.0,
    }
)
TAKEOVER = frozenset({"takeover"})


def taken_over(*turns: Turn, receiver: str = "idem", lookups: tuple[Step, ...] = ()) -> ModelWorld:
    """Let a pass lose its claim at 5 s, while it is at work, to one that is busy for long."""
    world = ModelWorld(SHORT)
    world.behave(receiver, *turns, lookups=lookups)
    world.post("a", receiver, 1)
    world.advance(5.0)
    world.fleet.run_redrive()
    world.advance(4.0)
    return world


def a_lost_pass_releases() -> tuple[ModelWorld, Facts]:
    """The lost pass gives up at 7 s."""
    world = taken_over(HANGS, Turn(delay_s=15.0))
    return world, {"the claim is the second's": world.row("a")["state"] == "claimed"}


def a_lost_pass_rejects() -> tuple[ModelWorld, Facts]:
    """The lost pass hears a refusal at 6 s."""
    world = taken_over(Turn(status=422, delay_s=6.0), Turn(delay_s=15.0))
    return world, {"the claim is the second's": world.row("a")["state"] == "claimed"}


def a_lost_pass_parks() -> tuple[ModelWorld, Facts]:
    """The lost pass hears a refusal at 6 s, after it heard that the key is in progress."""
    busy = (Step(status=503, delay_s=15.0),)
    turns = (Turn(status=409), Turn(status=422, delay_s=6.0), Turn())
    world = taken_over(*turns, receiver="ask", lookups=busy)
    return world, {"the claim is the second's": world.row("a")["state"] == "claimed"}


def two_confirm() -> tuple[ModelWorld, Facts]:
    """The lost pass and its successor both hear of the delivery."""
    world = taken_over(Turn(delay_s=5.5), Turn())
    world.advance(10.0)
    return world, {"it is delivered": world.row("a")["state"] == "delivered"}


def killed_in_flight() -> tuple[ModelWorld, Facts]:
    """The web replica dies with a request on the wire, and redrive finds its claim."""
    world = ModelWorld(Plan())
    world.behave("plain", HANGS_AFTER)
    world.post("a", "plain", 1)
    world.advance(1.0)
    world.fleet.kill(world.fleet.webs[0])
    return world, {}


def two_judge_one_claim() -> tuple[ModelWorld, Facts]:
    """Both redrives judge the same claim lost, and their takeovers come one after the other."""
    world = ModelWorld(Plan(handler={"lease_s": 0.0, "skew_margin_s": 0.0}))
    world.behave("idem", HANGS)
    world.post("a", "idem", 1)
    world.advance(1.0)
    for redrive, by_s in zip(world.fleet.redrives, (0.2, 0.5), strict=True):
        world.store.troubles.append(
            Trouble(how=Failure.LATE, by_s=by_s, calls=TAKEOVER, replica=redrive.name)
        )
    world.fleet.run_redrive(0)
    world.fleet.run_redrive(1)
    world.advance(2.0)
    return world, {}


def a_heartbeat_comes_between() -> tuple[ModelWorld, Facts]:
    """Silent for 5 s, a pass is judged lost; its heartbeat arrives before the late takeover."""
    world = ModelWorld(HELD)
    world.behave("idem", HANGS)
    silence = Trouble(how=Failure.UNREACHABLE, count=5, calls=frozenset({"heartbeat"}))
    late = Trouble(how=Failure.LATE, by_s=1.5, calls=TAKEOVER)
    world.store.troubles += [silence, late]
    world.post("a", "idem", 1)
    world.advance(5.5)
    world.fleet.run_redrive()
    world.advance(3.0)
    return world, {"the first still holds it": world.row("a")["passes"] == 1}


def a_clock_is_ahead() -> tuple[ModelWorld, Facts]:
    """A redrive whose clock is 4 s ahead looks at a claim with 3 s to go."""
    world = ModelWorld(Plan(handler={"lease_s": 10.0, "heartbeat_every_s": 1000.0}))
    world.behave("idem", HANGS)
    world.post("a", "idem", 1)
    world.fleet.skew(world.fleet.redrives[0], 4.0)
    world.advance(7.0)
    world.fleet.run_redrive()
    world.advance(1.0)
    return world, {"the first still holds it": world.row("a")["passes"] == 1}


def a_clock_is_set_back() -> tuple[ModelWorld, Facts]:
    """A pass whose wall clock is set back goes on with its heartbeats."""
    world = ModelWorld(Plan(handler={"heartbeat_every_s": 1.0}))
    world.behave("idem", HANGS)
    world.post("a", "idem", 1)
    world.advance(2.5)
    until_ms = world.row("a")["lease_until_ms"]
    world.fleet.skew(world.fleet.webs[0], -10.0)
    world.advance(3.0)
    return world, {"the lease is as long": world.row("a")["lease_until_ms"] >= until_ms}


def a_pass_knows_it_is_lost() -> tuple[ModelWorld, Facts]:
    """A pass between two attempts hears from its heartbeat that another holds its claim."""
    world = ModelWorld(HELD)
    world.behave("idem", BUSY)
    world.store.troubles.append(
        Trouble(how=Failure.UNREACHABLE, count=5, calls=frozenset({"heartbeat"}))
    )
    world.post("a", "idem", 1)
    world.advance(5.5)
    world.fleet.run_redrive()
    world.advance(4.0)
    sent = sum(
        event.source == world.fleet.webs[0].name for event in world.story.of("attempt_started")
    )
    return world, {"its fourth attempt was its last": sent == 4}


def the_index_lags() -> tuple[ModelWorld, Facts]:
    """The index lists as due what was put off for a minute at the receiver's word."""
    world = ModelWorld(Plan(allowance_s=0.0))
    world.behave("idem", Turn(status=429, headers={"Retry-After": "60"}))
    world.post("a", "idem", 1)
    world.advance(10.0)
    world.store.lag_s = 5.0
    world.fleet.run_redrive()
    world.advance(10.0)
    world.store.lag_s = 15.0
    world.fleet.run_redrive()
    world.advance(1.0)
    return world, {"it was left alone": world.wire("idem") == 1}


def the_reply_to_a_claim_is_lost() -> tuple[ModelWorld, Facts]:
    """Redrive's claim lands, and its reply does not come home."""
    world = ModelWorld(Plan(allowance_s=0.0))
    world.store.troubles.append(Trouble(how=Failure.REPLY_LOST, calls=frozenset({"claim"})))
    world.post("a", "plain", 1)
    world.advance(1.0)
    world.fleet.run_redrive()
    world.advance(1.0)
    return world, {"it is delivered": world.row("a")["state"] == "delivered"}


def an_attempt_takes_all_it_gets() -> tuple[ModelWorld, Facts]:
    """A receiver hangs until the platform's ceiling, which kills."""
    world = ModelWorld(Plan(allowance_s=5.0, cut=CutMode.KILL))
    world.behave("idem", HANGS)
    world.post("a", "idem", 1)
    world.advance(5.1)
    return world, {"what is known is written": world.row("a")["state"] == "uncertain"}


def a_process_thaws() -> tuple[ModelWorld, Facts]:
    """A replica is frozen between two attempts and thaws after ten minutes."""
    plan = Plan(profile="generic", allowance_s=None, handler={"backoff_jitter": 0.0})
    world = ModelWorld(plan)
    world.behave("idem", BUSY)
    world.post("a", "idem", 1)
    world.advance(0.1)
    world.fleet.freeze(world.fleet.webs[0])
    world.advance(600.0)
    world.fleet.thaw()
    world.advance(1.0)
    return world, {"nothing was sent": world.wire("idem") == 1}


def the_first_reply_is_dropped() -> tuple[ModelWorld, Facts]:
    """An idempotent receiver has its effect and drops the connection."""
    world = ModelWorld(Plan())
    world.behave("idem", DROPS_AFTER, Turn())
    world.post("a", "idem", 1)
    world.advance(5.0)
    return world, {"one effect": world.effects("idem", "a") == 1}


def a_receiver_is_busy_once() -> tuple[ModelWorld, Facts]:
    """The second attempt gets through."""
    world = ModelWorld(Plan())
    world.behave("plain", BUSY, Turn())
    world.post("a", "plain", 1)
    world.advance(5.0)
    return world, {"one effect": world.effects("plain", "a") == 1}


def the_deadline_cuts() -> tuple[ModelWorld, Facts]:
    """A receiver of which nothing is known has its effect and hangs."""
    world = ModelWorld(Plan())
    world.behave("plain", HANGS_AFTER)
    world.post("a", "plain", 1)
    world.advance(40.0)
    return world, {"a person decides": world.row("a")["state"] == "parked"}


def a_cancel_cuts() -> tuple[ModelWorld, Facts]:
    """A pass is cancelled with its request on the wire."""
    world = ModelWorld(Plan())
    world.behave("plain", HANGS_AFTER)
    world.post("a", "plain", 1)
    world.advance(1.0)
    world.fleet.cancel_pass()
    world.advance(1.0)
    return world, {"it is uncertain": world.row("a")["state"] == "uncertain"}


def a_503_follows_an_unknown() -> tuple[ModelWorld, Facts]:
    """After a dropped connection the receiver is busy to the pass's end."""
    world = ModelWorld(Plan())
    world.behave("idem", DROPS_AFTER, Turn(status=503, replay=False))
    world.post("a", "idem", 1)
    world.advance(30.0)
    return world, {"it is uncertain": world.row("a")["state"] == "uncertain"}


def the_window_closes() -> tuple[ModelWorld, Facts]:
    """Ten seconds before an idempotent receiver forgets the key, connecting takes fifteen."""
    world = ModelWorld(Plan())
    world.behave("idem", HANGS_AFTER, Turn(connect_s=15.0))
    world.post("a", "idem", 1)
    world.advance(1.0)
    world.fleet.kill(world.fleet.webs[0])
    world.advance(589.0)
    world.fleet.run_redrive()
    world.advance(20.0)
    return world, {"one effect": world.effects("idem", "a") == 1}


def one_key_comes_with_two_bodies() -> tuple[ModelWorld, Facts]:
    """A caller uses a key again for another request."""
    world = ModelWorld(Plan())
    world.post("a", "idem", 1)
    world.advance(1.0)
    world.post("a", "idem", 2)
    world.advance(1.0)
    return world, {}


def the_store_is_down() -> tuple[ModelWorld, Facts]:
    """A request comes while the store cannot be reached."""
    world = ModelWorld(Plan())
    world.store.troubles.append(Trouble(how=Failure.UNREACHABLE, count=100))
    world.post("a", "idem", 1)
    world.advance(5.0)
    return world, {}
