"""Judging a trial of an app."""

from typing import Any

import pytest

from platform_sim.lab.sweep.asking import Answer
from platform_sim.lab.sweep.check import findings_by, text_of
from platform_sim.lab.sweep.errors import BadSweep
from platform_sim.lab.sweep.outside import OutsideWorld
from platform_sim.lab.sweep.stage import Aftermath
from platform_sim.lab.sweep.trial import Finding, Kind
from tests.support.swept import place
from tests.support.virtual import run_virtual


def aftermath(*, status: int | None = 202, **more: Any) -> Aftermath:
    """Return an aftermath."""
    fields: dict[str, Any] = {
        "app": None,
        "answer": Answer(status=status),
        "outside": OutsideWorld(),
        "cut": None,
        "unfinished": (),
        "cut_by_platform": (),
    }
    return Aftermath(**(fields | more))


def judged(check: Any, seen: Aftermath | None = None) -> tuple[Finding, ...]:
    """Judge with a check."""
    return run_virtual(lambda: findings_by(check, seen or aftermath()))


def raises(error: Exception) -> Any:
    """Return a check that raises."""

    def check(_: Aftermath) -> None:
        raise error

    return check


@pytest.mark.parametrize("verdict", [None, True, ""])
def test_a_check_that_has_nothing_to_say_finds_nothing(verdict: Any) -> None:
    """Nothing, True and an empty text all mean that nothing is wrong."""
    assert judged(lambda _: verdict) == ()


@pytest.mark.parametrize(
    ("check", "text"),
    [
        (lambda _: False, "the check returned False"),
        (lambda _: "no receipt", "no receipt"),
        (raises(AssertionError("no receipt\nat all")), "no receipt"),
    ],
)
def test_a_check_says_that_work_was_lost(check: Any, text: str) -> None:
    """In whichever way its author likes."""
    assert judged(check) == (Finding(kind=Kind.LOST, text=text),)


def test_a_check_may_be_async_and_say_that_work_was_doubled() -> None:
    """It returns the finding itself."""
    twice = Finding(kind=Kind.DOUBLED, text="two receipts")

    async def check(_: Aftermath) -> Finding:
        return twice

    assert judged(check) == (twice,)


def test_a_bare_assertion_is_told_by_its_line() -> None:
    """Without pytest's rewriting an assertion has no text."""
    try:
        raise AssertionError
    except AssertionError as error:
        text = text_of(error)

    assert text.startswith("raise AssertionError (")
    assert "test_check.py:" in text


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (raises(KeyError("x")), "the check raised KeyError"),
        (lambda _: 3, "the check returned 3: return nothing"),
    ],
)
def test_a_broken_check_is_no_lost_work(check: Any, message: str) -> None:
    """It cannot judge, and the sweep cannot go on."""
    with pytest.raises(BadSweep, match=message):
        judged(check)


def test_without_a_check_work_stopped_after_a_2xx_is_lost() -> None:
    """By the sweep or by the platform."""
    seen = aftermath(unfinished=(place(3, task="send"),), cut_by_platform=("cancel at 30",))

    assert [finding.text for finding in judged(None, seen)] == [
        "the client had its 202, and this never finished: send at app.py:3",
        "the client had its 202, and the platform cut: cancel at 30",
    ]


def test_handing_over_an_answer_is_work_only_if_more_follows() -> None:
    """Else every app with a middleware of its own would lose something."""
    seen = aftermath(unfinished=(place(3, is_at_platform=True),))
    finding = Finding(text="the client had its 202, and this never finished: t at app.py:3")

    assert run_virtual(lambda: findings_by(None, seen, goes_on=False)) == ()
    assert run_virtual(lambda: findings_by(None, seen)) == (finding,)


@pytest.mark.parametrize("status", [None, 500, 302])
def test_without_a_check_a_client_that_has_no_2xx_has_lost_nothing(status: int | None) -> None:
    """It knows that it has to ask again."""
    assert judged(None, aftermath(status=status, unfinished=(place(),))) == ()


def test_without_a_check_an_answer_with_nothing_after_it_is_safe() -> None:
    """Most endpoints are like that."""
    assert judged(None) == ()
