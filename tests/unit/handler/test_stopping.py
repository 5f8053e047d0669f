"""An orderly stop: once the platform says so, nothing is begun, and redrive gets what is left."""

from dataclasses import replace

import anyio

from handler.accept import Acceptor
from handler.budget import Deadline
from handler.delivery import Delivery
from handler.destinations import Destination
from handler.events import Action, Events
from handler.intake import Intake
from handler.lifetime import Lifetime, never
from handler.places import Places
from handler.settle import Settled
from storage.marker import Claim, Draft, Marker
from storage.states import State
from storage.store import Store
from storage.transport.memory import MemoryTransport
from tests.support import apps
from tests.support.apps import URL, Platform, no_jitter, seeded_ids
from tests.support.clock import LoopClock
from tests.support.senders import ScriptedSender, Step, status
from tests.support.virtual import run_virtual

LIFETIME = Lifetime(wait_until=lambda _: None, remaining=lambda: 30.0, platform="test")


def run_pass(steps: list[Step], stops_after_s: float) -> tuple[Settled, Marker, list[Action], int]:
    """Run a pass on a platform that begins to stop; return how it ended and what was sent."""
    clock, sender, events = LoopClock(), ScriptedSender(steps, {}), apps.Events()
    store = Store(MemoryTransport(), now_ms=clock.wall_ms)
    delivery = Delivery(
        store=store,
        sender=sender,
        destinations={"a": Destination(url=URL)},
        settings=no_jitter(),
        uniform=lambda: 0.5,
        events=Events(events),
    )
    draft = Draft(operation_id="op", accept_id="x", destination="a", payload=b"{}", fingerprint="f")

    async def main() -> tuple[Settled, Marker]:
        claim = Claim(claim_id="c1", lease_s=45.0)
        held = (await store.accept(draft, claim=claim, within_s=1)).marker
        settled = await delivery.run_pass(
            held,
            Deadline.after(25.0, clock=clock, reserve_s=1.0),
            stopping=lambda: anyio.current_time() >= stops_after_s,
        )
        found = await store.read("op", within_s=1)
        assert found is not None
        return settled, found

    settled, marker = run_virtual(main)
    return settled, marker, events.actions(), len(sender.sends)


def test_o07_no_attempt_starts_after_the_stop_has_begun() -> None:
    """The attempt before it counts; the wait after it ends with the claim's release."""
    settled, marker, actions, sent = run_pass([status(503)], stops_after_s=0.1)

    assert settled is Settled.UNDELIVERED
    assert (marker.attempts, sent) == (1, 1)
    assert Action.TURNED_AWAY not in actions


def test_o27_a_pass_that_had_not_begun_is_turned_away() -> None:
    """Refused locally is not failed: nothing was tried, and redrive will."""
    settled, marker, actions, sent = run_pass([status(200)], stops_after_s=0.0)

    assert settled is Settled.UNDELIVERED
    assert (marker.attempts, marker.unknown, sent) == (0, False, 0)
    assert Action.TURNED_AWAY in actions


def test_o27_an_accept_after_the_stop_has_begun_leaves_delivery_to_redrive() -> None:
    """It is acknowledged all the same, due at once, and takes no place."""
    clock, events, places = LoopClock(), apps.Events(), Places(10)
    acceptor = Acceptor(
        store=Store(MemoryTransport(), now_ms=clock.wall_ms),
        settings=no_jitter(),
        clock=clock,
        ids=seeded_ids(clock, 1),
        events=Events(events),
        places=places,
    )
    intake = Intake(destination="a", payload=b"{}", fingerprint="f", key="k")

    async def main() -> State:
        given = replace(LIFETIME, stopping=lambda: True)
        accepted = await acceptor.accept(intake, caller="", lifetime=given)
        assert accepted.deadline is None
        return accepted.marker.state

    assert run_virtual(main) is State.UNDELIVERED
    assert events.actions() == [Action.TURNED_AWAY, Action.ACCEPTED]
    assert places.taken() == 0


def test_a_platform_that_does_not_tell_never_stops() -> None:
    """`stopping` is the contract's one optional key."""
    supplied = Platform().extensions()["outlast.lifetime"]
    silent = {name: supplied[name] for name in ("wait_until", "remaining", "platform")}
    found = Lifetime.of({"extensions": {"outlast.lifetime": silent}})

    assert found is not None
    assert found.stopping is never
    assert not found.stopping()


def test_a_platform_that_tells_is_asked() -> None:
    """Its own function is used, not a copy of what it said once."""
    supplied = {**Platform().extensions()["outlast.lifetime"], "stopping": lambda: True}
    found = Lifetime.of({"extensions": {"outlast.lifetime": supplied}})

    assert found is not None
    assert found.stopping()
