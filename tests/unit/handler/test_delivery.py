"""A pass: attempts, waits and the last write on one deadline; a cut settles what is known."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import anyio
import pytest

from handler.budget import Deadline
from handler.delivery import Delivery
from handler.destinations import Destination
from handler.events import Action, Events
from handler.outcome import NotSent
from handler.settings import Settings
from handler.settle import Settled
from storage.marker import Claim, Draft, Marker
from storage.states import State
from storage.store import Store
from tests.support import apps
from tests.support.apps import URL, no_jitter
from tests.support.clock import EPOCH_MS, LoopClock
from tests.support.senders import HANG, OK, REFUSED, ScriptedSender, Step, status
from tests.support.transports import FaultyTransport, down, slow, target
from tests.support.virtual import run_virtual

DRAFT = Draft(operation_id="op", accept_id="x", destination="a", payload=b"{}", fingerprint="f")
LOOKUP = "http://receiver.test/effects/{id}"
ASKED = "http://receiver.test/effects/op"
PLAIN = Destination(url=URL)
IDEMPOTENT = Destination(url=URL, idempotent=True)
ASKABLE = Destination(url=URL, lookup_url=LOOKUP)


@dataclass(kw_only=True)
class Scene:
    """One operation under one claim, delivered by one pass on virtual time."""

    steps: Sequence[Step] = (OK,)
    by_url: Mapping[str, Sequence[Step]] = field(default_factory=dict)
    destination: Destination = IDEMPOTENT
    settings: Settings = field(default_factory=no_jitter)
    budget_s: float = 25.0
    unknown: bool = False

    def __post_init__(self) -> None:
        self.clock = LoopClock()
        self.transport = FaultyTransport()
        self.events = apps.Events()
        self.sender = ScriptedSender(self.steps, self.by_url)
        self.store = Store(self.transport, now_ms=self.clock.wall_ms)
        self.delivery = Delivery(
            store=self.store,
            sender=self.sender,
            destinations={"a": self.destination},
            settings=self.settings,
            uniform=lambda: 0.5,
            events=Events(self.events),
        )

    async def held(self) -> Marker:
        """Accept an operation under a claim; one that is unknown was taken over."""
        claim = Claim(claim_id="c1", lease_s=0.0 if self.unknown else 45.0)
        held = (await self.store.accept(DRAFT, claim=claim, within_s=1)).marker
        if not self.unknown:
            return held
        self.clock.wall_ahead_s += 5.0
        taken = await self.store.takeover(held, Claim(claim_id="c2", lease_s=45.0), within_s=1)
        assert taken.marker is not None
        return taken.marker

    async def run_pass(self, after: anyio.Event | None = None) -> Settled:
        """Run the pass."""
        held = await self.held()
        deadline = Deadline.after(
            self.budget_s, clock=self.clock, reserve_s=self.settings.reserve_s
        )
        return await self.delivery.run_pass(held, deadline, after=after)

    async def found(self) -> Marker:
        """Return the marker."""
        marker = await self.store.read("op", within_s=1)
        assert marker is not None
        return marker

    def run(self) -> tuple[Settled, Marker, float]:
        """Run the pass; return how it ended, the marker and the time it took."""

        async def main() -> tuple[Settled, Marker, float]:
            settled = await self.run_pass()
            ended_s = anyio.current_time()
            return settled, await self.found(), round(ended_s, 3)

        return run_virtual(main)

    def run_and_cut(self, after_s: float, *, wait: bool = False) -> tuple[Marker, float]:
        """Run the pass and cancel its task as a platform does; return the marker and the end."""

        async def main() -> tuple[Marker, float]:
            task = asyncio.ensure_future(self.run_pass(anyio.Event() if wait else None))
            await anyio.sleep(after_s)
            task.cancel()
            await asyncio.wait([task])
            ended_s = anyio.current_time()
            assert task.cancelled()
            self.transport.fault = None
            return await self.found(), round(ended_s, 3)

        return run_virtual(main)


def test_a_confirmation_ends_the_pass_with_one_write() -> None:
    """One attempt, one write, no read."""
    scene = Scene(steps=[status(204, after_s=2.0)])
    settled, marker, ended_s = scene.run()

    assert (settled, marker.state, marker.attempts, ended_s) == (
        Settled.DELIVERED,
        State.DELIVERED,
        1,
        2.0,
    )
    assert [target(call) for call in scene.transport.calls[:2]] == [State.CLAIMED, State.DELIVERED]
    assert scene.events.actions() == [
        Action.PASS_STARTED,
        Action.ATTEMPT_STARTED,
        Action.ATTEMPT_ENDED,
        Action.SETTLED,
    ]


def test_attempts_are_numbered_over_the_operations_life() -> None:
    """A taken-over claim counts as one attempt: the lost pass may have sent."""
    scene = Scene(steps=[status(503), OK], unknown=True)
    _, marker, _ = scene.run()

    assert [told["attempt"] for told in scene.events.of(Action.ATTEMPT_ENDED)] == [2, 3]
    assert marker.attempts == 3


def test_every_attempt_carries_the_first_key_and_the_first_bytes() -> None:
    """Same operation, same key, same bytes."""
    scene = Scene(steps=[status(503), status(500), OK])
    scene.run()

    assert {(sent.request.body, sent.request.url) for sent in scene.sender.sends} == {(b"{}", URL)}
    assert scene.sender.keys == ["op", "op", "op"]


def test_o11_a_wait_that_would_reach_the_limit_is_not_begun() -> None:
    """Attempts at 0, 1 and 3; the next would be at 7, so the pass ends at 3.0 at once."""
    settings = no_jitter(budget_s=5.0, backoff_base_s=1.0, reserve_s=0.0)
    scene = Scene(steps=[status(503)], settings=settings, budget_s=5.0)
    settled, marker, ended_s = scene.run()

    assert (scene.sender.starts_s, ended_s) == ([0.0, 1.0, 3.0], 3.0)
    assert (settled, marker.attempts, marker.last_status) == (Settled.UNDELIVERED, 3, 503)
    assert marker.due_at_ms == EPOCH_MS + 13_000


def test_o12_every_attempt_is_capped_by_limit_and_remainder() -> None:
    """0.0-3.0, 3.5-6.5, 7.5-9.0: the last one gets what the reserve leaves."""
    settings = no_jitter(budget_s=10.0, attempt_limit_s=3.0)
    scene = Scene(steps=[HANG], settings=settings, budget_s=10.0)
    settled, marker, ended_s = scene.run()

    assert (scene.sender.starts_s, ended_s) == ([0.0, 3.5, 7.5], 9.0)
    assert (settled, marker.attempts, len(scene.sender.sends)) == (Settled.UNCERTAIN, 3, 3)


@pytest.mark.parametrize("asked_s", [30.0, 86_400.0])
def test_a_retry_after_past_the_budget_is_kept_for_the_row(asked_s: float) -> None:
    """The pass ends at once; the receiver is left alone until then."""
    headers = {"retry-after": str(round(asked_s))}
    scene = Scene(steps=[status(503, headers=headers)])
    _, marker, ended_s = scene.run()

    assert (ended_s, len(scene.sender.sends)) == (0.0, 1)
    assert marker.due_at_ms == EPOCH_MS + asked_s * 1000


def test_a_retry_after_inside_the_budget_is_waited_for() -> None:
    """It overrules a shorter backoff."""
    scene = Scene(steps=[status(429, headers={"retry-after": "7"}), OK])
    settled, _, _ = scene.run()

    assert (scene.sender.starts_s, settled) == ([0.0, 7.0], Settled.DELIVERED)


@pytest.mark.parametrize(
    ("steps", "settled", "sends"),
    [
        ([status(503), OK], Settled.DELIVERED, 2),
        ([REFUSED, OK], Settled.DELIVERED, 2),
        ([status(422)], Settled.REJECTED, 1),
        ([status(500)], Settled.PARKED, 1),
        ([status(503), status(500), OK], Settled.PARKED, 2),
        ([status(302)], Settled.PARKED, 1),
        ([status(409), OK], Settled.DELIVERED, 2),
        ([status(409), status(500), OK], Settled.PARKED, 2),
        ([status(409), status(503), OK], Settled.DELIVERED, 3),
        ([status(409), status(422)], Settled.PARKED, 2),
        ([status(409)], Settled.UNCERTAIN, 6),
    ],
)
def test_a_receiver_that_promises_nothing_is_never_sent_an_unknown_twice(
    steps: list[Step], settled: Settled, sends: int
) -> None:
    """Its own "in progress" may be asked again; anything else unknown parks for a person."""
    scene = Scene(steps=steps, destination=PLAIN)
    how, _, _ = scene.run()

    assert (settled, sends) == (how, len(scene.sender.sends))


@pytest.mark.parametrize(
    ("steps", "settled"),
    [
        ([status(500), OK], Settled.DELIVERED),
        ([status(500), status(503), REFUSED], Settled.UNCERTAIN),
        ([status(500), status(422)], Settled.REJECTED),
        ([HANG, status(422)], Settled.REJECTED),
        ([status(503)], Settled.UNDELIVERED),
    ],
)
def test_an_idempotent_receiver_is_sent_the_key_again(steps: list[Step], settled: Settled) -> None:
    """A later 503 or refused connection does not clear the earlier unknown."""
    how, marker, _ = Scene(steps=steps).run()

    assert settled is how
    assert marker.unknown is (settled is Settled.UNCERTAIN)


@pytest.mark.parametrize(
    ("destination", "age_s", "settled", "sends"),
    [
        (IDEMPOTENT, 0, Settled.DELIVERED, 1),
        (IDEMPOTENT, 86_400 - 31, Settled.DELIVERED, 1),
        (IDEMPOTENT, 86_400 - 30, Settled.PARKED, 0),
        (PLAIN, 0, Settled.PARKED, 0),
    ],
)
def test_an_inherited_unknown_is_repeated_inside_the_dedupe_window_only(
    destination: Destination, age_s: float, settled: Settled, sends: int
) -> None:
    """The window counts from the accept, less the margin; beyond it a person decides."""
    scene = Scene(destination=destination, unknown=True)
    scene.clock.wall_ahead_s = 0.0

    async def main() -> Settled:
        held = await scene.held()
        scene.clock.wall_ahead_s = age_s
        return await scene.delivery.run_pass(
            held, Deadline.after(25.0, clock=scene.clock, reserve_s=1.0)
        )

    assert (settled, sends) == (run_virtual(main), len(scene.sender.sends))


@pytest.mark.parametrize(
    ("lookups", "steps", "settled", "urls"),
    [
        ([OK], [OK], Settled.DELIVERED, [ASKED]),
        ([status(404)], [OK], Settled.DELIVERED, [ASKED, URL]),
        ([status(404)], [status(422)], Settled.REJECTED, [ASKED, URL]),
        ([status(409), OK], [OK], Settled.DELIVERED, [ASKED, ASKED]),
        ([status(404), OK], [status(500)], Settled.DELIVERED, [ASKED, URL, ASKED]),
        ([status(404)], [status(503), OK], Settled.DELIVERED, [ASKED, URL, URL]),
        ([status(500)], [OK], Settled.UNCERTAIN, [ASKED] * 6),
    ],
)
def test_a_receiver_that_can_be_asked_is_asked_first(
    lookups: list[Step], steps: list[Step], settled: Settled, urls: list[str]
) -> None:
    """Found confirms, absent sends, silence leaves it unknown and sends nothing."""
    scene = Scene(steps=[], by_url={ASKED: lookups, URL: steps}, destination=ASKABLE, unknown=True)
    how, _, _ = scene.run()

    assert (settled, urls) == (how, [sent.request.url for sent in scene.sender.sends])


def test_a_missing_destination_waits_for_its_configuration() -> None:
    """Somebody removed it: nothing is sent, nothing is lost, the reason is told."""
    scene = Scene()
    scene.delivery = Delivery(
        store=scene.store,
        sender=scene.sender,
        destinations={},
        settings=scene.settings,
        uniform=lambda: 0.5,
        events=Events(scene.events),
    )
    settled, marker, _ = scene.run()

    assert (settled, marker.attempts, scene.sender.sends) == (Settled.UNDELIVERED, 0, [])
    assert scene.events.of(Action.SETTLED)[0]["reason"] == "no destination 'a' is configured"


def test_a_marker_that_kills_its_passes_is_parked_unsent() -> None:
    """Passes that never come to settle are counted by the claim itself."""
    scene = Scene(settings=no_jitter(max_passes=1), unknown=True)
    settled, marker, _ = scene.run()

    assert (settled, marker.reason, scene.sender.sends) == (
        Settled.PARKED,
        "more than 1 passes",
        [],
    )


def test_a_lost_lease_starts_no_further_attempt() -> None:
    """The attempt in flight goes on; after it the claim belongs to somebody else."""
    settings = no_jitter(lease_s=1.0, skew_margin_s=0.0)
    scene = Scene(steps=[status(503, after_s=3.0)], settings=settings)

    async def main() -> Settled:
        held = await scene.held()
        scene.transport.fault = lambda call: down() if target(call) == "heartbeat" else None
        task = asyncio.ensure_future(
            scene.delivery.run_pass(held, Deadline.after(25.0, clock=scene.clock))
        )
        await anyio.sleep(1.5)
        scene.transport.fault = None
        seen = await scene.found()
        scene.clock.wall_ahead_s += 100
        await scene.store.takeover(seen, Claim(claim_id="c2", lease_s=45.0), within_s=1)
        scene.clock.wall_ahead_s -= 100
        return await task

    assert run_virtual(main) is Settled.REFUSED
    assert len(scene.sender.sends) == 1


@pytest.mark.parametrize(
    ("steps", "cut_s", "state", "attempts", "sends"),
    [
        ([HANG], 4.0, State.UNCERTAIN, 1, 1),
        ([Step(result=None, sent=False)], 4.0, State.UNDELIVERED, 1, 1),
        ([status(503)], 0.2, State.UNDELIVERED, 1, 1),
        ([status(500)], 0.2, State.UNCERTAIN, 1, 1),
        ([status(500), HANG], 4.0, State.UNCERTAIN, 2, 2),
        ([status(500), Step(result=None, sent=False)], 4.0, State.UNCERTAIN, 2, 2),
    ],
    ids=["sent", "not-sent", "backoff", "backoff-unknown", "second-sent", "second-not-sent"],
)
def test_o33_a_cut_settles_what_is_known_and_goes_on(
    steps: list[Step], cut_s: float, state: State, attempts: int, sends: int
) -> None:
    """No further attempt; the marker says at once what a redrive has to know."""
    scene = Scene(steps=steps)
    marker, ended_s = scene.run_and_cut(cut_s)

    assert (state, attempts, sends) == (marker.state, marker.attempts, len(scene.sender.sends))
    assert ended_s == cut_s
    assert marker.claim_id is None
    assert Action.PASS_CUT in scene.events.actions()


def test_a_cut_before_the_answer_left_gives_the_claim_back() -> None:
    """Nothing was sent and the row says so, or a redrive would have to think it unknown."""
    marker, _ = Scene(destination=PLAIN).run_and_cut(3.0, wait=True)

    assert (marker.state, marker.unknown, marker.attempts) == (State.UNDELIVERED, False, 0)


def test_a_cut_during_a_lookup_leaves_it_as_unknown_as_it_was() -> None:
    """Asking changes nothing."""
    scene = Scene(by_url={ASKED: [HANG]}, destination=ASKABLE, unknown=True)
    marker, _ = scene.run_and_cut(3.0)

    assert (marker.state, marker.attempts) == (State.UNCERTAIN, 1)


@pytest.mark.parametrize(
    ("steps", "state"),
    [
        ([OK], State.DELIVERED),
        ([status(422)], State.REJECTED),
        ([status(503, headers={"retry-after": "60"})], State.UNDELIVERED),
    ],
)
def test_a_cut_during_the_settle_settles_all_the_same(steps: list[Step], state: State) -> None:
    """A native cancel reaches through anyio's shield; the verdict is written again."""
    scene = Scene(steps=steps)
    scene.transport.fault = lambda call: slow(0.5) if target(call) != State.CLAIMED else None
    marker, ended_s = scene.run_and_cut(0.2)

    assert (state, 0.7) == (marker.state, ended_s)
    assert marker.attempts == 1


def test_a_cut_whose_write_hangs_ends_at_the_deadline() -> None:
    """Shielded and bounded: the marker stays claimed and its lease will tell."""
    scene = Scene(steps=[HANG], budget_s=6.0)
    scene.transport.fault = lambda call: slow(60) if target(call) != State.CLAIMED else None
    marker, ended_s = scene.run_and_cut(4.0)

    assert (marker.state, ended_s) == (State.CLAIMED, 6.0)
    assert Action.SETTLE_FAILED in scene.events.actions()


def test_a_cut_by_a_scope_is_settled_too() -> None:
    """Anyio's own cancellation, as a redrive run that is cancelled brings it."""
    scene = Scene(steps=[HANG])

    async def main() -> Marker:
        with anyio.move_on_after(4.0):
            await scene.run_pass()
        return await scene.found()

    assert run_virtual(main).state is State.UNCERTAIN


@pytest.mark.parametrize("every_s", [None, 1.0])
def test_a_cut_with_heartbeats_is_a_cut_all_the_same(every_s: float | None) -> None:
    """The task group of the heartbeats must not turn the cancellation into something else."""
    scene = Scene(steps=[HANG], settings=no_jitter(heartbeat_every_s=every_s))
    marker, _ = scene.run_and_cut(4.5)

    assert marker.state is State.UNCERTAIN


@pytest.mark.parametrize("every_s", [None, 1.0])
def test_a_defect_settles_what_is_known_and_is_raised_as_it_is(every_s: float | None) -> None:
    """The operation comes back as unknown, and somebody reads of the defect."""
    steps = [status(503), Step(result=ZeroDivisionError("x"), after_s=2.0)]
    scene = Scene(steps=steps, settings=no_jitter(heartbeat_every_s=every_s))

    async def main() -> Marker:
        with pytest.raises(ZeroDivisionError):
            await scene.run_pass()
        return await scene.found()

    marker = run_virtual(main)

    assert (marker.state, marker.attempts) == (State.UNCERTAIN, 2)
    assert scene.events.of(Action.PASS_FAILED)[0]["reason"] == "ZeroDivisionError: x"


def test_a_thawed_pass_sends_nothing_more() -> None:
    """The wall clock tells what the monotonic one slept through."""
    scene = Scene(steps=[status(503)])

    async def main() -> Settled:
        task = asyncio.ensure_future(scene.run_pass())
        await anyio.sleep(0.2)
        scene.clock.wall_ahead_s = 300.0
        return await task

    assert run_virtual(main) is Settled.UNWRITTEN
    assert len(scene.sender.sends) == 1


def test_waiting_for_a_slot_counts_against_the_limit() -> None:
    """A request that found no slot in its time was not sent."""
    scene = Scene(steps=[Step(result=None, sent=False)], budget_s=5.0)
    settled, marker, ended_s = scene.run()

    assert (settled, marker.last_outcome, ended_s) == (Settled.UNDELIVERED, "undelivered", 4.0)


def test_a_sender_that_says_not_sent_is_believed() -> None:
    """Refused, DNS, TLS, connect time: no byte of the request left."""
    step = Step(result=NotSent(reason="no such host"), sent=False)
    settled, marker, _ = Scene(steps=[step], destination=PLAIN).run()

    assert (settled, marker.unknown) == (Settled.UNDELIVERED, False)
