"""Expectations as a scenario file writes them: what must be so, of one operation or of all.

Not here: judging them (`judge`).
"""

from collections.abc import Mapping
from typing import Literal

from platform_sim.lab.scenario.table import Instant, Name, Number, Positive, Table

__all__ = ["Expect", "Totals"]


class Expect(Table, frozen=True, kw_only=True):
    """What must be so of one operation, or of each that a pattern names.

    Attributes:
        operation: A request's name; `*` stands for any characters.
        at_s: When it must be so; at the end when left out.
        state: The marker's state; `absent` when there must be none.
        attempts: The marker's count of attempts, also those that a lost pass may have made.
        passes: The marker's count of passes.
        unknown: Whether it may have been delivered.
        last_status: The receiver's last status.
        last_outcome: What the last attempt came to.
        reason: A part of the marker's reason.
        wire: Requests in the receiver's ledger.
        sent: Attempts of which a byte left the sender.
        effects: What the receiver really did.
        claims: Claims and takeovers that were won.
        refused_writes: Settling writes and heartbeats that were refused.
        answers: The statuses its clients got, in order; `dropped` where there was none.
        answer_states: The states those answers told.
        attempt_starts_s: When its attempts began, within 0.05 s.
        attempt_ends_s: When they ended, within 0.05 s.
        outcomes: What its attempts came to, in order; `cut` where the pass ended first.
        history: The states its marker went into, in order.
        settled_at_s: When it was settled, within 0.05 s.
        due_at_s: When it is due next, within 0.05 s.
    """

    operation: Name
    at_s: Instant | None = None
    state: str | None = None
    attempts: Number | None = None
    passes: Number | None = None
    unknown: bool | None = None
    last_status: Number | None = None
    last_outcome: str | None = None
    reason: str | None = None
    wire: Number | None = None
    sent: Number | None = None
    effects: Number | None = None
    claims: Number | None = None
    refused_writes: Number | None = None
    answers: tuple[int | Literal["dropped"], ...] | None = None
    answer_states: tuple[str, ...] | None = None
    attempt_starts_s: tuple[float, ...] | None = None
    attempt_ends_s: tuple[float, ...] | None = None
    outcomes: tuple[str, ...] | None = None
    history: tuple[str, ...] | None = None
    settled_at_s: Number | None = None
    due_at_s: Number | None = None


class Totals(Table, frozen=True, kw_only=True):
    """What must be so of everything together.

    Attributes:
        at_s: When; at the end when left out.
        operations: Acknowledged operations.
        rows: Stored markers.
        states: How many operations are in each state.
        wire: Requests in all ledgers.
        sent: Attempts of which a byte left the sender.
        effects: Effects at all receivers.
        counts: How often an action was told (`turned_away`, `claim_lost`, ...).
        wire_peak: The most requests that all receivers together saw in `wire_peak_window_s`.
        wire_peak_window_s: How long that window is.
        due_peak: The most markers that are due in one `due_peak_window_s`.
        due_peak_window_s: How long that window is.
        startup: Whether the app started: `complete` or `refused`.
        startup_says: A part of the message with which it refused.
    """

    at_s: Instant | None = None
    operations: Number | None = None
    rows: Number | None = None
    states: Mapping[str, Number] = {}
    wire: Number | None = None
    sent: Number | None = None
    effects: Number | None = None
    counts: Mapping[str, Number] = {}
    wire_peak: Number | None = None
    wire_peak_window_s: Positive = 60.0
    due_peak: Number | None = None
    due_peak_window_s: Positive = 1.0
    startup: Literal["complete", "refused"] | None = None
    startup_says: str | None = None
