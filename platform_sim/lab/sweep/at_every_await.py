"""A test of one's own that is run again for each await of the request it makes.

Rules: the test makes its request with the `cut_request` it is given, and then says what must be so,
whatever the client got. It is run once without a cut, where a failure is its own and is raised as
it is, and then once for each resumption, killed there; all that fail are reported together.

Not here: how pytest finds such tests (`platform_sim.pytest_plugin`).
"""

import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from platform_sim.lab.sweep.asking import SweptRequest
from platform_sim.lab.sweep.check import text_of
from platform_sim.lab.sweep.errors import BadSweep, SweepError
from platform_sim.lab.sweep.loop import run_virtual
from platform_sim.lab.sweep.outside import CURRENT_OUTSIDE
from platform_sim.lab.sweep.places import Code
from platform_sim.lab.sweep.report import SweepReport
from platform_sim.lab.sweep.stage import (
    DEFAULT_AFTER_S,
    DEFAULT_REDRIVE_RUNS,
    Aftermath,
    Redrive,
    Stage,
)
from platform_sim.lab.sweep.sweep import DEFAULT_MOST_PAIRS, sweep
from platform_sim.lab.sweep.trial import Cuts, Finding, Trial
from platform_sim.lifetime.emulator import App
from platform_sim.lifetime.profile import Profile

__all__ = ["AwaitedTest", "CutRequest", "sweep_test"]

_IF_NOT_ACKNOWLEDGED = (
    "let the test make requests that the app answers with a 2xx, or say that any answer will do "
    "with @pytest.mark.at_every_await(any_answer=True)"
)


class CutRequest:
    """Makes requests that are cut: what a test marked `at_every_await` is given.

    Args:
        profile: What apps are served under.
    """

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.stage: Stage | None = None
        self.has_redrive = False

    async def __call__(
        self,
        app: App,
        request: str,
        *,
        json: Any = None,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        redrive: Redrive | None = None,
    ) -> Aftermath:
        """Send a request, which may be cut, and return when everything is at rest.

        Args:
            app: Any ASGI app; make it in the test, so that each cut meets a new one.
            request: `POST /path`.
            json: Its body, sent as JSON.
            body: Its body as it is.
            headers: By name.
            redrive: Finishes what was cut.

        Raises:
            SweepError: The test has no `at_every_await` marker.
        """
        if self.stage is None:
            raise SweepError("cut_request works in a test marked with @pytest.mark.at_every_await")
        self.has_redrive = self.has_redrive or redrive is not None
        asked = SweptRequest.of(request, body=body, data=json, headers=headers)
        return await self.stage.ask(app, asked, redrive=redrive)


@dataclass(kw_only=True)
class AwaitedTest:
    """One test as the subject of a sweep.

    Attributes:
        title: Its name.
        test: Runs it once.
        cut_request: What it was given.
        failures: What counts as a failure of the test, besides exceptions.
        after_s: Virtual seconds between the answer, or the cut, and what comes next.
        redrive_runs: How often a redrive runs.
        seed: For `random`, and for drawing pairs.
        own: Top-level modules that are the user's though they are installed.
        any_answer: Whether a request may get an answer that is no 2xx when nothing is cut.
    """

    title: str
    test: Callable[[], Awaitable[None]]
    cut_request: CutRequest
    failures: tuple[type[BaseException], ...] = ()
    after_s: float = DEFAULT_AFTER_S
    redrive_runs: int = DEFAULT_REDRIVE_RUNS
    seed: int = 1
    own: frozenset[str] = frozenset()
    any_answer: bool = False

    def __post_init__(self) -> None:
        """Name places with what is known of earlier trials."""
        self._code = Code(own=self.own)
        self.if_not_acknowledged = None if self.any_answer else _IF_NOT_ACKNOWLEDGED

    @property
    def has_redrive(self) -> bool:
        """Whether the test has named a redrive so far."""
        return self.cut_request.has_redrive

    def run(self, cuts: Cuts) -> Trial:
        """Run the test once."""
        before = random.getstate()
        random.seed(self.seed)
        try:
            return run_virtual(lambda: self._run(cuts))
        finally:
            random.setstate(before)

    async def _run(self, cuts: Cuts) -> Trial:
        stage = self.cut_request.stage = Stage(
            cuts,
            profile=self.cut_request.profile,
            code=self._code,
            after_s=self.after_s,
            redrive_runs=self.redrive_runs,
        )
        CURRENT_OUTSIDE.set(stage.outside)
        findings: tuple[Finding, ...] = ()
        caught: tuple[type[BaseException], ...] = (Exception, *self.failures)
        try:
            await self.test()
        except caught as error:
            if cuts.request_at is None or isinstance(error, SweepError):
                raise
            told = text_of(error)
            is_plain = isinstance(error, (AssertionError, *self.failures))
            findings = (Finding(text=told if is_plain else f"{type(error).__name__}: {told}"),)
        trial = stage.trial(findings)
        await stage.aclose()
        return trial


def sweep_test(
    test: AwaitedTest, *, pairs: bool = False, most_pairs: int = DEFAULT_MOST_PAIRS
) -> SweepReport:
    """Run a test at every await of its request.

    Raises:
        Exception: The test fails without any cut.
        BadSweep: It made no request, or one that was not acknowledged without a cut; or pairs are
            asked for and it names no redrive.
    """
    if pairs:
        test.run(Cuts())  # whether there is a redrive is known when the test has run
    try:
        return sweep(test, most_pairs=most_pairs if pairs else None)
    except BadSweep as error:
        raise BadSweep(f"{test.title}: {error}") from error
