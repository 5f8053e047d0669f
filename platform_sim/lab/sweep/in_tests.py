"""The sweep as people's tests call it: an app or a factory, a request, and a check.

Not here: fixtures and markers (`platform_sim.pytest_plugin`).
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from platform_sim.lab.sweep.app_subject import AppSubject
from platform_sim.lab.sweep.asking import SweptRequest
from platform_sim.lab.sweep.check import Check
from platform_sim.lab.sweep.report import SweepReport
from platform_sim.lab.sweep.stage import DEFAULT_AFTER_S, DEFAULT_REDRIVE_RUNS, Redrive
from platform_sim.lab.sweep.sweep import DEFAULT_MOST_PAIRS, sweep
from platform_sim.lifetime.profile import Profile

__all__ = ["CutSweep"]


class CutSweep:
    """Sweeps apps under one profile.

    Args:
        profile: What they are served under.
    """

    def __init__(self, profile: Profile) -> None:
        self.profile = profile

    def __call__(
        self,
        app: Any,
        request: str,
        *,
        json: Any = None,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        check: Check | None = None,
        redrive: Redrive | None = None,
        pairs: bool = False,
        most_pairs: int = DEFAULT_MOST_PAIRS,
        after_s: float = DEFAULT_AFTER_S,
        redrive_runs: int = DEFAULT_REDRIVE_RUNS,
        seed: int = 1,
        own: Iterable[str] = (),
        must_survive: bool = True,
    ) -> SweepReport:
        """Cut a request at each of its awaits.

        Args:
            app: An ASGI app, or what makes one when it is called; then each cut meets a new one.
            request: `POST /path`.
            json: Its body, sent as JSON.
            body: Its body as it is.
            headers: By name.
            check: Judges what came of a cut; left out, a 2xx whose work was stopped is lost work.
            redrive: Finishes what was cut; is given the app if it takes an argument.
            pairs: Whether redrive is cut as well, at each of its resumptions.
            most_pairs: Pairs that are run at the most.
            after_s: Virtual seconds between the answer, or the cut, and what comes next.
            redrive_runs: How often redrive runs.
            seed: For `random`, and for drawing pairs.
            own: Top-level modules that are yours though they are installed.
            must_survive: Whether to raise when a cut does not survive.

        Raises:
            AssertionError: A cut loses or doubles work, or the app does not do the same twice; the
                message is the report.
            BadSweep: There is nothing to sweep.
        """
        __tracebackhide__ = True  # to pytest, where a failure is the caller's
        asked = SweptRequest.of(request, body=body, data=json, headers=headers)
        make = _maker(app)
        subject = AppSubject(
            title=f"{request} of {_name(app)}",
            make=make,
            request=asked,
            check=check,
            redrive=redrive,
            profile=self.profile,
            after_s=after_s,
            redrive_runs=redrive_runs,
            seed=seed,
            own=frozenset(own),
        )
        report = sweep(subject, most_pairs=most_pairs if pairs else None)
        if must_survive and not report.passed:
            raise AssertionError(str(report))
        return report


def _maker(app: Any) -> Callable[[], Any]:
    return (lambda: app) if _takes_scope(app) else app


def _takes_scope(app: Any) -> bool:
    try:
        inspect.signature(app).bind(None, None, None)
    except TypeError:
        return False
    return True


def _name(app: Any) -> str:
    name: str = getattr(app, "__qualname__", type(app).__qualname__)
    return name.rpartition("<locals>.")[2]
