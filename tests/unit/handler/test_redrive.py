"""Redrive: all shards, a bounded batch, fair shares, and nothing kept that was not started."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import anyio
import pytest

from handler.destinations import Destination
from handler.events import Action
from handler.redrive import Redrive, RedriveReport, main, run_from_environment
from storage.attributes import Attribute
from storage.errors import StoreMisconfigured
from storage.marker import Claim, Draft, Marker, Settlement
from storage.requests import QueryDue, Request, UpdateMarker
from storage.states import State
from storage.store import Store
from tests.support.apps import Setting, no_jitter
from tests.support.senders import HANG, OK, ScriptedSender, Step, status
from tests.support.transports import Fate, down, lost_reply, slow, target
from tests.support.virtual import run_virtual

URLS = {name: f"http://{name}.test/hook" for name in ("a", "b", "c")}
DESTINATIONS = {name: Destination(url=url, idempotent=True) for name, url in URLS.items()}


def scene(
    *,
    steps: Sequence[Step] = (OK,),
    by_url: Mapping[str, Sequence[Step]] | None = None,
    fault: Callable[[Request], Fate | None] | None = None,
    **settings: Any,
) -> tuple[Setting, ScriptedSender]:
    """Return a setting with three idempotent destinations."""
    sender = ScriptedSender(steps, by_url or {})
    made = Setting(settings=no_jitter(**settings), destinations=DESTINATIONS, sender=sender)
    made.transport.fault = fault
    return made, sender


def store_of(setting: Setting) -> Store:
    """Return a store behind the faults."""
    return Store(
        setting.memory,
        shard_count=setting.settings.shard_count,
        now_ms=setting.clock.wall_ms,
    )


async def owe(setting: Setting, *names: str, retried: bool = False) -> list[str]:
    """Write waiting markers, one for each name, due now; `retried` ones have one attempt."""
    store, ids = store_of(setting), list[str]()
    for name in names:
        operation_id = f"{name}-{len(setting.memory.rows):04d}"
        draft = Draft(
            operation_id=operation_id,
            accept_id="x",
            destination=name,
            payload=b"{}",
            fingerprint="f",
        )
        claim = Claim(claim_id="first", lease_s=45.0) if retried else None
        reply = await store.accept(draft, claim=claim, within_s=1)
        if retried:
            await store.release(
                reply.marker,
                uncertain=False,
                due_at_ms=setting.clock.wall_ms(),
                settlement=Settlement(attempts=1, last_outcome="undelivered"),
                within_s=1,
            )
        ids.append(operation_id)
    return ids


async def abandon(setting: Setting, name: str = "a") -> Marker:
    """Write a marker whose pass was lost: claimed, its lease just over."""
    draft = Draft(
        operation_id=f"{name}-{len(setting.memory.rows):04d}",
        accept_id="x",
        destination=name,
        payload=b"{}",
        fingerprint="f",
    )
    claim = Claim(claim_id="lost", lease_s=45.0)
    reply = await store_of(setting).accept(draft, claim=claim, within_s=1)
    return reply.marker


def states(setting: Setting) -> Counter[str]:
    """Return how many markers are in each state."""
    return Counter(marker.state.value for marker in setting.markers())


def test_every_shard_is_walked() -> None:
    """40 markers over 4 shards of both lanes: all delivered in one run."""
    setting, sender = scene()

    async def main() -> RedriveReport:
        await owe(setting, *["a"] * 10, *["b"] * 10)
        await owe(setting, *["a"] * 10, *["b"] * 10, retried=True)
        shards = {marker.due_shard for marker in setting.markers()}
        assert len(shards) == 8
        return await setting.redrive()

    report = run_virtual(main)

    assert (states(setting), len(sender.sends)) == ({"delivered": 40}, 40)
    assert report.as_dict() == {
        "listed": 40,
        "claimed": 40,
        "taken_over": 0,
        "lost": 0,
        "stale": 0,
        "handed_back": 0,
        "failed": 0,
        "settled": {"delivered": 40},
    }


def test_nothing_due_is_a_run_that_did_nothing() -> None:
    """And writes nothing."""
    setting, _ = scene()
    report = run_virtual(setting.redrive)

    assert (report, setting.transport.writes) == (RedriveReport(), 0)


def test_a_batch_is_bounded() -> None:
    """The rest is the next run's."""
    setting, _ = scene(redrive_batch=8)

    async def main() -> tuple[Counter[str], Counter[str]]:
        await owe(setting, *["a", "b", "c"] * 4)
        await setting.redrive()
        first = states(setting)
        await setting.redrive()
        return first, states(setting)

    first, second = run_virtual(main)

    assert first == {"delivered": 8, "undelivered": 4}
    assert second == {"delivered": 12}


def test_o23_rows_tried_before_get_at_most_half_of_a_batch() -> None:
    """A poisoned head cannot starve new work."""
    setting, sender = scene(redrive_batch=10)

    async def main() -> None:
        await owe(setting, *["a", "b"] * 20, retried=True)
        await owe(setting, *["a", "b", "c"] * 10)
        await setting.redrive()

    run_virtual(main)
    attempts = Counter(marker.attempts for marker in setting.markers() if marker.settled_at_ms)

    assert attempts == {1: 5, 2: 5}
    assert len(sender.sends) == 10


def test_one_destination_cannot_take_a_batch_from_the_others() -> None:
    """Its share is half; the others are found behind its backlog."""
    setting, sender = scene(redrive_batch=8, shard_count=1)

    async def main() -> None:
        await owe(setting, *["a"] * 10)
        await anyio.sleep(1)
        await owe(setting, *["b"] * 10)
        await setting.redrive()

    run_virtual(main)
    urls = Counter(sent.request.url for sent in sender.sends)

    assert urls == {URLS["a"]: 4, URLS["b"]: 4}


def test_a_lone_destination_gets_the_whole_batch() -> None:
    """A share is for fairness; without others to be fair to, nothing is left idle."""
    setting, sender = scene(redrive_batch=8)

    async def main() -> RedriveReport:
        await owe(setting, *["a"] * 20)
        return await setting.redrive()

    report = run_virtual(main)

    assert (len(sender.sends), report.settled) == (8, {"delivered": 8})
    assert report.handed_back <= 4


def test_what_exceeds_a_share_comes_after_the_others_next_time() -> None:
    """Handed back with a delay, so that a backlog does not hide what is behind it for ever."""
    setting, sender = scene(redrive_batch=4, shard_count=1)

    async def main() -> list[str]:
        await owe(setting, *["a"] * 30)
        await anyio.sleep(1)
        await owe(setting, "b")
        seen = list[str]()
        for _ in range(10):
            await setting.redrive()
            seen = [sent.request.url for sent in sender.sends]
            if URLS["b"] in seen:
                return seen
            await anyio.sleep(5)
        return seen

    assert URLS["b"] in run_virtual(main)


def test_one_slow_destination_does_not_hold_up_the_others() -> None:
    """Passes at one destination are bounded; the others deliver meanwhile."""
    setting, sender = scene(
        by_url={URLS["a"]: [HANG]}, redrive_per_destination=2, redrive_concurrency=4
    )

    async def main() -> None:
        await owe(setting, *["a"] * 10, *["b"] * 10)
        task = asyncio.ensure_future(setting.redrive())
        await anyio.sleep(1)
        assert Counter(sent.request.url for sent in sender.sends) == {URLS["a"]: 2, URLS["b"]: 10}
        task.cancel()
        await asyncio.wait([task])

    run_virtual(main)


def test_passes_at_once_are_bounded_in_all() -> None:
    """Whatever the destinations."""
    setting, sender = scene(
        steps=[status(204, after_s=1)], redrive_concurrency=3, redrive_per_destination=2
    )

    async def main() -> None:
        await owe(setting, *["a", "b", "c"] * 3)
        await setting.redrive()

    run_virtual(main)

    assert sender.most_under_way == 3


def test_o22_what_cannot_be_started_in_time_is_handed_back() -> None:
    """Untouched: its pass is not counted, nothing is unknown, and the next run takes it."""
    setting, sender = scene(
        by_url={URLS["a"]: [*[HANG] * 2, OK]},
        redrive_per_destination=2,
        redrive_budget_s=10.0,
        attempt_limit_s=30.0,
    )

    async def main() -> tuple[RedriveReport, list[Marker], float]:
        await owe(setting, *["a"] * 6)
        report = await setting.redrive()
        ended_s = anyio.current_time()
        waiting = [marker for marker in setting.markers() if marker.attempts == 0]
        await setting.redrive()
        return report, waiting, ended_s

    report, waiting, ended_s = run_virtual(main)

    assert (report.claimed, report.handed_back) == (6, 4)
    assert [(m.state, m.passes, m.unknown) for m in waiting] == [(State.UNDELIVERED, 0, False)] * 4
    assert ended_s == 8.0  # the run keeps its reserve, and so does the pass
    assert states(setting) == {"delivered": 4, "uncertain": 2}
    assert len(sender.sends) == 6


def test_handing_back_uses_up_no_pass() -> None:
    """A limit of two passes is still two passes after any number of claims handed back."""
    setting, _ = scene(
        by_url={URLS["a"]: [HANG]},
        redrive_per_destination=1,
        redrive_budget_s=5.0,
        max_passes=2,
        row_backoff_base_s=1000.0,
        row_backoff_cap_s=1000.0,
    )

    async def main() -> list[int]:
        await owe(setting, *["a"] * 5)
        for _ in range(3):
            await setting.redrive()
            await anyio.sleep(1)
        return sorted(marker.passes for marker in setting.markers())

    assert run_virtual(main) == [0, 0, 1, 1, 1]


def test_a_claim_that_waited_too_long_is_not_started() -> None:
    """Before each start the lease must leave room for an attempt and the skew margin."""
    setting, sender = scene(
        steps=[status(204, after_s=4.0)],
        redrive_per_destination=1,
        lease_s=20.0,
        attempt_limit_s=10.0,
    )

    async def main() -> RedriveReport:
        await owe(setting, *["a"] * 5)
        return await setting.redrive()

    report = run_virtual(main)

    assert (report.settled, report.handed_back) == ({"delivered": 2}, 3)
    assert sender.starts_s == [0.0, 4.0]


@pytest.mark.parametrize("lease_s", [0.0, 1.0])
def test_a_lease_shorter_than_an_attempt_still_starts_passes(lease_s: float) -> None:
    """A claim that did not wait always starts, or nothing ever would."""
    setting, _ = scene(lease_s=lease_s)

    async def main() -> None:
        await owe(setting, *["a"] * 3)
        await setting.redrive()

    run_virtual(main)

    assert states(setting) == {"delivered": 3}


def test_a_lost_pass_is_taken_over_directly() -> None:
    """One write from claim to claim; what it may have sent is unknown and counted."""
    setting, sender = scene()

    async def main() -> tuple[RedriveReport, RedriveReport]:
        await abandon(setting)
        await anyio.sleep(49.9)
        early = await setting.redrive()
        await anyio.sleep(0.2)
        return early, await setting.redrive()

    early, late = run_virtual(main)
    marker = setting.marker()

    assert (early.taken_over, early.lost) == (0, 1)
    assert (late.taken_over, late.claimed) == (1, 0)
    assert (marker.state, marker.attempts, marker.passes) == (State.DELIVERED, 2, 2)
    assert sender.keys == [marker.operation_id]
    assert setting.events.of(Action.TAKEN_OVER)[0]["from_claim_id"] == "lost"


def test_o21_a_claim_whose_reply_was_lost_counts_as_won() -> None:
    """Sent once, in this run; not left idle until the lease ends."""
    lost = iter([lost_reply()])
    setting, sender = scene(
        fault=lambda call: next(lost, None) if target(call) is State.CLAIMED else None
    )

    async def main() -> RedriveReport:
        await owe(setting, "a")
        return await setting.redrive()

    report = run_virtual(main)

    assert (report.claimed, report.failed, len(sender.sends)) == (1, 0, 1)
    assert (setting.marker().state, setting.marker().attempts) == (State.DELIVERED, 1)


def test_o26_overlapping_runs_claim_each_marker_once() -> None:
    """Lost claims are normal: counted, not raised."""
    setting, sender = scene(steps=[status(204, after_s=1.0)])

    async def main() -> list[RedriveReport]:
        await owe(setting, *["a", "b"] * 10)
        return list(await asyncio.gather(setting.redrive(), setting.redrive()))

    first, second = run_virtual(main)

    assert (len(sender.keys), len(set(sender.keys)), states(setting)) == (20, 20, {"delivered": 20})
    assert (first.claimed + second.claimed, first.lost + second.lost) == (20, 20)
    assert (first.failed, second.failed) == (0, 0)


def test_o25_a_stale_hit_is_counted_and_not_raised() -> None:
    """The index lags: the row decides."""
    setting, sender = scene()

    async def main() -> RedriveReport:
        (operation_id,) = await owe(setting, "a")
        lagging = dict(setting.memory.rows[operation_id])
        await store_of(setting).confirm(operation_id, Settlement(), within_s=1)
        due = {k: v for k, v in lagging.items() if k in {Attribute.DUE_AT, Attribute.DUE_SHARD}}
        setting.memory.put_row({**setting.memory.rows[operation_id], **due})
        return await setting.redrive()

    report = run_virtual(main)

    assert (report.listed, report.stale, report.failed) == (1, 1, 0)
    assert (setting.marker().state, sender.sends) == (State.DELIVERED, [])


def test_a_row_that_vanished_is_stale_too() -> None:
    """Deleted between the listing and the claim."""
    setting, _ = scene()

    def vanish(call: Request) -> None:
        if isinstance(call, UpdateMarker):
            setting.memory._rows.clear()

    setting.transport.fault = vanish

    async def main() -> RedriveReport:
        await owe(setting, "a")
        return await setting.redrive()

    assert run_virtual(main).stale == 1


def test_unreadable_rows_at_the_head_do_not_starve_what_is_behind_them() -> None:
    """They never move, so they must not use up what a run looks at."""
    setting, _ = scene(redrive_batch=2, shard_count=1)

    async def main() -> None:
        for operation_id in await owe(setting, *["a"] * 60):
            row = dict(setting.memory.rows[operation_id])
            row[Attribute.STATE] = "of another release"
            setting.memory.put_row(row)
        await anyio.sleep(1)
        (behind,) = await owe(setting, "b")
        await Redrive(setting.service()).run()

        assert setting.memory.rows[behind][Attribute.STATE] == State.DELIVERED

    run_virtual(main)


def test_a_broken_row_costs_only_itself() -> None:
    """It is told and the others are delivered."""
    setting, _ = scene()

    async def main() -> RedriveReport:
        (broken, *_) = await owe(setting, "a", "a", "b")
        row = dict(setting.memory.rows[broken])
        del row[Attribute.PAYLOAD]
        setting.memory.put_row(row)
        return await setting.redrive()

    report = run_virtual(main)

    assert (report.failed, report.settled) == (1, {"delivered": 2})
    assert "payload" in setting.events.of(Action.REDRIVE_FAILED)[0]["reason"]


def test_a_store_that_is_down_ends_the_run_without_an_error() -> None:
    """Every shard was tried; the next run will."""
    setting, sender = scene(fault=down)

    async def main() -> RedriveReport:
        await owe(setting, "a")
        return await setting.redrive()

    report = run_virtual(main)

    assert (report.listed, report.failed, sender.sends) == (0, 8, [])
    assert setting.marker().state is State.UNDELIVERED


def test_a_store_that_fails_in_the_middle_of_a_run_loses_nothing() -> None:
    """Claims under way are settled or left to their leases; a later run finishes them."""
    setting, sender = scene(steps=[status(204, after_s=1.0)], redrive_budget_s=20.0)

    def fault(_call: Request) -> Fate | None:
        return down() if 0.5 < anyio.current_time() < 30 else None

    setting.transport.fault = fault

    async def main() -> tuple[Counter[str], RedriveReport]:
        await owe(setting, *["a"] * 3)
        await setting.redrive()
        during = states(setting)
        await anyio.sleep(60)
        return during, await setting.redrive()

    during, report = run_virtual(main)

    assert during == {"claimed": 3}
    assert (report.taken_over, states(setting)) == (3, {"delivered": 3})
    assert Counter(sender.keys).most_common(1)[0][1] == 2


def test_a_shard_that_cannot_be_listed_does_not_hide_the_others() -> None:
    """A hot or throttled partition is one partition."""
    setting, _ = scene(
        fault=lambda call: (
            down() if isinstance(call, QueryDue) and call.due_shard == "n00" else None
        )
    )

    async def main() -> tuple[RedriveReport, int]:
        await owe(setting, *["a", "b"] * 10)
        hidden = sum(marker.due_shard == "n00" for marker in setting.markers())
        return await setting.redrive(), hidden

    report, hidden = run_virtual(main)

    assert 0 < hidden < 20
    assert (report.failed, report.settled) == (1, {"delivered": 20 - hidden})


def test_a_misconfigured_store_is_told_by_name() -> None:
    """The reason carries the remedy."""
    setting, _ = scene(fault=lambda _: Fate(error=StoreMisconfigured("create the table")))
    report = run_virtual(setting.redrive)

    assert report.failed == 8
    assert setting.events.of(Action.REDRIVE_FAILED)[0]["reason"] == "create the table"


def test_a_defect_in_one_pass_does_not_cancel_the_others() -> None:
    """No exception group leaves a run; the defect is counted and its marker settled."""
    broken = Step(result=ZeroDivisionError("x"))
    setting, _ = scene(by_url={URLS["a"]: [broken], URLS["b"]: [status(204, after_s=2.0)]})

    async def main() -> RedriveReport:
        await owe(setting, "a", "b", "b")
        return await setting.redrive()

    report = run_virtual(main)

    assert (report.failed, states(setting)) == (1, {"uncertain": 1, "delivered": 2})
    assert setting.events.of(Action.REDRIVE_FAILED)[0]["reason"] == "ZeroDivisionError: x"


def test_a_cancelled_run_hands_back_and_settles() -> None:
    """Started passes settle what they know, the others are given back as they were."""
    setting, _ = scene(steps=[HANG], redrive_per_destination=1)

    async def main() -> float:
        await owe(setting, *["a"] * 4, *["b"] * 4)
        task = asyncio.ensure_future(setting.redrive())
        await anyio.sleep(3)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        return anyio.current_time()

    assert run_virtual(main) == 3.0
    assert states(setting) == {"uncertain": 2, "undelivered": 6}
    assert {marker.passes for marker in setting.markers() if not marker.attempts} == {0}


def test_a_run_cancelled_during_a_claim_gives_that_claim_back() -> None:
    """Its write may land after the cut: nobody else could tell it from a lost pass."""
    setting, sender = scene(
        fault=lambda call: Fate(reply_after_s=0.5) if target(call) is State.CLAIMED else None,
    )

    async def main() -> None:
        await owe(setting, "a")
        task = asyncio.ensure_future(setting.redrive())
        await anyio.sleep(0.2)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()

    run_virtual(main)
    marker = setting.marker()

    assert (marker.state, marker.unknown, marker.passes) == (State.UNDELIVERED, False, 0)
    assert sender.sends == []


def test_claims_set_aside_are_handed_back_by_a_cancelled_run() -> None:
    """Also those that waited for the end of the listing."""
    setting, _ = scene(
        redrive_batch=4,
        shard_count=1,
        steps=[HANG],
        fault=lambda call: slow(0.1) if target(call) is State.CLAIMED else None,
    )

    async def main() -> None:
        await owe(setting, *["a"] * 10)
        task = asyncio.ensure_future(setting.redrive())
        await anyio.sleep(0.35)
        task.cancel()
        await asyncio.wait([task])

    run_virtual(main)

    assert states(setting) == {"uncertain": 2, "undelivered": 8}
    assert {marker.claim_id for marker in setting.markers()} == {None}


def test_an_unknown_that_is_handed_back_stays_unknown() -> None:
    """A lost pass's claim, taken over and not started, is no less uncertain for that."""
    setting, _ = scene(by_url={URLS["a"]: [HANG]}, redrive_per_destination=1)

    async def main() -> None:
        await owe(setting, "a")
        await abandon(setting)
        await anyio.sleep(51)
        task = asyncio.ensure_future(setting.redrive())
        await anyio.sleep(1)
        task.cancel()
        await asyncio.wait([task])

    run_virtual(main)

    assert [(m.state, m.unknown, m.attempts) for m in setting.markers()] == [
        (State.UNCERTAIN, True, 1)
    ] * 2


def test_a_run_that_was_frozen_hands_back_when_it_thaws() -> None:
    """Its budget is over by the wall clock; giving claims back has time of its own."""
    setting, sender = scene(by_url={URLS["a"]: [HANG]}, redrive_per_destination=1)

    async def main() -> RedriveReport:
        await owe(setting, "a", "a", "a")
        task = asyncio.ensure_future(setting.redrive())
        await anyio.sleep(3)
        setting.clock.wall_ahead_s = 300.0
        return await task

    report = run_virtual(main)

    assert (report.handed_back, len(sender.sends)) == (2, 1)
    assert states(setting) == {"claimed": 1, "undelivered": 2}


def test_what_exceeds_a_share_is_left_alone_for_a_while() -> None:
    """Or the next run would claim it and hand it back again."""
    setting, _ = scene(redrive_batch=4, shard_count=1)

    async def main() -> list[int]:
        await owe(setting, *["a"] * 10)
        await setting.redrive()
        now_ms = setting.clock.wall_ms()
        return sorted((marker.due_at_ms or 0) - now_ms for marker in setting.markers())[-6:]

    assert run_virtual(main)[-2:] == [10_000, 10_000]


def test_a_hand_back_that_fails_is_told() -> None:
    """The claim's lease will bring it back, as unknown; somebody should know why."""
    setting, _ = scene(
        by_url={URLS["a"]: [HANG]},
        redrive_per_destination=1,
        redrive_budget_s=5.0,
        fault=lambda call: slow(60) if target(call) is State.UNDELIVERED else None,
    )

    async def main() -> RedriveReport:
        await owe(setting, "a", "a")
        return await setting.redrive()

    report = run_virtual(main)

    assert (report.handed_back, report.failed) == (0, 1)
    assert states(setting) == {"claimed": 1, "uncertain": 1}


def test_no_pass_outlives_the_runs_budget() -> None:
    """What a pass may spend is what the run has left, less the run's own reserve."""
    setting, sender = scene(steps=[HANG], redrive_budget_s=8.0)

    async def main() -> float:
        await owe(setting, "a")
        await setting.redrive()
        return anyio.current_time()

    assert run_virtual(main) <= 8.0
    assert len(sender.sends) == 1
    assert states(setting) == {"uncertain": 1}


def test_a_run_stops_listing_when_its_budget_is_short() -> None:
    """A slow store is not asked for what could not be started any more."""
    setting, _ = scene(redrive_budget_s=4.0, fault=lambda _: slow(0.9))

    async def main() -> tuple[RedriveReport, float]:
        await owe(setting, *["a"] * 10)
        return await setting.redrive(), anyio.current_time()

    report, ended_s = run_virtual(main)

    assert ended_s <= 6.0
    assert report.claimed < 10
    assert states(setting)["claimed"] == 0


def test_run_from_environment_opens_and_closes_what_it_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What a scheduler calls; an environment without a reachable store is a report, not a crash."""
    for name, value in {
        "AWS_ENDPOINT_URL_DYNAMODB": "http://127.0.0.1:9",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_SECRET_ACCESS_KEY": "local",
    }.items():
        monkeypatch.setenv(name, value)

    report = asyncio.run(run_from_environment())

    assert report.failed == 8


def test_a_redrive_is_made_of_a_service() -> None:
    """The web process never has one; its service can be the same kind."""
    setting, _ = scene()
    service = setting.service()
    run_virtual(Redrive(service).run)

    assert service.counts.as_dict() == {"redrive_ended": 1, "redrive_started": 1}


@pytest.mark.parametrize(
    ("name", "value", "code", "said"),
    [
        ("AWS_ENDPOINT_URL_DYNAMODB", "http://127.0.0.1:9", 1, '"failed": 8'),
        ("OUTLAST_BUDGET_S", "soon", 2, "OUTLAST_BUDGET_S"),
        ("AWS_ENDPOINT_URL_DYNAMODB", "127.0.0.1", 2, "AWS_ENDPOINT_URL_DYNAMODB"),
    ],
)
def test_a_run_from_the_command_line_ends_in_one_line_and_a_code(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    value: str,
    code: int,
    said: str,
) -> None:
    """`python -m handler.redrive`, for any scheduler; what is wrong is named, in one line."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv(name, value)

    ended = main()

    out, err = capsys.readouterr()
    assert code == ended
    assert said in (err if code == 2 else out)
    assert "Traceback" not in err
