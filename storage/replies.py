"""Reading replies: rows into markers, and refusals into what they mean to the caller.

A refusal is a value. It may be the echo of one's own first try whose reply was lost: the row
then carries one's own accept id, claim id or last claim id, and the write counts as done.
A row whose claim or lease cannot be read is still a marker, with None in that place; one that
lacks its state, destination, payload or identity is `BrokenMarker`.
"""

from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from storage.attributes import Attribute, Row
from storage.errors import BrokenMarker
from storage.marker import Draft, Marker
from storage.requests import DueCursor
from storage.states import State
from storage.transport import base

__all__ = [
    "AcceptReply",
    "Accepted",
    "ConfirmReply",
    "Confirmed",
    "DuePage",
    "Gone",
    "Mismatched",
    "Refused",
    "Replayed",
    "WriteReply",
    "Written",
    "read_accept",
    "read_confirm",
    "read_due",
    "read_found",
    "read_marker",
    "read_pass_end",
    "read_pass_hold",
    "read_write",
]


@dataclass(frozen=True, slots=True)
class Accepted:
    """The marker is durable and ours; after one's own lost reply it may have moved on."""

    marker: Marker


@dataclass(frozen=True, slots=True)
class Replayed:
    """The same operation was accepted before."""

    marker: Marker


@dataclass(frozen=True, slots=True)
class Mismatched:
    """The operation id belongs to a request with another fingerprint."""

    marker: Marker


@dataclass(frozen=True, slots=True)
class Written:
    """The write counts; `marker` is the result."""

    marker: Marker


@dataclass(frozen=True, slots=True)
class Refused:
    """The write did not happen; `marker` is what stood in the way, None if nothing is there."""

    marker: Marker | None


@dataclass(frozen=True, slots=True)
class Confirmed:
    """The marker is delivered; `first` tells whether this confirmation made it so."""

    first: bool


@dataclass(frozen=True, slots=True)
class Gone:
    """There is no such marker, and a confirmation creates none."""


@dataclass(frozen=True, slots=True)
class DuePage:
    """Operation ids due in one shard, oldest first; `after` continues, None ends."""

    operation_ids: tuple[str, ...]
    after: DueCursor | None


AcceptReply: TypeAlias = Accepted | Replayed | Mismatched
WriteReply: TypeAlias = Written | Refused
ConfirmReply: TypeAlias = Confirmed | Gone

_T = TypeVar("_T")


def read_accept(reply: base.Reply, draft: Draft) -> AcceptReply:
    """Tell a new marker, one's own lost reply, a replay and another request apart."""
    if isinstance(reply, base.Stored):
        return Accepted(read_marker(reply.row))
    marker = _present(_refusal(reply))
    if marker is None:
        raise BrokenMarker(f"operation {draft.operation_id}: refused, but no row was returned")
    if marker.accept_id == draft.accept_id:
        return Accepted(marker)
    if marker.fingerprint == draft.fingerprint:
        return Replayed(marker)
    return Mismatched(marker)


def read_pass_hold(reply: base.Reply, claim_id: str | None) -> WriteReply:
    """Read a claim, takeover or heartbeat: a row that carries our claim is ours."""
    result = read_write(reply)
    match result:
        case Refused(Marker(state=State.CLAIMED, claim_id=holder) as marker) if (
            holder is not None and holder == claim_id
        ):
            return Written(marker)
    return result


def read_pass_end(reply: base.Reply, claim_id: str | None, target: State) -> WriteReply:
    """Read a release, reject or park: the state we wrote under our own last claim is ours."""
    result = read_write(reply)
    match result:
        case Refused(Marker(state=state, last_claim_id=writer) as marker) if (
            state is target and writer is not None and writer == claim_id
        ):
            return Written(marker)
    return result


def read_write(reply: base.Reply) -> WriteReply:
    """Read a write that nothing of our own can be mistaken for."""
    if isinstance(reply, base.Stored):
        return Written(read_marker(reply.row))
    return Refused(_present(_refusal(reply)))


def read_confirm(reply: base.Reply) -> ConfirmReply:
    """Read a confirmation: the only refusals are "delivered already" and "nothing there"."""
    if isinstance(reply, base.Stored):
        return Confirmed(first=True)
    return Gone() if _present(_refusal(reply)) is None else Confirmed(first=False)


def read_found(reply: base.Reply, now_ms: int) -> Marker | None:
    """Read a row; one that has expired is absent, though the store may keep it for days."""
    assert isinstance(reply, base.FoundRow)
    marker = _present(reply.row)
    return None if marker is None or marker.is_expired(now_ms) else marker


def read_due(reply: base.Reply) -> DuePage:
    """Read a page of due operation ids."""
    assert isinstance(reply, base.FoundDue)
    return DuePage(reply.operation_ids, reply.after)


def read_marker(row: Row) -> Marker:
    """Read a row.

    Raises:
        BrokenMarker: The row lacks its state, destination, payload or identity.
    """
    state = _state(row)
    unknown = row.get(Attribute.UNKNOWN)
    return Marker(
        operation_id=_required(row, Attribute.OPERATION_ID, str),
        state=state,
        destination=_required(row, Attribute.DESTINATION, str),
        payload=_required(row, Attribute.PAYLOAD, bytes),
        fingerprint=_required(row, Attribute.FINGERPRINT, str),
        accept_id=_required(row, Attribute.ACCEPT_ID, str),
        created_at_ms=_required(row, Attribute.CREATED_AT_MS, int),
        updated_at_ms=_required(row, Attribute.UPDATED_AT_MS, int),
        claim_id=_optional(row, Attribute.CLAIM_ID, str),
        last_claim_id=_optional(row, Attribute.LAST_CLAIM_ID, str),
        lease_until_ms=_optional(row, Attribute.LEASE_UNTIL_MS, int),
        # An unreadable flag is read as unknown: only "known not delivered" permits the contrary.
        unknown=unknown if isinstance(unknown, bool) else state is not State.UNDELIVERED,
        due_at_ms=_optional(row, Attribute.DUE_AT, int),
        due_shard=_optional(row, Attribute.DUE_SHARD, str),
        attempts=_optional(row, Attribute.ATTEMPTS, int) or 0,
        passes=_optional(row, Attribute.PASSES, int) or 0,
        last_outcome=_optional(row, Attribute.LAST_OUTCOME, str),
        last_status=_optional(row, Attribute.LAST_STATUS, int),
        last_attempt_at_ms=_optional(row, Attribute.LAST_ATTEMPT_AT_MS, int),
        reason=_optional(row, Attribute.REASON, str),
        settled_at_ms=_optional(row, Attribute.SETTLED_AT_MS, int),
        expires_at_s=_optional(row, Attribute.EXPIRES_AT, int),
    )


def _refusal(reply: base.Reply) -> Row | None:
    assert isinstance(reply, base.NotStored)
    return reply.row


def _present(row: Row | None) -> Marker | None:
    return None if row is None else read_marker(row)


def _state(row: Row) -> State:
    text = _required(row, Attribute.STATE, str)
    try:
        return State(text)
    except ValueError:
        raise _broken(row, Attribute.STATE) from None


def _required(row: Row, attribute: Attribute, kind: type[_T]) -> _T:
    value = _optional(row, attribute, kind)
    if value is None:
        raise _broken(row, attribute)
    return value


def _optional(row: Row, attribute: Attribute, kind: type[_T]) -> _T | None:
    value = row.get(attribute)
    # bool is an int to Python, and is none here.
    return value if isinstance(value, kind) and not isinstance(value, bool) else None


def _broken(row: Row, attribute: Attribute) -> BrokenMarker:
    operation_id = row.get(Attribute.OPERATION_ID, "(no operation id)")
    return BrokenMarker(f"operation {operation_id}: {attribute} is missing or unreadable")
