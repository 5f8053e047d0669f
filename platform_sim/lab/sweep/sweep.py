"""The sweep: one subject, run once for each resumption of its request, and killed there.

Rules: the subject is first run twice without a cut; if the two runs do not pass the same places, or
a later trial does not reach the place it is to be cut at, the subject is not repeatable, and that
is all the report says. Pairs are the product space: for each cut of the request, a cut at each
resumption that redrive has after it. A space larger than the bound is sampled by the seed.

Not here: what a trial is (`scenario_subject`, `app_subject`), what the report looks like
(`report`).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

from platform_sim.lab.sweep.acknowledgement import answers_text, require_acknowledgement
from platform_sim.lab.sweep.errors import BadSweep
from platform_sim.lab.sweep.heap import bounded_heap
from platform_sim.lab.sweep.places import Place
from platform_sim.lab.sweep.report import Failure, Pairs, SweepReport
from platform_sim.lab.sweep.trial import Cuts, Subject, Trial

__all__ = ["DEFAULT_MOST_PAIRS", "Tell", "sweep"]

DEFAULT_MOST_PAIRS = 1000
"""Pairs that are run at the most unless more are asked for."""

Tell = Callable[[str, int, int], None]
"""Is told what is being run, how many are done, and how many there are."""


@dataclass(frozen=True, slots=True)
class _Diverged(Exception):
    """The subject did not do the same again."""

    how: str


def _silent(_what: str, _done: int, _of: int) -> None:
    """Tell nobody."""


def sweep(
    subject: Subject,
    *,
    most_pairs: int | None = None,
    tell: Tell = _silent,
) -> SweepReport:
    """Cut a subject at every resumption of its request.

    Args:
        subject: What is run.
        most_pairs: Also cut redrive after each cut, in at most so many pairs; None: no pairs.
        tell: Is told of the progress.

    Raises:
        BadSweep: The request never reached any code, or was not acknowledged though the subject
            needs that; or pairs are asked for and nothing is run after a cut.
    """
    if most_pairs is not None and not subject.has_redrive:
        raise BadSweep("pairs cut the redrive, and there is none: name one")
    with bounded_heap() as count_trial:
        return _swept(subject, most_pairs, _both(count_trial, tell))


def _swept(subject: Subject, most_pairs: int | None, tell: Tell) -> SweepReport:
    loading = subject.run(Cuts())  # what is loaded or cached once is loaded now
    first = subject.run(Cuts(recording=True))
    second = subject.run(Cuts(recording=True))
    if not first.resumptions:
        raise BadSweep("no request reached the app, so there is nothing to cut")
    if subject.if_not_acknowledged is not None:
        require_acknowledgement(loading.answers, first.answers, subject.if_not_acknowledged)
    base = SweepReport(
        title=subject.title,
        seed=subject.seed,
        resumptions=first.resumptions,
        uncut=first.findings,
        uncut_answers=first.answers,
    )
    try:
        _same(first, second)
        singles = tuple(_singles(subject, first, tell))
        failures = tuple(
            Failure(point=point, place=_placed(trial), findings=trial.findings)
            for point, trial in enumerate(singles, start=1)
            if trial.findings
        )
        pairs = None if most_pairs is None else _pairs(subject, singles, most_pairs, tell)
    except _Diverged as diverged:
        return base.unrepeatable_because(diverged.how)
    return base.judged(failures, pairs)


def _both(count: Callable[[], None], tell: Tell) -> Tell:
    def told(what: str, done: int, of: int) -> None:
        count()
        tell(what, done, of)

    return told


def _same(first: Trial, second: Trial) -> None:
    if first.resumptions != second.resumptions:
        raise _Diverged(
            f"run without a cut it had {first.resumptions} resumptions, and "
            f"{second.resumptions} when run again"
        )
    statuses = [[answer.status for answer in trial.answers] for trial in (first, second)]
    if statuses[0] != statuses[1]:
        raise _Diverged(
            f"run without a cut, {answers_text(first.answers)}; when run again, "
            f"{answers_text(second.answers)}"
        )
    for point, (one, other) in enumerate(zip(first.places, second.places, strict=True), start=1):
        if one.at != other.at:
            raise _Diverged(f"resumption {point} was at {one.at}, and at {other.at} when run again")


def _singles(subject: Subject, uncut: Trial, tell: Tell) -> Iterator[Trial]:
    for point, expected in enumerate(uncut.places, start=1):
        trial = subject.run(Cuts(request_at=point))
        if trial.place is None:
            raise _Diverged(
                f"resumption {point} of {uncut.resumptions} did not come: there were "
                f"{trial.resumptions}"
            )
        if trial.place.at != expected.at:
            raise _Diverged(
                f"resumption {point} was at {expected.at}, and at {trial.place.at} when it was cut"
            )
        tell("cuts", point, uncut.resumptions)
        yield trial


def _placed(trial: Trial) -> Place:
    assert trial.place is not None
    return trial.place


def _pairs(subject: Subject, singles: Sequence[Trial], most: int, tell: Tell) -> Pairs:
    space = [
        (point, redrive_point)
        for point, trial in enumerate(singles, start=1)
        for redrive_point in range(1, trial.redrive_resumptions + 1)
    ]
    chosen = space
    if len(space) > most:
        chosen = sorted(Random(subject.seed).sample(space, most))  # noqa: S311  replayable
    failures = []
    for done, (point, redrive_point) in enumerate(chosen, start=1):
        trial = subject.run(Cuts(request_at=point, redrive_at=redrive_point))
        if trial.place != singles[point - 1].place or trial.redrive_place is None:
            raise _Diverged(
                f"cut at {point}, redrive had {singles[point - 1].redrive_resumptions} "
                f"resumptions, and did not come to resumption {redrive_point} when run again"
            )
        if trial.findings:
            failures.append(
                Failure(
                    point=point,
                    place=_placed(trial),
                    findings=trial.findings,
                    redrive_point=redrive_point,
                    redrive_place=trial.redrive_place,
                )
            )
        tell("pairs", done, len(chosen))
    return Pairs(space=len(space), run=len(chosen), failures=tuple(failures))
