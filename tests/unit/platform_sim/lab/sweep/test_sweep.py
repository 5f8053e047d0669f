"""The sweep itself: which trials are run, and what is made of them."""

from dataclasses import replace

import pytest

from platform_sim.lab.sweep.asking import Answer
from platform_sim.lab.sweep.errors import BadSweep
from platform_sim.lab.sweep.sweep import sweep
from platform_sim.lab.sweep.trial import Cuts, Finding, Kind, Trial
from tests.support.swept import ScriptedSubject, place

LOST = (Finding(text="lost"),)


def test_every_resumption_is_cut_once() -> None:
    """After a run to load things and two to see that it repeats itself."""
    subject = ScriptedSubject()

    report = sweep(subject)

    assert [cuts.request_at for cuts in subject.asked] == [None, None, None, 1, 2, 3]
    assert (report.passed, report.resumptions, report.failures, report.pairs) == (True, 3, (), None)


def test_cuts_after_which_something_is_wrong_are_reported_with_their_place() -> None:
    """And the others are not."""
    subject = ScriptedSubject(lambda cuts: LOST if cuts.request_at == 2 else ())

    report = sweep(subject)

    assert [(each.point, each.place, each.findings) for each in report.failures] == [
        (2, place(2), LOST)
    ]
    assert not report.passed


def test_what_is_wrong_without_a_cut_is_told_apart() -> None:
    """No cut is to blame."""
    report = sweep(ScriptedSubject(lambda cuts: LOST if cuts.request_at is None else ()))

    assert (report.uncut, report.failures, report.passed) == (LOST, (), False)


def test_pairs_are_all_cuts_of_redrive_after_each_cut() -> None:
    """The whole space, when it is small enough."""
    bad = Finding(kind=Kind.DOUBLED, text="twice")
    subject = ScriptedSubject(lambda cuts: (bad,) if cuts.redrive_at == 2 else ())

    report = sweep(subject, most_pairs=6)

    pairs = [(cuts.request_at, cuts.redrive_at) for cuts in subject.asked if cuts.redrive_at]
    assert pairs == [(1, 1), (1, 2), (2, 1), (2, 2), (3, 1), (3, 2)]
    assert report.pairs is not None
    assert (report.pairs.space, report.pairs.run, report.pairs.is_exhaustive) == (6, 6, True)
    assert [(each.point, each.redrive_point) for each in report.pairs.failures] == [
        (1, 2),
        (2, 2),
        (3, 2),
    ]
    assert not report.passed


def test_a_large_space_is_sampled_by_the_seed() -> None:
    """The same seed draws the same pairs, another one others."""

    def drawn(seed: int) -> list[Cuts]:
        subject = ScriptedSubject(redrive=50)
        subject.seed = seed
        report = sweep(subject, most_pairs=20)
        assert report.pairs is not None
        assert (report.pairs.space, report.pairs.run) == (150, 20)
        assert not report.pairs.is_exhaustive
        return [cuts for cuts in subject.asked if cuts.redrive_at is not None]

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)
    assert len({(cuts.request_at, cuts.redrive_at) for cuts in drawn(1)}) == 20


def test_progress_is_told() -> None:
    """What, how many, of how many."""
    told: list[tuple[str, int, int]] = []

    sweep(ScriptedSubject(redrive=1), most_pairs=9, tell=lambda *each: told.append(each))

    assert told == [(what, done, 3) for what in ("cuts", "pairs") for done in (1, 2, 3)]


def test_a_request_that_reaches_no_code_cannot_be_swept() -> None:
    """There is nothing to cut."""
    with pytest.raises(BadSweep, match="no request reached the app"):
        sweep(ScriptedSubject(lines=()))


def test_pairs_need_a_redrive() -> None:
    """There is nothing to cut after the cut."""
    subject = ScriptedSubject()
    subject.has_redrive = False

    with pytest.raises(BadSweep, match="there is none"):
        sweep(subject, most_pairs=1)


class Whimsical(ScriptedSubject):
    """Does something else from some trial on."""

    def __init__(self, from_trial: int, lines: tuple[int, ...], redrive: int = 2) -> None:
        super().__init__()
        self.from_trial = from_trial
        self.then_lines, self.then_redrive = lines, redrive

    def run(self, cuts: Cuts) -> Trial:
        """Return the trial."""
        if len(self.asked) + 1 == self.from_trial:
            self.lines, self.redrive = self.then_lines, self.then_redrive
        return super().run(cuts)


@pytest.mark.parametrize(
    ("subject", "how"),
    [
        (Whimsical(3, (1, 2)), "it had 3 resumptions, and 2 when run again"),
        (Whimsical(3, (1, 5, 3)), "resumption 2 was at app.py:2, and at app.py:5 when run again"),
        (Whimsical(6, (1, 2)), "resumption 3 of 3 did not come: there were 2"),
        (Whimsical(5, (1, 5, 3)), "resumption 2 was at app.py:2, and at app.py:5 when it was cut"),
        (Whimsical(8, (1, 2, 3), redrive=1), "did not come to resumption 2 when run again"),
    ],
)
def test_a_subject_that_does_not_repeat_itself_is_told_of_and_nothing_else(
    subject: Whimsical, how: str
) -> None:
    """Counts that differ make every other number nonsense."""
    report = sweep(subject, most_pairs=10)

    assert report.unrepeatable is not None
    assert how in report.unrepeatable
    assert (report.passed, report.failures, report.pairs) == (False, (), None)
    assert str(report).splitlines()[1].startswith("not repeatable, so nothing is reported")


def test_another_answer_when_run_again_is_not_repeatable() -> None:
    """Even when the same lines were passed."""

    class Moody(ScriptedSubject):
        def run(self, cuts: Cuts) -> Trial:
            trial = super().run(cuts)
            return replace(trial, answers=(Answer(status=200 + len(self.asked)),))

    assert sweep(Moody()).unrepeatable == (
        "run without a cut, the answer was 202; when run again, the answer was 203"
    )


def test_a_subject_may_need_to_be_acknowledged() -> None:
    """It says what to give when it is not; one that may mean any answer goes on."""

    class Refused(ScriptedSubject):
        def run(self, cuts: Cuts) -> Trial:
            return replace(super().run(cuts), answers=(Answer(status=404),))

    strict, lenient = Refused(), Refused()
    strict.if_not_acknowledged = "give another"

    with pytest.raises(BadSweep, match="404, so nothing was acknowledged; give another"):
        sweep(strict)
    assert sweep(lenient).uncut_answers == (Answer(status=404),)


def test_a_pair_whose_first_cut_moves_is_not_repeatable() -> None:
    """It would be another pair."""

    class Moving(ScriptedSubject):
        def run(self, cuts: Cuts) -> Trial:
            trial = super().run(cuts)
            return replace(trial, place=place(77)) if cuts.redrive_at else trial

    assert sweep(Moving(), most_pairs=10).unrepeatable is not None
