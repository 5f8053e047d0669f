"""The oracle of a model world: the promises, checked at every event of the story as it is told.

It knows the words of the design and none of the product's code. The numbers in the texts are those
of the promises:

1 nothing acknowledged is lost · 2 one budget · 3 delivered means confirmed · 4 unknown stays
unknown · 5 first one home counts, a failure never erases a result · 6 leases are for judging
others · 7 no flicker · 8 same operation, same key, same bytes.

Where the design allows a repeat (a lease that fires while its pass still works) the doubled effect
is excused only at receivers that can merely be asked; one that is declared idempotent, and one of
which nothing is known, must never see it.
"""

import asyncio
import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from platform_sim.lab.scenario.story import Story, StoryEvent
from platform_sim.world.clocks import EPOCH_MS
from platform_sim.world.ledger import WireRequest
from tests.support.model_promised import MOVES, PassSeen, Promised

__all__ = ["Oracle"]

# Two clocks that differ by less than 50 ms are taken to agree; the design leaves the figure open.
_EPSILON_S = 0.06
_WAITING = frozenset({"undelivered", "uncertain"})
_OWN_ENDS = frozenset({"release", "reject", "park"})


class Oracle:
    """Watches a story and writes down what breaks a promise.

    Attributes:
        broken: What was seen, in words.
        ever_unknown: Operations of which anything was ever unknown.
        early: Operations whose lease fired while their pass could still work.
        confirmed: Operations that a receiver confirmed, in a reply or a lookup.
    """

    def __init__(self, story: Story, promised: Promised, skew_s: Callable[[str], float]) -> None:
        self.broken: list[str] = []
        self.ever_unknown: set[str] = set()
        self.early: set[str] = set()
        self.confirmed: set[str] = set()
        self.refused: set[str] = set()
        self.attempts: Counter[str] = Counter()
        self.effects: Counter[tuple[str, str]] = Counter()
        self.passes: dict[str, PassSeen] = {}
        self.dead: set[str] = set()
        self.frozen: set[str] = set()
        self.rows: dict[str, Mapping[str, Any]] = {}
        self._promised = promised
        self._skew_s = skew_s
        self._by_task: dict[Any, PassSeen] = {}
        self._checks: Mapping[str, Callable[[StoryEvent], None]] = {
            "write": self._write,
            "pass_started": self._pass_started,
            "attempt_started": self._attempt_started,
            "attempt_ended": self._attempt_ended,
            "byte_left": self._byte_left,
            "looked_up": self._looked_up,
            "taken_over": self._taken_over,
            "lease_lost": self._lease_lost,
            "settled": self._pass_over,
            "write_refused": self._pass_over,
            "settle_failed": self._pass_over,
            "committed": self._committed,
            "answer": self._answer,
            "run_ended": self._run_ended,
            "pass_failed": self._defect,
            "redrive_failed": self._redrive_failed,
            "platform_app_failed": self._defect,
        }
        story.listeners.append(self.listen)

    def listen(self, event: StoryEvent) -> None:
        """Check one event."""
        check = self._checks.get(event.kind)
        if check is not None:
            check(event)

    def says(self, promise: int, event: StoryEvent, text: str) -> None:
        """Write down a broken promise."""
        self.broken.append(
            f"promise {promise} at {event.at_s:.3f} s: {event.operation_id or ''} {text}"
        )

    def disturb(self, source: str, *, frozen_s: float = 0.0, set_back_s: float = 0.0) -> None:
        """Note that a replica stood still, or that its wall clock was set back."""
        for seen in self.passes.values():
            if seen.source == source:
                seen.frozen_s += frozen_s
                seen.set_back_s += set_back_s

    def judge_rest(
        self, rows: Mapping[str, Mapping[str, Any]], wire: Iterable[WireRequest]
    ) -> None:
        """Judge what is left once all is healed and redrive has come to rest."""
        self._judge_wire(rows, wire)
        for operation_id, row in rows.items():
            destination, state = row["destination"], row["state"]
            effects = self.effects[destination, operation_id]
            wrong = {
                "delivered": effects == 0,
                "rejected": operation_id not in self.refused
                or (effects > 0 and operation_id not in self.early),
                "parked": not row.get("reason"),
            }
            if wrong.get(state, True):
                self.broken.append(f"promise 1: {operation_id} rests {state}, {effects} effects")

    def _judge_wire(
        self, rows: Mapping[str, Mapping[str, Any]], wire: Iterable[WireRequest]
    ) -> None:
        arrived: Counter[str] = Counter()
        for request in wire:
            arrived[request.key] += 1
            row = rows.get(request.key)
            if row is None:
                self.broken.append(f"promise 8: a request carried the key {request.key} of nobody")
            elif request.body_sha256 != hashlib.sha256(row["payload"]).hexdigest():
                self.broken.append(f"promise 8: {request.key} was sent with other bytes")
        for key, count in arrived.items():
            if count > self.attempts[key]:
                self.broken.append(f"promise 2: {key}: {count} requests, {self.attempts[key]} made")

    # Writes.

    def _write(self, event: StoryEvent) -> None:
        if event.fields["refused"] or event.operation_id is None:
            return
        name: str = event.fields["event"]
        before: Mapping[str, Any] = event.fields["row_before"]
        after: Mapping[str, Any] = event.fields["row_after"]
        self.rows[event.operation_id] = after
        move = (before.get("state"), after["state"])
        if move not in MOVES[name]:
            self.says(5, event, f"{name} moved it from {move[0]} to {move[1]}")
        owed = after["state"] in _WAITING | {"claimed"}
        if owed != ("due_at" in after and "due_shard" in after):
            self.says(1, event, f"is {after['state']} and {'not ' * owed}in the due index")
        first = ("payload", "destination")
        changed = [each for each in first if before.get(each, after[each]) != after[each]]
        if changed:
            self.says(8, event, f"{name} changed {changed}")
        match name:
            case "accept" | "claim" | "takeover":
                self._claimed(event, name, before, after)
            case "confirm":
                if event.operation_id not in self.confirmed:
                    self.says(3, event, "became delivered unconfirmed")
            case "heartbeat":
                if after["lease_until_ms"] < before["lease_until_ms"]:
                    self.says(6, event, "a heartbeat shortened the lease")
            case _:
                self._ended(event, name, before, after)

    def _claimed(
        self, event: StoryEvent, name: str, before: Mapping[str, Any], after: Mapping[str, Any]
    ) -> None:
        operation_id, writer_ms = str(event.operation_id), after["updated_at_ms"]
        if name == "claim" and before["due_at"] > writer_ms:
            self.says(4, event, f"was claimed {before['due_at'] - writer_ms} ms before it was due")
        if name == "takeover":
            self._superseded(event, before, writer_ms)
        if not after["unknown"] and (name == "takeover" or before.get("state") == "uncertain"):
            self.says(4, event, f"the {name} forgot that it may have been delivered")
        if after["unknown"]:
            self.ever_unknown.add(operation_id)
        claim_id = after.get("claim_id")
        if claim_id is not None:
            self.passes[claim_id] = PassSeen(
                claim_id=claim_id,
                source=event.source,
                operation_id=operation_id,
                unknown=after["unknown"],
                inherited=after["unknown"],
                from_claim_id=before.get("claim_id"),
            )

    def _superseded(self, event: StoryEvent, before: Mapping[str, Any], writer_ms: int) -> None:
        over_for_ms = writer_ms - before["lease_until_ms"]
        if over_for_ms < self._promised.skew_margin_s * 1000:
            self.says(6, event, f"was taken over {over_for_ms} ms after its lease's end")
        lost = self.passes.get(before["claim_id"])
        if lost is None or not (lost.over or lost.source in self.dead):
            self.early.add(str(event.operation_id))
        at_work = lost is not None and lost.begun_s is not None and not lost.over
        if lost is not None and at_work and lost.source == event.source:
            self.says(6, event, f"{event.source} took over its own pass {lost.claim_id}")

    def _ended(
        self, event: StoryEvent, name: str, before: Mapping[str, Any], after: Mapping[str, Any]
    ) -> None:
        writer, holder = after.get("last_claim_id"), before.get("claim_id")
        if writer != holder:
            self.says(5, event, f"{writer} wrote {name} under the claim {holder} of another")
        seen = self.passes.get(str(writer))
        if seen is None:
            self.says(5, event, f"{name} under the claim {writer}, which nobody won")
            return
        unknown = seen.unknown or seen.in_flight
        if after["state"] == "undelivered" and unknown:
            self.says(4, event, "was written as not delivered while unknown")
        if after["state"] == "uncertain":
            self.ever_unknown.add(seen.operation_id)
        destination = after["destination"]
        if name == "reject":
            if "rejected" not in seen.outcomes:
                self.says(3, event, "was rejected without a refusal")
            if unknown and destination not in self._promised.idempotent:
                self.says(4, event, "was rejected while unknown")
        if name == "park" and not self._may_park(seen, after, destination, unknown=unknown):
            self.says(1, event, f"was parked without need: {after.get('reason')}")
        if name == "park" and not after.get("reason"):
            self.says(1, event, "was parked without a reason")

    def _may_park(
        self, seen: PassSeen, after: Mapping[str, Any], destination: str, *, unknown: bool
    ) -> bool:
        promised = self._promised
        age_s = (after["updated_at_ms"] - after["created_at_ms"]) / 1000
        if after["passes"] >= promised.max_passes or age_s > promised.max_age_s - 3600:
            return True
        if not unknown:
            return False
        if "rejected" in seen.outcomes and destination not in promised.idempotent:
            return True
        if destination in promised.lookup:
            return False
        return destination not in promised.idempotent or age_s >= (
            promised.window_s - promised.margin_s
        )

    # Passes.

    def _pass_started(self, event: StoryEvent) -> None:
        seen = self.passes.get(event.fields["claim_id"])
        if seen is None or seen.begun_s is not None:
            self.says(5, event, f"a pass began under {event.fields['claim_id']}, not a fresh claim")
            return
        seen.begun_s = event.at_s
        seen.frozen_s = seen.set_back_s = 0.0
        self._by_task[asyncio.current_task()] = seen
        if seen.unknown and not event.fields["unknown"]:
            self.says(4, event, "a pass began without what its claim says is unknown")

    def _attempt_started(self, event: StoryEvent) -> None:
        seen = self.passes.get(event.fields["claim_id"])
        if seen is None or seen.begun_s is None:
            return
        seen.started_s = event.at_s
        self.attempts[seen.operation_id] += 1
        spent_s = event.at_s - seen.begun_s - seen.set_back_s
        promised = self._promised
        if spent_s >= promised.budget_s - promised.reserve_s + _EPSILON_S:
            self.says(2, event, f"an attempt began {spent_s:.3f} s into its pass")
        if seen.source in self.dead or seen.source in self.frozen:
            self.says(2, event, f"an attempt began on {seen.source}, which does not run")
        if seen.lease_lost:
            self.says(6, event, "an attempt began after the pass knew that its lease was lost")
        self._may_send(event, seen)

    def _may_send(self, event: StoryEvent, seen: PassSeen) -> None:
        if not seen.unknown or seen.is_in_progress_only():
            return
        destination: str = event.fields["destination"]
        if destination not in self._promised.idempotent:
            self.says(4, event, f"was sent again to {destination} while unknown")
            return
        age_s = self._age_s(event, seen)
        if age_s >= self._promised.window_s - self._promised.margin_s + _EPSILON_S:
            self.says(4, event, f"was sent again {age_s:.1f} s after its acceptance while unknown")

    def _age_s(self, event: StoryEvent, seen: PassSeen) -> float:
        created_s: float = self.rows[seen.operation_id]["created_at_ms"] / 1000 - EPOCH_MS / 1000
        return event.at_s + self._skew_s(seen.source) - created_s

    def _byte_left(self, event: StoryEvent) -> None:
        seen = self._by_task.get(asyncio.current_task())
        if seen is not None and event.operation_id == seen.operation_id:
            seen.in_flight = True
            self.ever_unknown.add(seen.operation_id)

    def _attempt_ended(self, event: StoryEvent) -> None:
        seen = self.passes.get(event.fields["claim_id"])
        if seen is None or seen.begun_s is None or seen.started_s is None:
            return
        outcome: str = event.fields["outcome"]
        if seen.in_flight and outcome == "undelivered" and event.fields["status"] is None:
            self.says(4, event, "a byte left, no answer came, and it counts as not delivered")
        seen.in_flight = False
        seen.outcomes.append(outcome)
        if outcome in {"uncertain", "in_progress"}:
            seen.unknown = True
        if outcome == "delivered":
            self.confirmed.add(seen.operation_id)
        if outcome == "rejected":
            self.refused.add(seen.operation_id)
        promised = self._promised
        excused_s = seen.frozen_s + seen.set_back_s
        took_s = event.at_s - seen.started_s - excused_s
        spent_s = event.at_s - seen.begun_s - excused_s
        limit_s = promised.budget_s - promised.reserve_s + _EPSILON_S
        if took_s > promised.attempt_limit_s + _EPSILON_S or spent_s > limit_s:
            self.says(2, event, f"an attempt took {took_s:.3f} s, to {spent_s:.3f} s of its pass")

    def _looked_up(self, event: StoryEvent) -> None:
        if event.fields["finding"] == "found":
            self.confirmed.add(str(event.operation_id))
        if event.fields["finding"] == "absent":
            self._absent()

    def _absent(self) -> None:
        seen = self._by_task.get(asyncio.current_task())
        if seen is not None:
            seen.unknown = seen.inherited = False
            seen.outcomes.clear()

    def _taken_over(self, event: StoryEvent) -> None:
        seen = self.passes.get(event.fields["claim_id"])
        if seen is not None and seen.from_claim_id != event.fields["from_claim_id"]:
            judged = event.fields["from_claim_id"]
            self.says(7, event, f"{judged} was judged lost, {seen.from_claim_id} was taken over")

    def _lease_lost(self, event: StoryEvent) -> None:
        seen = self.passes.get(event.fields["claim_id"])
        if seen is not None:
            seen.lease_lost = True

    def _pass_over(self, event: StoryEvent) -> None:
        seen = self.passes.get(event.fields["claim_id"])
        if seen is None or seen.begun_s is None:
            return
        seen.over = True
        took_s = event.at_s - seen.begun_s - seen.frozen_s - seen.set_back_s
        if took_s > self._promised.budget_s + self._promised.reserve_s + _EPSILON_S:
            self.says(2, event, f"a pass took {took_s:.3f} s")

    # The world outside.

    def _committed(self, event: StoryEvent) -> None:
        operation_id, receiver = str(event.operation_id), event.source.removeprefix("receiver:")
        self.effects[receiver, operation_id] += 1
        count = self.effects[receiver, operation_id]
        row = self.rows.get(operation_id)
        if row is None:
            self.says(8, event, f"{receiver} had an effect under a key of no marker")
        excused = receiver in self._promised.lookup and operation_id in self.early
        if count > 1 and not excused:
            self.says(8, event, f"had {count} effects at {receiver}")

    def _answer(self, event: StoryEvent) -> None:
        status, stored = event.fields["status"], event.fields["stored"]
        same: bool = event.fields["same"]
        if status == 202 and not stored:
            self.says(1, event, "was acknowledged and is not stored")
        elif status == 202 and not same:
            self.says(8, event, "was acknowledged in place of another request")
        elif status == 422 and (same or not stored):
            self.says(1, event, "was refused as another request and is none")
        elif status not in {None, 202, 422, 503, 504}:  # 504: the platform's own answer limit
            self.says(1, event, f"was answered with {status}")

    def _run_ended(self, event: StoryEvent) -> None:
        if event.fields["error"] is not None:
            self.says(1, event, f"a redrive run failed: {event.fields['error']}")

    def _redrive_failed(self, event: StoryEvent) -> None:
        reason = str(event.fields["reason"])
        if not reason.startswith(("store: ", "no time")):
            self._defect(event)

    def _defect(self, event: StoryEvent) -> None:
        self.says(1, event, f"{event.kind} on {event.source}: {dict(event.fields)}")
