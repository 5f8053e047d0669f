"""Every scenario file of ours passes; a wrong expectation in one is reported."""

import json
import re
from pathlib import Path

import msgspec
import pytest

from platform_sim.lab.scenario.expectations import Expect, Totals
from platform_sim.lab.scenario.reading import parse_scenario, read_scenario
from platform_sim.lab.scenario.verdict import judged
from platform_sim.wiring.lab import OutlastProduct

HERE = Path(__file__).parent
FILES = sorted(HERE.glob("*.toml"))
AS_TESTS = {"01", "02", "35", "36", "37", "38"}
"""Cases that are about the lifetime, the local store or the harness: tests, not scenarios."""


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_scenario_holds(path: Path) -> None:
    """Everything it expects and every invariant."""
    verdict = judged(read_scenario(path), OutlastProduct())

    assert (verdict.failures, {k: v for k, v in verdict.invariants.items() if v}) == ([], {})


def test_every_open_case_has_a_file_or_is_named_as_a_test() -> None:
    """All 38; `docs/scenarios.md` says where those are that are tests."""
    numbers = {
        found.group(1) for path in FILES if (found := re.match(r"o(\d\d)_", path.stem)) is not None
    }
    docs = (HERE.parents[1] / "docs" / "scenarios.md").read_text("utf-8")

    assert numbers | AS_TESTS == {f"{number:02}" for number in range(1, 39)}
    assert numbers & AS_TESTS == set()
    assert all(f"O{number}" in docs for number in AS_TESTS)


@pytest.mark.parametrize("middlewares", [0, 1, 2])
def test_o05_the_result_is_the_same_behind_any_number_of_middlewares(middlewares: int) -> None:
    """BaseHTTPMiddleware changes disconnects and background work; ours does not care."""
    scenario = read_scenario(HERE / "o05_client_hangs_up_with_the_202.toml")
    platform = msgspec.structs.replace(scenario.platform, middlewares=middlewares)
    verdict = judged(msgspec.structs.replace(scenario, platform=platform), OutlastProduct())

    assert verdict.passed, verdict.failures


@pytest.mark.parametrize(
    ("file", "expect", "failure"),
    [
        (
            "o11_do_not_sleep_into_the_limit",
            Expect(operation="a", state="delivered"),
            "a: state: expected delivered, seen undelivered",
        ),
        (
            "o12_every_wire_request_is_counted",
            Expect(operation="a", attempt_starts_s=(0.0, 3.5)),
            "a: attempt_starts_s: expected [0.0, 3.5], seen [0.0, 3.5, 7.5]",
        ),
        (
            "o28_timeout_shorter_than_the_receiver",
            Expect(operation="a", at_s=3.0, effects=0, wire=2),
            "a at 3 s: effects: expected 0, seen 1",
        ),
        (
            "o17_same_key_other_body",
            Expect(operation="other", answers=(202,)),
            "other: answers: expected [202], seen [422]",
        ),
    ],
)
def test_a_wrong_expectation_is_reported(file: str, expect: Expect, failure: str) -> None:
    """Expected against seen, in one line."""
    scenario = read_scenario(HERE / f"{file}.toml")
    verdict = judged(msgspec.structs.replace(scenario, expect=(expect,)), OutlastProduct())

    assert not verdict.passed
    assert list(verdict.failures) == [failure]


def test_a_wrong_total_is_reported() -> None:
    """Also over everything together."""
    scenario = read_scenario(HERE / "o26_two_runs_one_tick.toml")
    wrong = Totals(states={"delivered": 19}, counts={"claim_lost": 0})
    verdict = judged(msgspec.structs.replace(scenario, totals=(wrong,)), OutlastProduct())

    assert list(verdict.failures) == [
        "totals: states.delivered: expected 19, seen 20",
        "totals: counts.claim_lost: expected 0, seen 20",
    ]


@pytest.mark.parametrize("seed", [1, 99])
@pytest.mark.parametrize(
    "file", ["lease_of_zero", "o07_term_with_four_in_flight", "o22_batch_of_50"]
)
def test_the_same_seed_gives_the_same_run(file: str, seed: int) -> None:
    """To the byte of what `--json` prints."""
    scenario = msgspec.structs.replace(read_scenario(HERE / f"{file}.toml"), seed=seed)
    first, second = (json.dumps(judged(scenario, OutlastProduct()).as_dict("x")) for _ in range(2))

    assert first == second


@pytest.mark.parametrize("seed", [2, 3, 4, 5])
@pytest.mark.parametrize(
    "path",
    [path for path in FILES if path.stem != "o24_outage_ends"],  # a thousand operations
    ids=lambda path: path.stem,
)
def test_the_invariants_hold_under_any_seed(path: Path, seed: int) -> None:
    """Jitter and ids change; the promises do not."""
    scenario = msgspec.structs.replace(read_scenario(path), seed=seed)
    verdict = judged(scenario, OutlastProduct())

    assert {k: v for k, v in verdict.invariants.items() if v} == {}


def test_the_documented_example_passes() -> None:
    """The page shows a file that works as it stands."""
    docs = (HERE.parents[1] / "docs" / "scenarios.md").read_text("utf-8")
    example = re.search(r"```toml\n(.*?)```", docs, re.DOTALL)
    assert example is not None

    verdict = judged(parse_scenario(example.group(1)), OutlastProduct())

    assert verdict.passed, verdict.failures
