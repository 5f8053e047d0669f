"""Whether there is anything to lose: what clients are answered when nothing is cut.

Rules: a sweep that judges only what a 2xx promises has nothing to judge where none is given, and
would pass whatever the app does; so it is refused. A subject says what to do about that, or that
any answer may be meant.

Not here: a single answer (`asking`), judging a cut (`check`).
"""

from collections import Counter
from collections.abc import Sequence

from platform_sim.lab.sweep.asking import Answer
from platform_sim.lab.sweep.errors import BadSweep

__all__ = ["answers_text", "require_acknowledgement"]

_NEW_APP = "give what makes a new app for each cut: a factory, in an import string module:factory()"


def answers_text(answers: Sequence[Answer]) -> str:
    """Return answers as a clause, such as `the answer was 202`."""
    if len(answers) == 1:
        (one,) = answers
        return f"there was {one}" if one.status is None else f"the answer was {one}"
    counts = Counter(str(answer) for answer in answers)
    told = (f"{text} ({count} times)" if count > 1 else text for text, count in counts.items())
    return f"the answers were {', '.join(told)}"


def require_acknowledgement(earlier: Sequence[Answer], now: Sequence[Answer], remedy: str) -> None:
    """Require a 2xx for every request of an uncut run.

    Args:
        earlier: What the first run of all was answered.
        now: What the run that is looked at was answered.
        remedy: What to give instead.

    Raises:
        BadSweep: A request got something else.
    """
    if all(answer.acknowledged for answer in now):
        return
    told = answers_text(now)
    if earlier and all(answer.acknowledged for answer in earlier):
        then = ", ".join(map(str, now))
        raise BadSweep(f"without a cut {answers_text(earlier)}, and then {then}: {_NEW_APP}")
    none = not any(answer.acknowledged for answer in now)
    what = "nothing was acknowledged" if none else "not all was acknowledged"
    raise BadSweep(f"without a cut {told}, so {what}; {remedy}")
