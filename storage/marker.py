"""The marker: the durable record that an operation is owed, and what is said to change it.

Plain data. Times are integers, epoch milliseconds unless a name ends in `_s`. How a marker is
read from a row is in `replies`, which rows it may become is in `states`.
"""

from dataclasses import dataclass

from storage.states import State

__all__ = ["Claim", "Draft", "Marker", "Settlement"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """One operation's record as the store holds it.

    Attributes:
        operation_id: The caller's intent, stable for ever; also the idempotency key.
        state: Where the operation stands.
        destination: Name of the configured destination.
        payload: First body; every resend carries exactly these bytes.
        fingerprint: Digest that tells a replay from another request under the same id.
        accept_id: Which accept wrote the marker; recognises one's own lost reply.
        created_at_ms: When it was accepted.
        updated_at_ms: Last write other than a heartbeat.
        claim_id: Claim that holds it; None when there is none or it cannot be read.
        last_claim_id: Claim that last released, rejected or parked it.
        lease_until_ms: End of the claim's lease; None when missing or unreadable.
        unknown: An earlier attempt may have been delivered.
        due_at_ms: Next try, or the end of the lease; None while settled.
        due_shard: Part of the due index; None while settled.
        attempts: Attempts of all passes so far; a lost pass counts as one.
        passes: Passes that began.
        last_outcome: Outcome of the last attempt, in the handler's words.
        last_status: HTTP status of the last attempt.
        last_attempt_at_ms: When the last attempt ended.
        reason: Why it was rejected or parked.
        settled_at_ms: When it became settled.
        expires_at_s: Epoch seconds from which a settled marker counts as absent.
    """

    operation_id: str
    state: State
    destination: str
    payload: bytes
    fingerprint: str
    accept_id: str
    created_at_ms: int
    updated_at_ms: int
    claim_id: str | None = None
    last_claim_id: str | None = None
    lease_until_ms: int | None = None
    unknown: bool = False
    due_at_ms: int | None = None
    due_shard: str | None = None
    attempts: int = 0
    passes: int = 0
    last_outcome: str | None = None
    last_status: int | None = None
    last_attempt_at_ms: int | None = None
    reason: str | None = None
    settled_at_ms: int | None = None
    expires_at_s: int | None = None

    def is_expired(self, now_ms: int) -> bool:
        """Tell whether the marker counts as absent; the store's own deletion lags by days."""
        return self.expires_at_s is not None and self.expires_at_s * 1000 <= now_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """An operation about to be accepted; the fields are the marker's."""

    operation_id: str
    accept_id: str
    destination: str
    payload: bytes
    fingerprint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A pass's right to work on an operation.

    Attributes:
        claim_id: Unique for each pass of each replica.
        lease_s: Seconds after which others may judge the pass lost.
    """

    claim_id: str
    lease_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """What a pass has to add to the record when it ends.

    Attributes:
        attempts: How many attempts this pass made; added to the marker's.
        passes: Added to the marker's passes: -1 takes back a pass that never began, so that
            claims handed back unstarted do not use up the limit on passes.
        last_outcome: Outcome of its last attempt; None keeps what is stored.
        last_status: HTTP status of that attempt; with an outcome, None means it brought none.
        last_attempt_at_ms: When that attempt ended; None keeps what is stored.
    """

    attempts: int = 0
    passes: int = 0
    last_outcome: str | None = None
    last_status: int | None = None
    last_attempt_at_ms: int | None = None
