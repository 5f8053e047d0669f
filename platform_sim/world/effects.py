"""Effects: what a receiver has really done, by key, and what a repeat of a key means.

With dedupe a key is remembered from the moment its effect is certain to come (or has come) until
its window has passed; while it is remembered it has one effect. Without dedupe every commit is one
more effect.

Replies are not here: see `receiver`.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Effects", "Known", "Lookup"]


class Lookup(StrEnum):
    """What became of a key, as an honest lookup endpoint says it."""

    FOUND = "found"
    IN_PROGRESS = "in_progress"
    ABSENT = "absent"


class Known(StrEnum):
    """What a repeat of a remembered key is."""

    DONE = "done"
    IN_PROGRESS = "in_progress"
    MISMATCHED = "mismatched"  # the key came with another body


@dataclass(frozen=True, slots=True, kw_only=True)
class _Memory:
    body_sha256: str
    done_at_ms: int | None = None
    lost_at_ms: int | None = None
    window_s: float | None = None


class Effects:
    """Effects done and under way.

    Args:
        now_ms: Wall clock, epoch milliseconds.
        on_commit: Told of each effect's key when it becomes real.
    """

    def __init__(
        self, now_ms: Callable[[], int], *, on_commit: Callable[[str], None] | None = None
    ) -> None:
        self.counts: Counter[str] = Counter()
        self._now_ms = now_ms
        self._on_commit = on_commit
        self._coming: Counter[str] = Counter()
        self._memory: dict[str, _Memory] = {}

    def lookup(self, key: str) -> Lookup:
        """Say what became of `key`."""
        if self.counts[key]:
            return Lookup.FOUND
        return Lookup.IN_PROGRESS if self._coming[key] else Lookup.ABSENT

    def recall(self, key: str, body_sha256: str) -> Known | None:
        """Say what a request with `key` repeats; None: nothing that is remembered."""
        memory = self._memory.get(key)
        if memory is None or self._lapsed(memory):
            self._memory.pop(key, None)
            return None
        if memory.body_sha256 != body_sha256:
            return Known.MISMATCHED
        return Known.IN_PROGRESS if memory.done_at_ms is None else Known.DONE

    def begin(self, key: str, body_sha256: str, *, dedupe: bool) -> None:
        """Announce an effect that will come; `commit` follows."""
        self._coming[key] += 1
        if dedupe:
            self._memory.setdefault(key, _Memory(body_sha256=body_sha256))

    def lose(self, key: str, body_sha256: str, *, lease_s: float) -> None:
        """Remember a key whose effect never comes, until its lease of `lease_s` is over."""
        lost_at_ms = self._now_ms() + round(lease_s * 1000)
        self._memory.setdefault(key, _Memory(body_sha256=body_sha256, lost_at_ms=lost_at_ms))

    def commit(
        self, key: str, body_sha256: str, *, dedupe: bool, window_s: float | None = None
    ) -> None:
        """Make the announced effect real; under dedupe only if it is the key's first.

        Args:
            key: What the effect is known by.
            body_sha256: The body a repeat must have.
            dedupe: Whether the key is remembered.
            window_s: Seconds for which it is remembered from now; None: for ever.
        """
        self._coming[key] -= 1
        if dedupe:
            memory = self._memory.get(key)
            if memory is not None and memory.done_at_ms is not None:
                return
            self._memory[key] = _Memory(
                body_sha256=body_sha256, done_at_ms=self._now_ms(), window_s=window_s
            )
        self.counts[key] += 1
        if self._on_commit is not None:
            self._on_commit(key)

    def _lapsed(self, memory: _Memory) -> bool:
        if memory.lost_at_ms is not None:
            return self._now_ms() >= memory.lost_at_ms
        return (
            memory.done_at_ms is not None
            and memory.window_s is not None
            and self._now_ms() >= memory.done_at_ms + memory.window_s * 1000
        )
