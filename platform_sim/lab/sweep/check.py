"""Judging a trial of an app: by the user's own check, or by what can be known without one.

Rules: a check is a function, sync or async, of the aftermath. Work is lost when it raises
AssertionError, returns False, or returns text that says so; it may return a `Finding` to say that
work was doubled. Without a check only this is known: a client that had its 2xx, and work of that
request that was stopped before its end.

Not here: when it is called (`app_subject`).
"""

import inspect
import traceback
from collections.abc import Awaitable, Callable, Iterator

from platform_sim.lab.sweep.errors import BadSweep
from platform_sim.lab.sweep.stage import Aftermath
from platform_sim.lab.sweep.trial import Finding

__all__ = ["Check", "Verdict", "findings_by", "text_of", "work_cut_off"]

Verdict = bool | str | Finding | None
Check = Callable[[Aftermath], Verdict | Awaitable[Verdict]]


async def findings_by(
    check: Check | None, aftermath: Aftermath, *, goes_on: bool = True
) -> tuple[Finding, ...]:
    """Return what a check finds wrong.

    Args:
        check: The user's; None asks only what can be known without one.
        aftermath: What it is given.
        goes_on: Whether the request does work after the cut when it is not cut.

    Raises:
        BadSweep: The check is broken: it raised something else, or returned something else.
    """
    if check is None:
        return tuple(work_cut_off(aftermath, goes_on=goes_on))
    try:
        given = check(aftermath)
        verdict = await given if inspect.isawaitable(given) else given
    except AssertionError as error:
        return (Finding(text=text_of(error)),)
    except Exception as error:
        raise BadSweep(f"the check raised {type(error).__name__}: {error}") from error
    match verdict:
        case None | True | "":
            return ()
        case False:
            return (Finding(text="the check returned False"),)
        case str():
            return (Finding(text=verdict),)
        case Finding():
            return (verdict,)
        case other:
            raise BadSweep(
                f"the check returned {other!r}: return nothing, True or False, text, or a Finding"
            )


def text_of(error: BaseException) -> str:
    """Return the first line of an error, or where it was raised when it says nothing."""
    text = str(error).strip()
    if text:
        return text.splitlines()[0]
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{frame.line or type(error).__name__} ({frame.filename}:{frame.lineno})"


def work_cut_off(aftermath: Aftermath, *, goes_on: bool = True) -> Iterator[Finding]:
    """Yield the work that was stopped after a client had its 2xx.

    Code that was handing its answer to the platform has work before it only if, uncut, it goes on.
    """
    if not aftermath.acknowledged:
        return
    status = aftermath.answer.status
    stopped = [place for place in aftermath.unfinished if place.has_work or goes_on]
    if stopped:
        names = ", ".join(str(place) for place in stopped)
        yield Finding(text=f"the client had its {status}, and this never finished: {names}")
    for text in aftermath.cut_by_platform:
        yield Finding(text=f"the client had its {status}, and the platform cut: {text}")
