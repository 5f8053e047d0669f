"""Places: how many inline passes this process has promised, bounded.

Rules: a place is taken when an operation is accepted, not when the platform first runs its pass,
so a burst of accepts cannot pass the bound. It is given back when the pass ends. A pass that was
killed gives nothing back: its place is free once its deadline is over.
"""

from handler.budget import Deadline

__all__ = ["Places"]


class Places:
    """The places of one process.

    Args:
        most: How many there are.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken: dict[str, Deadline] = {}

    def take(self, claim_id: str, deadline: Deadline) -> bool:
        """Take a place for the pass of a claim; False when all are taken."""
        # What is over is looked for only when it matters: an accept must not cost a walk.
        if len(self._taken) >= self._most and self.taken() >= self._most:
            return False
        self._taken[claim_id] = deadline
        return True

    def give_back(self, claim_id: str) -> None:
        """Free the place of a claim, if it has one."""
        self._taken.pop(claim_id, None)

    def taken(self) -> int:
        """Return how many places are taken by passes whose deadline is not over."""
        over = [claim for claim, deadline in self._taken.items() if deadline.remaining_s() <= 0]
        for claim_id in over:
            del self._taken[claim_id]
        return len(self._taken)
