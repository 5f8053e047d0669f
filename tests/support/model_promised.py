"""What the oracle of a model world goes by: legal moves, promises, what is known of a pass."""

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["MOVES", "PassSeen", "Promised"]

# What may follow what, by one write.
MOVES: Mapping[str, frozenset[tuple[str | None, str]]] = {
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Promised:
    """What was promised about passes and receivers; durations in seconds.

    Attributes:
        idempotent, lookup: Names of the receivers that are declared so.
        window_s, margin_s: The idempotent ones' dedupe window, and the margin kept from its end.
    """

    budget_s: float
    reserve_s: float
    attempt_limit_s: float
    skew_margin_s: float
    max_passes: int
    max_age_s: float
    idempotent: frozenset[str]
    lookup: frozenset[str]
    window_s: float
    margin_s: float


@dataclass(slots=True, kw_only=True)
class PassSeen:
    """What is known of one claim and its pass.

    Attributes:
        unknown: Something sent under this or an earlier claim may have been delivered.
        inherited: It was so when the claim was won.
        from_claim_id: The claim it took over.
        frozen_s, set_back_s: How long its replica stood still, and its wall clock was set back.
        outcomes: What its attempts came to.
        in_flight: A byte of the attempt under way may have left.
    """

    claim_id: str
    source: str
    operation_id: str
    unknown: bool
    inherited: bool
    from_claim_id: str | None = None
    begun_s: float | None = None
    started_s: float | None = None
    frozen_s: float = 0.0
    set_back_s: float = 0.0
    over: bool = False
    lease_lost: bool = False
    in_flight: bool = False
    outcomes: list[str] = field(default_factory=list)

    def is_in_progress_only(self) -> bool:
        """Whether the receiver's own word that it is at work is the only unknown."""
        said = "in_progress" in self.outcomes and "uncertain" not in self.outcomes
        return said and not self.inherited
