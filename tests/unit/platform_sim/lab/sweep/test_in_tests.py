"""The sweep as a test calls it."""

import asyncio
from typing import Any

import pytest

from platform_sim.lab.sweep.errors import BadSweep
from platform_sim.lab.sweep.in_tests import CutSweep
from platform_sim.lab.sweep.outside import outside_world
from platform_sim.lab.sweep.stage import Aftermath
from platform_sim.lifetime.profile import GENERIC
from tests.support.swept import plain_app

CUT_SWEEP = CutSweep(GENERIC)


async def works(_scope: Any) -> None:
    """Go on after the answer."""
    await outside_world().call("post")


def make_lossy() -> Any:
    """Make an app that works after its answer."""
    return plain_app(works)


def posted(seen: Aftermath) -> None:
    """Require the post."""
    if seen.acknowledged:
        assert seen.outside.payloads("post") != []


def test_an_app_that_survives_returns_its_report() -> None:
    """An app, or what makes one."""
    for app in (plain_app(), plain_app):
        assert CUT_SWEEP(app, "POST /orders").passed


def test_an_app_that_loses_work_fails_with_the_report() -> None:
    """The message has the line and the task."""
    with pytest.raises(AssertionError) as failed:
        CUT_SWEEP(make_lossy, "POST /orders", json={"id": 1})

    text = str(failed.value)
    assert text.startswith("cut sweep of POST /orders of make_lossy (seed 1)")
    assert f"test_in_tests.py:{works.__code__.co_firstlineno + 2}" in text


def test_a_report_can_be_had_without_failing() -> None:
    """For an assertion of one's own."""
    report = CUT_SWEEP(make_lossy, "POST /orders", seed=5, must_survive=False)

    assert (report.passed, report.seed) == (False, 5)


def test_a_request_that_is_not_acknowledged_fails() -> None:
    """There is nothing that a cut could lose."""
    with pytest.raises(BadSweep, match="without a cut the answer was 404"):
        CUT_SWEEP(lambda: plain_app(status=404), "POST /nope", must_survive=False)


def test_check_redrive_and_pairs_reach_the_sweep() -> None:
    """A redrive that posts again survives every pair of cuts."""

    async def redrive() -> None:
        await outside_world().call("post")

    report = CUT_SWEEP(
        make_lossy,
        "POST /orders",
        check=posted,
        redrive=redrive,
        pairs=True,
        after_s=1.0,
        redrive_runs=1,
    )

    assert report.passed
    assert report.pairs is not None
    assert report.pairs.space > 0


def test_modules_that_are_installed_can_be_named_as_ones_own() -> None:
    """Then places are named in them."""

    async def sleeps(_scope: Any) -> None:
        await asyncio.sleep(1.0)

    report = CUT_SWEEP(
        lambda: plain_app(sleeps), "POST /orders", own=("asyncio",), must_survive=False
    )

    assert report.lines[-1].place.file == "asyncio/tasks.py"


def test_a_callable_without_a_signature_of_scope_receive_send_is_a_factory() -> None:
    """Also an instance of a class of one's own."""

    class App:
        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            await plain_app()(scope, receive, send)

    assert CUT_SWEEP(App(), "POST /orders").title == "POST /orders of App"
    assert CUT_SWEEP(App, "POST /orders").title.endswith("App")
