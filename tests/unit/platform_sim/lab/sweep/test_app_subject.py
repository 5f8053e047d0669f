"""Any app as a subject: a world of its own for each trial, and the same seed."""

import itertools
import random
from typing import Any

import pytest

from platform_sim.lab.sweep.errors import BadSweep, Stuck
from platform_sim.lab.sweep.outside import outside_world
from platform_sim.lab.sweep.stage import Aftermath
from platform_sim.lab.sweep.sweep import sweep
from platform_sim.lab.sweep.trial import Cuts, Finding
from tests.support.swept import plain_app, subject_of


async def raising(scope: Any, _receive: Any, _send: Any) -> None:
    """Fail at the request."""
    raise KeyError("id" if scope["type"] == "http" else "no lifespan here")


async def silent(scope: Any, _receive: Any, _send: Any) -> None:
    """Return without an answer."""


def test_each_trial_has_an_app_and_an_outside_of_its_own() -> None:
    """Nothing of one cut is seen after another."""
    made: list[Any] = []
    seen: list[Aftermath] = []

    def make() -> Any:
        made.append(plain_app(lambda _: outside_world().call("post")))
        return made[-1]

    subject = subject_of(make, check=seen.append)
    trials = [subject.run(Cuts()) for _ in range(2)]

    assert trials[0] == trials[1]
    assert (len(made), made[0] is made[1]) == (2, False)
    assert [aftermath.app for aftermath in seen] == made
    assert [aftermath.outside.payloads("post") for aftermath in seen] == [[None], [None]]


def test_what_a_check_finds_is_the_trials() -> None:
    """In the words of the check."""
    trial = subject_of(plain_app, check=lambda _: "no receipt").run(Cuts())

    assert trial.findings == (Finding(text="no receipt"),)


def test_the_seed_is_the_same_in_every_trial_and_nobody_elses() -> None:
    """Random choices repeat, and the caller's own go on where they were."""
    drawn: list[float] = []

    async def draws(_scope: Any) -> None:
        drawn.append(random.random())

    random.seed(3)
    expected = random.random()
    random.seed(3)
    for seed in (1, 1, 2):
        subject_of(lambda: plain_app(draws), seed=seed).run(Cuts())

    assert drawn[0] == drawn[1] != drawn[2]
    assert random.random() == expected


def test_an_app_cut_at_its_last_message_has_lost_only_what_follows() -> None:
    """Code of one's own round every answer, as a middleware is, is no lost work by itself."""

    async def posts(_scope: Any) -> None:
        await outside_world().call("post")

    plain, posting = sweep(subject_of(plain_app)), sweep(subject_of(lambda: plain_app(posts)))

    assert plain.passed
    assert [each.point for each in posting.failures] == [plain.resumptions, plain.resumptions + 1]


def test_a_redrive_needs_a_check() -> None:
    """Nobody else knows what it repaired."""

    async def redrive() -> None:
        """Do nothing."""

    with pytest.raises(BadSweep, match="a redrive needs a check"):
        subject_of(plain_app, redrive=redrive)


def test_an_app_that_never_answers_and_waits_for_nothing_ends_the_sweep() -> None:
    """It would hang for ever."""

    async def hangs(scope: Any, receive: Any, _send: Any) -> None:
        await receive()
        while scope["type"] == "http":
            await receive()

    with pytest.raises(Stuck):
        sweep(subject_of(lambda: hangs))


@pytest.mark.parametrize(
    ("app", "told"),
    [
        (plain_app(status=404), "the answer was 404"),
        (plain_app(status=500), "the answer was 500"),
        (plain_app(status=303), "the answer was 303"),
        (raising, "the answer was 500 \\(the app raised KeyError\\('id'\\)\\)"),
        (silent, "there was no answer"),
    ],
)
def test_nothing_acknowledged_without_a_cut_is_nothing_to_sweep(app: Any, told: str) -> None:
    """Unless a check says what must be so: an error survives every cut, whatever the app does."""
    with pytest.raises(BadSweep, match=f"^without a cut {told}, so nothing was acknowledged; "):
        sweep(subject_of(lambda: app))


def test_a_check_may_mean_an_answer_that_is_no_acknowledgement() -> None:
    """The report says what the answer was."""
    seen: list[bool] = []
    subject = subject_of(
        lambda: plain_app(status=409), check=lambda aftermath: seen.append(aftermath.acknowledged)
    )

    report = sweep(subject)

    assert report.passed
    assert [answer.status for answer in report.uncut_answers] == [409]
    assert set(seen) == {False}


def test_an_app_that_acknowledges_only_once_is_told_what_to_give() -> None:
    """One app for all cuts remembers the request."""
    statuses = itertools.chain([202], itertools.repeat(409))

    async def app(scope: Any, receive: Any, send: Any) -> None:
        status = next(statuses) if scope["type"] == "http" else 0
        await plain_app(status=status)(scope, receive, send)

    with pytest.raises(
        BadSweep, match=r"without a cut the answer was 202, and then 409: .*factory"
    ):
        sweep(subject_of(lambda: app))


def test_what_is_raised_after_the_answer_is_told_too() -> None:
    """Its client knows nothing of it."""

    async def fails(_scope: Any) -> None:
        raise KeyError("mail")

    (answer,) = sweep(subject_of(lambda: plain_app(fails))).uncut_answers

    assert str(answer) == "202 (the app raised KeyError('mail'))"
