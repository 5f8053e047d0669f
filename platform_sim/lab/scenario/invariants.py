"""The invariants: what holds in every scenario, whatever it expects. One for each promise.

1 nothing acknowledged is lost · 2 one budget · 3 delivered means confirmed · 4 unknown stays
unknown · 5 first one home counts, a failure never erases a result · 6 no replica judges its own
work by the clock · 7 no flicker · 8 same operation, same key, same bytes.

Pure: read from the story, the ledgers and the rows. They know the words of the design and none of
the product's code, so that they can find it wrong.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from platform_sim.lab.scenario.file import Receiver
from platform_sim.lab.scenario.played import Played
from platform_sim.lab.scenario.story import StoryEvent

__all__ = ["INVARIANTS", "broken_invariants"]

_EPSILON_S = 0.01
_ABOVE_2XX = 300
_DUE = frozenset({"claimed", "undelivered", "uncertain"})
_CONFIRMING = frozenset({"delivered", "found"})
_OWN = frozenset({"release", "reject", "park", "heartbeat"})
# What may follow what, by one write; the words are the design's.
_MOVES: Mapping[str, frozenset[tuple[str | None, str]]] = MappingProxyType(
    {
        "accept": frozenset({(None, "claimed"), (None, "undelivered")}),
        "claim": frozenset({("undelivered", "claimed"), ("uncertain", "claimed")}),
        "takeover": frozenset({("claimed", "claimed")}),
        "heartbeat": frozenset({("claimed", "claimed")}),
        "confirm": frozenset(
            (state, "delivered")
            for state in ("claimed", "undelivered", "uncertain", "rejected", "parked")
        ),
        "release": frozenset({("claimed", "undelivered"), ("claimed", "uncertain")}),
        "reject": frozenset({("claimed", "rejected")}),
        "park": frozenset({("claimed", "parked")}),
    }
)


def broken_invariants(played: Played) -> dict[str, list[str]]:
    """Return what is wrong under each promise; an empty list where it holds."""
    return {name: list(check(played)) for name, check in INVARIANTS.items()}


def _nothing_acknowledged_is_lost(played: Played) -> Iterator[str]:
    for event in played.story.of("answer"):
        status, operation_id = event.fields["status"], event.operation_id
        if status is None or not 200 <= status < 300:  # noqa: PLR2004  acknowledged
            continue
        name = event.fields["request"]
        if not event.fields["stored"]:
            yield f"{name} was acknowledged at {event.at_s:.3f} before its marker was stored"
        row = played.end.rows.get(operation_id or "")
        if row is None:
            yield f"{name} was acknowledged and has no marker"
        elif row["state"] in _DUE and not ("due_at" in row and "due_shard" in row):
            yield f"{name} is {row['state']} and nothing will find it: it is not in the due index"


def _one_budget(played: Played) -> Iterator[str]:
    handler = played.scenario.handler
    budget_s = float(handler.get("budget_s", 25.0))
    reserve_s = float(handler.get("reserve_s", 1.0))
    limit_s = float(handler.get("attempt_limit_s", 20.0))
    begun: dict[str, float] = {}
    started: dict[tuple[str, int], float] = {}
    frozen = any(event.fields["do"] == "freeze" for event in played.story.of("fault"))
    for event in played.story.of("pass_started", "attempt_started", "attempt_ended"):
        claim_id = event.fields["claim_id"]
        if event.kind == "pass_started":
            begun[claim_id] = event.at_s
            continue
        spent_s = event.at_s - begun[claim_id]
        number = event.fields["attempt"]
        if event.kind == "attempt_started":
            started[claim_id, number] = event.at_s
            if spent_s >= budget_s - reserve_s + _EPSILON_S:
                yield f"attempt {number} of {claim_id} started {spent_s:.3f} s into its pass"
        elif not frozen:
            took_s = event.at_s - started[claim_id, number]
            own_s = played.scenario.receivers[event.fields["destination"]].attempt_limit_s
            if (
                spent_s > budget_s - reserve_s + _EPSILON_S
                or took_s > (own_s or limit_s) + _EPSILON_S
            ):
                yield f"attempt {number} of {claim_id} took {took_s:.3f} s, to {spent_s:.3f} s"
    yield from _no_hidden_retry(played)


def _no_hidden_retry(played: Played) -> Iterator[str]:
    left: dict[str, int] = defaultdict(int)
    for event in played.story.of("attempt_started"):
        left[event.operation_id or ""] += 1
    arrived: dict[str, int] = defaultdict(int)
    for requests in played.end.wire.values():
        for request in requests:
            arrived[request.key] += 1
    for operation_id, count in arrived.items():
        if count > left[operation_id]:
            yield f"{operation_id}: {count} wire requests for {left[operation_id]} attempts"


def _delivered_means_confirmed(played: Played) -> Iterator[str]:
    confirmed: set[str | None] = set()
    for event in played.story.of("attempt_ended", "looked_up", "write"):
        if event.kind != "write":
            if {event.fields.get("outcome"), event.fields.get("finding")} & _CONFIRMING:
                confirmed.add(event.operation_id)
        elif _landed_in(event, "delivered") and event.operation_id not in confirmed:
            yield f"{event.operation_id} became delivered at {event.at_s:.3f} unconfirmed"


def _unknown_stays_unknown(played: Played) -> Iterator[str]:
    unknown: set[tuple[str | None, str]] = set()
    for event in played.story.of("attempt_ended", "looked_up", "pass_started", "write"):
        match event.kind:
            case "pass_started" if event.fields["unknown"]:
                unknown.add((event.operation_id, event.source))
            case "attempt_ended" if event.fields["outcome"] in {"uncertain", "in_progress"}:
                unknown.add((event.operation_id, event.source))
            case "looked_up" if event.fields["finding"] == "absent":
                unknown.discard((event.operation_id, event.source))
            case "write" if event.fields["event"] == "takeover" and not event.fields["refused"]:
                unknown.add((event.operation_id, event.source))
            case "write" if _landed_in(event, "undelivered"):
                released = event.fields["event"] == "release"
                if released and (event.operation_id, event.source) in unknown:
                    yield f"{event.operation_id} was written as not delivered while unknown"
            case "write" if _landed_in(event, "delivered", "rejected", "parked", "uncertain"):
                unknown.discard((event.operation_id, event.source))


def _first_one_home_counts(played: Played) -> Iterator[str]:
    delivered: set[str | None] = set()
    holder: dict[str | None, str | None] = {}
    for event in played.story.of("write"):
        if event.fields["refused"]:
            continue
        if event.fields["before"] is None:
            delivered.discard(event.operation_id)  # its retention is over: a new operation
        if event.operation_id in delivered and event.fields["after"] != "delivered":
            yield f"{event.operation_id} was delivered and became {event.fields['after']}"
        if event.fields["after"] == "delivered":
            delivered.add(event.operation_id)
        before = event.fields["claim_before"]
        own = event.fields["by_claim"] == before and holder.get(event.operation_id) == event.source
        if event.fields["event"] in _OWN and not own:
            yield f"{event.source} wrote {event.fields['event']} under the claim {before}, not its"
        if event.fields["claim_after"] != before:
            taken = event.fields["claim_after"] is not None
            holder[event.operation_id] = event.source if taken else None


def _no_replica_judges_its_own_work(played: Played) -> Iterator[str]:
    under_way: dict[str, str] = {}
    for event in played.story.of(
        "pass_started", "settled", "write_refused", "settle_failed", "write"
    ):
        claim_id = event.fields.get("claim_id")
        if event.kind == "pass_started":
            under_way[str(claim_id)] = event.source
        elif event.kind == "write":
            before = event.fields["claim_before"]
            taken = event.fields["event"] == "takeover" and not event.fields["refused"]
            own = taken and under_way.get(str(before)) == event.source
            if own and not _was_killed(played, event.source, event.at_s):
                yield f"{event.source} took over its own pass {before} at {event.at_s:.3f}"
        else:
            under_way.pop(str(claim_id), None)


def _no_flicker(played: Played) -> Iterator[str]:
    for event in played.story.of("write"):
        if event.fields["refused"]:
            continue
        name = event.fields["event"]
        move = (event.fields["before"], event.fields["after"])
        if name in _MOVES and move not in _MOVES[name]:
            yield f"{name} moved {event.operation_id} from {move[0]} to {move[1]}"


def _same_key_same_bytes(played: Played) -> Iterator[str]:
    bodies: dict[str, set[str]] = defaultdict(set)
    for requests in played.end.wire.values():
        for request in requests:
            bodies[request.key].add(request.body_sha256)
    for key, found in bodies.items():
        if len(found) > 1:
            yield f"{key} was sent with {len(found)} different bodies"
        if key not in played.end.rows:
            yield f"a request with the key {key!r} belongs to no marker"
    for name, counts in played.end.effects.items():
        receiver = played.scenario.receivers[name]
        for key, count in counts.items():
            if receiver.does_dedupe and count > 1 and not _lies(receiver):
                yield f"{key} had {count} effects at the deduplicating receiver {name}"


def _lies(receiver: Receiver) -> bool:
    """Tell whether a receiver says of an effect that it is not there."""
    denies = any(turn.status >= _ABOVE_2XX and turn.commit is not None for turn in receiver.replies)
    return denies or bool(receiver.lookups) or bool(receiver.statuses)


def _landed_in(event: StoryEvent, *states: str) -> bool:
    return not event.fields["refused"] and event.fields["after"] in states


def _was_killed(played: Played, replica: str, until_s: float) -> bool:
    return any(
        fault.replica == replica and fault.do.value in {"kill", "term"}
        for fault in played.scenario.faults
        if fault.at_s is None or fault.at_s <= until_s
    )


INVARIANTS: Mapping[str, Callable[[Played], Iterator[str]]] = MappingProxyType(
    {
        "1 nothing acknowledged is lost": _nothing_acknowledged_is_lost,
        "2 one budget": _one_budget,
        "3 delivered means confirmed": _delivered_means_confirmed,
        "4 unknown stays unknown": _unknown_stays_unknown,
        "5 first one home counts": _first_one_home_counts,
        "6 no replica judges its own work by the clock": _no_replica_judges_its_own_work,
        "7 no flicker": _no_flicker,
        "8 same operation, same key, same bytes": _same_key_same_bytes,
    }
)
