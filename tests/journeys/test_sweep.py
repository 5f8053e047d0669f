"""The handler and redrive survive a cut at every await, single and in pairs."""

import pytest

from platform_sim.lab.scenario.reading import parse_scenario
from platform_sim.lab.sweep.report import SweepReport
from platform_sim.lab.sweep.scenario_subject import ScenarioSubject
from platform_sim.lab.sweep.sweep import sweep
from platform_sim.wiring.lab import OutlastProduct

ASKED = '[[requests]]\nkey = "a"\ndestination = "r"\n'
HEALTHY = "[receivers.r]\n"
COMMITS_THEN_HANGS = '{ commit = "before", then = "hang" }'
PLAIN = "idempotent = false\n"

SCENARIOS = {
    "happy path": ASKED + HEALTHY,
    "503, then ok": ASKED + HEALTHY + "replies = [{ status = 503 }, {}]\n",
    "commits, then hangs": ASKED + HEALTHY + f"replies = [{COMMITS_THEN_HANGS}, {{}}]\n",
    "asked again by the client": ASKED + "repeats_at_s = [0.0, 1.0]\n" + HEALTHY,
    "lease of 0": ASKED + HEALTHY + "[handler]\nlease_s = 0.0\nheartbeat_every_s = 1.0\n",
    "no idempotency": ASKED + HEALTHY + PLAIN,
    "no idempotency, can be asked": (
        ASKED + HEALTHY + PLAIN + f"lookup = true\nreplies = [{COMMITS_THEN_HANGS}, {{}}]\n"
    ),
    "refuses": ASKED + HEALTHY + "replies = [{ status = 422 }]\n",
    "a middleware, and cut by killing": (
        ASKED + HEALTHY + '[platform]\nmiddlewares = 1\ncut = "kill"\n'
    ),
}


def swept(name: str, *, most_pairs: int | None = None) -> SweepReport:
    """Sweep one of the scenarios."""
    text = f'name = "{name}"\nrun_for_s = 300.0\n{SCENARIOS[name]}'
    subject = ScenarioSubject(
        parse_scenario(text), OutlastProduct(), own=frozenset({"handler", "storage"})
    )
    return sweep(subject, most_pairs=most_pairs)


@pytest.mark.parametrize("name", SCENARIOS)
def test_what_is_acknowledged_survives_a_cut_at_every_await(name: str) -> None:
    """Promise 1, and with it all the others: no cut loses, doubles or breaks anything."""
    report = swept(name)

    assert report.passed, str(report)
    assert report.resumptions >= 12


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_cut_redrive_after_each_cut_is_survived_too(name: str) -> None:
    """Sixty pairs drawn from each space; one whole space is run below."""
    report = swept(name, most_pairs=60)

    assert report.passed, str(report)
    assert report.pairs is not None
    assert (report.pairs.run, report.pairs.space >= 60) == (60, True)


def test_every_pair_of_the_happy_path_is_survived() -> None:
    """The whole product space of cuts of the request and of the redrive after it."""
    report = swept("happy path", most_pairs=10_000)

    assert report.passed, str(report)
    assert report.pairs is not None
    assert report.pairs.is_exhaustive
    assert report.pairs.space > 100
