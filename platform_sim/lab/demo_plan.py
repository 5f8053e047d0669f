"""Demo plan: the operations of the demo and what their receiver does, from one seed.

Times are for a ceiling of 3 s, a budget of 2.5 s and an attempt limit of 2 s: a tenth of the full
scale. Everything random is drawn here, so a seed replays the whole plan.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Planned", "plan"]

_REFUSAL = 422

_Steps = list[dict[str, Any]]

_FAST: _Steps = [{}]
_SLOW: _Steps = [{"delay_s": 5.0}]  # the answer comes after the ceiling; the effect too
# three attempts of 20 s and 6 s between them would need 66 s at full scale
_THREE_SLOW: _Steps = [{"delay_s": 2.2, "status": 503, "commit": "never"}] * 3 + [{}]
_COMMIT_THEN_HANG: _Steps = [{"commit": "before", "then": "hang"}]
_HANG_AGAIN: _Steps = [*_COMMIT_THEN_HANG, {"then": "hang", "replay": False}, {}]
_BUSY: _Steps = [{"status": 503}, {}]
# longer than the rest of the budget
_BUSY_FOR_LONG: _Steps = [{"status": 503, "headers": {"Retry-After": "3"}}, {}]
_REFUSE: _Steps = [{"status": _REFUSAL}]

_KINDS: Sequence[tuple[str, int, _Steps]] = (
    ("fast", 4, _FAST),
    ("slower than ceiling", 1, _SLOW),
    ("3 slow, then fast", 1, _THREE_SLOW),
    ("commits, hangs", 1, _COMMIT_THEN_HANG),
    ("commits, hangs twice", 1, _HANG_AGAIN),
    ("503, recovers", 1, _BUSY),
    ("503, Retry-After", 1, _BUSY_FOR_LONG),
    ("422, refuses", 1, _REFUSE),
)
_VICTIMS: Sequence[tuple[str, _Steps]] = (
    ("killed pre-commit", [{"delay_s": 1.5}, {}]),
    ("killed post-commit", [{"delay_s": 1.5, "commit": "before"}, {}]),
    ("killed, no commit", [{"delay_s": 1.5, "commit": "never"}, {}]),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """One operation to send.

    Attributes:
        name: Number and kind, for people.
        key: The client's idempotency key.
        payload: Carries the receiver's script.
        pause_s: Seconds the client waits before it sends.
        victim: Whether the web process is killed while it is being delivered.
    """

    name: str
    key: str
    payload: dict[str, Any]
    pause_s: float
    victim: bool = False


def plan(seed: int) -> list[Planned]:
    """Return the operations in the order in which they are sent; victims come last."""
    draw = random.Random(seed)  # noqa: S311  a replayable choice, not a secret
    kinds = [(kind, steps) for kind, count, steps in _KINDS for _ in range(count)]
    draw.shuffle(kinds)
    victims = list(_VICTIMS)
    draw.shuffle(victims)
    chosen = [(kind, steps, False) for kind, steps in kinds]
    chosen += [(kind, steps, True) for kind, steps in victims]
    return [
        Planned(
            name=f"{number:02d} {kind}",
            key=f"demo-{seed}-{number}",
            payload={"order": draw.randrange(10_000), "receiver": steps},
            pause_s=round(draw.uniform(0.0, 0.15), 3),
            victim=victim,
        )
        for number, (kind, steps, victim) in enumerate(chosen, 1)
    ]
