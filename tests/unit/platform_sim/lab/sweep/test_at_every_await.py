"""A test that is run again for each await of its request."""

import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from platform_sim.lab.sweep.at_every_await import AwaitedTest, CutRequest, sweep_test
from platform_sim.lab.sweep.errors import BadSweep, SweepError
from platform_sim.lab.sweep.outside import outside_world
from platform_sim.lab.sweep.report import SweepReport
from platform_sim.lifetime.profile import GENERIC
from tests.support.swept import plain_app
from tests.support.virtual import run_virtual


class Failed(BaseException):
    """Stands for pytest's own failure, which is no Exception."""


def swept(
    test: Callable[[CutRequest], Awaitable[None]], *, any_answer: bool = False, **options: Any
) -> SweepReport:
    """Sweep a test."""
    cut_request = CutRequest(GENERIC)
    subject = AwaitedTest(
        title="test_orders",
        test=lambda: test(cut_request),
        cut_request=cut_request,
        failures=(Failed,),
        any_answer=any_answer,
    )
    return sweep_test(subject, **options)


def lossy() -> Any:
    """Return an app that posts after its answer."""
    return plain_app(lambda _: outside_world().call("post"))


async def requires_the_post(cut_request: CutRequest) -> None:
    """Require a post for a 2xx."""
    seen = await cut_request(lossy(), "POST /orders", json={"id": 1})
    assert not seen.acknowledged or seen.outside.payloads("post"), "no post"


def test_all_cuts_that_fail_are_reported_together() -> None:
    """Each with its place, in the words of the assertion."""
    report = swept(requires_the_post)

    assert not report.passed
    assert {each.findings[0].text for each in report.failures} == {"no post"}
    assert report.title == "test_orders"


def test_a_test_that_every_cut_survives_passes() -> None:
    """It has asked for nothing that a cut can take."""

    async def test(cut_request: CutRequest) -> None:
        await cut_request(plain_app(), "POST /orders", body=b"x", headers={"a": "b"})

    assert swept(test).passed


def test_a_failure_without_a_cut_is_raised_as_it_is() -> None:
    """It is the test's own, with its own traceback."""

    async def test(cut_request: CutRequest) -> None:
        await cut_request(plain_app(), "POST /orders")
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        swept(test)


@pytest.mark.parametrize(
    ("error", "text"),
    [(Failed("by hand"), "by hand"), (KeyError("gone"), "KeyError: 'gone'")],
)
def test_any_failure_after_a_cut_counts(error: BaseException, text: str) -> None:
    """Also one that is no assertion."""

    async def test(cut_request: CutRequest) -> None:
        seen = await cut_request(plain_app(), "POST /orders")
        if seen.cut is not None:
            raise error

    report = swept(test)

    assert len(report.failures) == report.resumptions
    assert report.failures[0].findings[0].text == text


def test_a_mistake_in_the_sweep_is_no_lost_work() -> None:
    """It is raised wherever it is made."""

    async def test(cut_request: CutRequest) -> None:
        seen = await cut_request(plain_app(), "POST /orders")
        if seen.cut is not None:
            await cut_request(plain_app(), "nonsense")

    with pytest.raises(BadSweep, match="test_orders: 'nonsense' is no request"):
        swept(test)


def test_a_test_that_makes_no_request_cannot_be_swept() -> None:
    """Its name is in the message."""

    async def test(_cut_request: CutRequest) -> None:
        """Do nothing."""

    with pytest.raises(BadSweep, match="test_orders: no request reached the app"):
        swept(test)


def test_pairs_cut_the_redrive_that_the_test_names() -> None:
    """Whether there is one is known when the test has run."""

    async def test(cut_request: CutRequest) -> None:
        async def redrive() -> None:
            await outside_world().call("post")

        seen = await cut_request(lossy(), "POST /orders", redrive=redrive)
        assert seen.outside.payloads("post")

    report = swept(test, pairs=True, most_pairs=5)

    assert report.passed
    assert report.pairs is not None
    assert report.pairs.run == 5
    with pytest.raises(BadSweep, match="test_orders: pairs cut the redrive"):
        swept(requires_the_post, pairs=True)


def test_random_choices_repeat_in_every_run() -> None:
    """And the suite's own go on where they were."""
    drawn: set[float] = set()

    async def test(cut_request: CutRequest) -> None:
        drawn.add(random.random())
        await cut_request(plain_app(), "POST /orders")

    state = random.getstate()
    swept(test)

    assert len(drawn) == 1
    assert random.getstate() == state


def test_an_answer_that_is_no_acknowledgement_has_to_be_meant() -> None:
    """A test that asks only what a 2xx promises would pass whatever the app does."""

    async def test(cut_request: CutRequest) -> None:
        await cut_request(plain_app(), "POST /orders")
        seen = await cut_request(plain_app(status=404), "POST /nope")
        assert not seen.acknowledged or seen.outside.payloads("post")

    told = (
        "test_orders: without a cut the answers were 202, 404, so not all was acknowledged; "
        r".*any_answer=True"
    )
    with pytest.raises(BadSweep, match=told):
        swept(test)
    report = swept(test, any_answer=True)

    assert report.passed
    assert [answer.status for answer in report.uncut_answers] == [202, 404]


def test_without_the_marker_there_is_nothing_to_cut() -> None:
    """The message names it."""
    cut_request = CutRequest(GENERIC)

    with pytest.raises(SweepError, match="at_every_await"):
        run_virtual(lambda: cut_request(plain_app(), "POST /orders"))
