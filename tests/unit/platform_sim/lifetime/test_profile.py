"""Profiles: data that cites its source and cannot contradict itself."""

from dataclasses import replace

import pytest

from platform_sim.lifetime.errors import BadProfile
from platform_sim.lifetime.profile import (
    CLOUD_RUN,
    GENERIC,
    LAMBDA,
    PROFILES,
    VERCEL,
    WORKERS,
    ClockStart,
    CutMode,
    DisconnectRule,
    FloatingRule,
    Topic,
    find_profile,
)


def test_workers_is_the_reference() -> None:
    """30 s after the response or the disconnect, unregistered work cut, 15 min for a schedule."""
    assert (WORKERS.allowance_s, WORKERS.scheduled_limit_s) == (30.0, 900.0)
    assert WORKERS.shutdown_grace_s == 30.0
    assert WORKERS.clock_start is ClockStart.RESPONSE_OVER
    assert WORKERS.on_disconnect is DisconnectRule.ENDS_RESPONSE
    assert WORKERS.floating is FloatingRule.CUT
    assert (WORKERS.cut, WORKERS.cancel_grace_s) == (CutMode.CANCEL, 0.1)


def test_generic_is_a_plain_process() -> None:
    """Nothing is cut unless somebody sets a ceiling."""
    assert GENERIC.allowance_s is None
    assert GENERIC.floating is FloatingRule.HOLDS
    assert GENERIC.on_disconnect is DisconnectRule.IGNORED


def test_lambda_kills_at_one_timeout_for_all_and_freezes_what_nothing_holds() -> None:
    """The timeout counts from the request; an extension's hold lets registered work use it."""
    assert (LAMBDA.allowance_s, LAMBDA.clock_start) == (900.0, ClockStart.REQUEST)
    assert (LAMBDA.cut, LAMBDA.floating) == (CutMode.KILL, FloatingRule.FREEZES)
    assert (LAMBDA.scheduled_limit_s, LAMBDA.shutdown_grace_s) == (900.0, 0.5)
    assert LAMBDA.freezes


def test_vercel_cancels_at_the_function_s_own_limit() -> None:
    """Answer and work share it; unregistered work is lost with the request."""
    assert (VERCEL.allowance_s, VERCEL.clock_start) == (300.0, ClockStart.REQUEST)
    assert (VERCEL.cut, VERCEL.floating) == (CutMode.CANCEL, FloatingRule.CUT)
    assert not VERCEL.freezes


def test_cloud_run_grants_nothing_after_the_answer_and_loses_nothing_either() -> None:
    """Request-based billing: no CPU outside requests; the container is not stopped by a 504."""
    assert (CLOUD_RUN.allowance_s, CLOUD_RUN.answer_limit_s) == (0.0, 300.0)
    assert (CLOUD_RUN.cut, CLOUD_RUN.floating) == (CutMode.FREEZE, FloatingRule.FREEZES)
    assert CLOUD_RUN.freezes


@pytest.mark.parametrize("name", list(PROFILES))
def test_every_profile_is_found_by_its_name_and_cites_its_source(name: str) -> None:
    """A rule without a source is a guess."""
    profile = find_profile(name)

    assert profile.name == name
    assert set(profile.sources) == set(Topic)
    assert all("http" in source or "workerd" in source for source in profile.sources.values())
    assert profile.summary


def test_an_unknown_name_is_answered_with_those_there_are() -> None:
    """The remedy is in the message."""
    with pytest.raises(
        BadProfile, match="no profile 'worker'; there are: workers, lambda, vercel, "
    ):
        find_profile("worker")


@pytest.mark.parametrize(
    ("limit", "value"),
    [
        ("allowance_s", -1.0),
        ("scheduled_limit_s", -1.0),
        ("shutdown_grace_s", -1.0),
        ("cancel_grace_s", 0.0),
        ("cancel_grace_s", 31.0),
        ("allowance_s", float("inf")),
        ("answer_limit_s", float("nan")),
    ],
)
def test_numbers_that_contradict_each_other_are_refused(limit: str, value: float) -> None:
    """Checked when a profile is made, so also when one is changed."""
    changes: dict[str, float] = {limit: value}

    with pytest.raises(BadProfile, match="profile workers: "):
        replace(WORKERS, **changes)  # type: ignore[arg-type]
