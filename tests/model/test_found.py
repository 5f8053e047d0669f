"""Histories that the model once found to break a promise, each as short as it was shrunk."""

from platform_sim.world.network import Turn
from tests.support.model_world import ModelWorld, Plan

HEARTBEATS = {"lease_s": 45.0, "heartbeat_every_s": 1.0}


def test_a_cancel_while_heartbeats_end_keeps_the_confirmation() -> None:
    """A pass that has its confirmation settles it, wherever in its end the cancellation strikes.

    The receiver has no idempotency: a confirmation that is forgotten is a second effect.
    """
    with ModelWorld(Plan(handler=HEARTBEATS)) as world:
        world.fleet.at_event("attempt_ended", lambda _: world.fleet.cancel_pass())
        world.post("a", "plain", 1)
        world.advance(1.0)

        assert world.row("a")["state"] == "delivered"
        world.rest()
        assert world.effects("plain", "a") == 1
        assert world.oracle.broken == []


def test_a_cancel_while_heartbeats_end_keeps_the_refusal() -> None:
    """As above: a refusal is a result too."""
    with ModelWorld(Plan(handler=HEARTBEATS)) as world:
        world.behave("plain", Turn(status=422), Turn())
        world.fleet.at_event("attempt_ended", lambda _: world.fleet.cancel_pass())
        world.post("a", "plain", 1)
        world.advance(1.0)

        assert world.row("a")["state"] == "rejected"
        world.rest()
        assert world.effects("plain", "a") == 0
        assert world.oracle.broken == []
