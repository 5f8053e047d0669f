"""Removals: each takes one guard of the promises away, in this process and until the test ends.

Only the one condition or line that is the guard is replaced; no file is changed.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from handler import accept, attempt, delivery, reconcile, verdict
from handler.attempt import Attempt
from handler.budget import Deadline
from handler.destinations import Destination, Operation
from handler.heartbeat import Hold
from handler.outcome import Outcome
from handler.problems import Problem
from handler.reconcile import Permit
from handler.sender import Request
from handler.verdict import PassLog, Verdict, VerdictKind
from storage import conditions, lease, replies
from storage.attributes import Attribute
from storage.builders import RequestBuilder
from storage.changes import Set
from storage.conditions import AllOf
from storage.marker import Claim, Draft, Marker
from storage.replies import Accepted, AcceptReply, Mismatched, Replayed
from storage.requests import UpdateMarker
from storage.states import TRANSITIONS, Event, Guard, State

__all__ = [
    "Remove",
    "acknowledged_before_written",
    "always_send",
    "any_fingerprint",
    "changed_request",
    "confirm_delivered_again",
    "cut_is_not_sent",
    "cut_pass_forgets",
    "last_attempt_decides",
    "monotonic_alone",
    "never_lost",
    "no_reserve",
    "no_skew_margin",
    "no_window_margin",
    "other_bytes",
    "other_key",
    "own_reply_unknown",
    "takeover_any_lease",
    "takeover_keeps_unknown",
    "without_guard",
]

Remove = Callable[[pytest.MonkeyPatch], None]


def without_guard(event: Event, guard: Guard) -> Remove:
    """Take a guard from one event's row of the transition table, for the conditions alone."""

    def remove(patch: pytest.MonkeyPatch) -> None:
        row = TRANSITIONS[event]
        kept = tuple(each for each in row.guards if each is not guard)
        patch.setattr(conditions, "TRANSITIONS", {**TRANSITIONS, event: replace(row, guards=kept)})

    return remove


def confirm_delivered_again(patch: pytest.MonkeyPatch) -> None:
    """Let a confirmation find `delivered` and write again."""
    row = replace(TRANSITIONS[Event.CONFIRM], sources=frozenset(State))
    patch.setattr(conditions, "TRANSITIONS", {**TRANSITIONS, Event.CONFIRM: row})


def takeover_keeps_unknown(patch: pytest.MonkeyPatch) -> None:
    """Let a takeover leave `unknown` as it was."""
    whole = RequestBuilder.takeover

    def takeover(self: RequestBuilder, seen: Marker, claim: Claim, *, now_ms: int) -> UpdateMarker:
        request = whole(self, seen, claim, now_ms=now_ms)
        kept = tuple(
            change
            for change in request.changes
            if not (isinstance(change, Set) and change.attribute is Attribute.UNKNOWN)
        )
        return replace(request, changes=kept)

    patch.setattr(RequestBuilder, "takeover", takeover)


def no_skew_margin(patch: pytest.MonkeyPatch) -> None:
    """Let a lease be over the instant it ends."""

    def bound_ms(now_ms: int, _skew_margin_s: float) -> int:
        return now_ms

    patch.setattr(lease, "lease_over_bound_ms", bound_ms)
    patch.setattr(conditions, "lease_over_bound_ms", bound_ms)


def never_lost(patch: pytest.MonkeyPatch) -> None:
    """Let no pass ever know that its lease is lost."""
    patch.setattr(Hold, "lost", property(lambda _: False, lambda _, __: None), raising=False)


def own_reply_unknown(patch: pytest.MonkeyPatch) -> None:
    """Let a refused claim be another's, whatever claim id the row carries."""
    patch.setattr(replies, "read_pass_hold", lambda reply, _claim_id: replies.read_write(reply))


def no_reserve(patch: pytest.MonkeyPatch) -> None:
    """Let attempts spend the slice that is kept for settling."""
    patch.setattr(Deadline, "for_work_s", Deadline.remaining_s)


def monotonic_alone(patch: pytest.MonkeyPatch) -> None:
    """Let a deadline look at monotonic time only."""
    patch.setattr(Deadline, "remaining_s", lambda self: self.at_s - self.clock.monotonic_s())


def changed_request(change: Callable[[Request, Operation], Request]) -> Remove:
    """Change what the second and later attempts send."""

    def remove(patch: pytest.MonkeyPatch) -> None:
        first = attempt.request_for

        def request_for(operation: Operation, destination: Destination) -> Request:
            request = first(operation, destination)
            return request if operation.attempt == 1 else change(request, operation)

        patch.setattr(attempt, "request_for", request_for)

    return remove


def other_key(request: Request, operation: Operation) -> Request:
    """Make up a key for each attempt."""
    key = f"{operation.operation_id}-{operation.attempt}"
    return replace(request, headers={**request.headers, "idempotency-key": key})


def other_bytes(request: Request, _operation: Operation) -> Request:
    """Send other bytes that mean the same."""
    return replace(request, body=(request.body or b"") + b" ")


def cut_is_not_sent(patch: pytest.MonkeyPatch) -> None:
    """Let an attempt that its deadline cuts count as not sent."""
    not_sent = attempt._cut
    patch.setattr(
        attempt, "_cut", lambda trace, cap_s: not_sent(replace(trace, byte_left=False), cap_s)
    )


def cut_pass_forgets(patch: pytest.MonkeyPatch) -> None:
    """Let a pass that is cut forget the attempt in flight."""

    def when_cut(self: PassLog, reason: str = "the pass was cut") -> Verdict:
        return self.verdict or Verdict(kind=VerdictKind.RELEASE, reason=reason)

    patch.setattr(verdict.PassLog, "when_cut", when_cut)


def last_attempt_decides(patch: pytest.MonkeyPatch) -> None:
    """Let the last attempt alone say whether something is unknown."""

    def ended(self: PassLog, made: Attempt) -> None:
        self.in_flight = None
        self.attempts.append(made)
        self.unknown = made.outcome in {Outcome.UNCERTAIN, Outcome.IN_PROGRESS}

    patch.setattr(verdict.PassLog, "ended", ended)


def always_send(patch: pytest.MonkeyPatch) -> None:
    """Let every pass send, whatever is unknown."""
    patch.setattr(delivery, "permit", lambda *_, **__: Permit.SEND)


def no_window_margin(patch: pytest.MonkeyPatch) -> None:
    """Let a key be sent again to the last instant of the dedupe window."""
    whole = reconcile.dedupe_ends_ms

    def ends_ms(destination: Destination, *, created_at_ms: int, margin_s: float) -> int:
        return whole(destination, created_at_ms=created_at_ms, margin_s=0 * margin_s)

    patch.setattr(reconcile, "dedupe_ends_ms", ends_ms)


def any_fingerprint(patch: pytest.MonkeyPatch) -> None:
    """Let another request under a key be a replay."""
    whole = replies.read_accept

    def read_accept(reply: Any, draft: Draft) -> AcceptReply:
        read = whole(reply, draft)
        return Replayed(read.marker) if isinstance(read, Mismatched) else read

    patch.setattr(replies, "read_accept", read_accept)


def acknowledged_before_written(patch: pytest.MonkeyPatch) -> None:
    """Let a 202 follow a write that failed."""
    whole = accept.Acceptor._write

    async def write(self: accept.Acceptor, draft: Draft, claim: Claim | None) -> AcceptReply:
        try:
            return await whole(self, draft, claim)
        except Problem:
            now_ms = self.clock.wall_ms()
            return Accepted(
                Marker(
                    operation_id=draft.operation_id,
                    state=State.UNDELIVERED,
                    destination=draft.destination,
                    payload=draft.payload,
                    fingerprint=draft.fingerprint,
                    accept_id=draft.accept_id,
                    created_at_ms=now_ms,
                    updated_at_ms=now_ms,
                )
            )

    patch.setattr(accept.Acceptor, "_write", write)


def takeover_any_lease(patch: pytest.MonkeyPatch) -> None:
    """Let the store take a claim over whose lease is not over."""
    patch.setattr(
        conditions, "_GUARDS", {**conditions._GUARDS, Guard.LEASE_OVER: lambda _: AllOf(())}
    )
