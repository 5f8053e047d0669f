"""Wiring: the handler is set up to live under the ceiling that was asked for."""

import math
import tomllib
from pathlib import Path

import pytest

from handler.app import from_environment
from handler.destinations import read_destinations
from handler.settings import settings_from
from platform_sim.host.errors import LaunchError
from platform_sim.host.imports import load
from platform_sim.host.options import LocalOptions
from platform_sim.wiring.local import (
    HANDLER,
    handler_environment,
    local_topology,
    store_environment,
    write_destinations,
)

FREE = LocalOptions(ceiling_s=3, budget_s=2.5, web_port=0, store_port=0, receiver_port=0)


def test_the_import_strings_name_what_they_should() -> None:
    """A rename in the product must not be found by its users."""
    assert [callable(load(name)) for name in (HANDLER.redrive, HANDLER.prepare)] == [True, True]
    assert load(HANDLER.app.removesuffix("()")) is from_environment


def test_at_full_scale_the_handler_keeps_its_defaults() -> None:
    """Only the skew margin may be smaller: one machine has one clock."""
    derived = settings_from(handler_environment(25.0))

    assert derived == settings_from({"OUTLAST_LEASE_S": "45"})


def test_a_tenth_of_the_budget_is_a_tenth_of_everything_that_is_part_of_it() -> None:
    """A scaled run shows what the full one would; only the reserve keeps what a write needs."""
    derived = settings_from(handler_environment(2.5))

    assert derived.attempt_limit_s == pytest.approx(2.0)
    assert derived.lease_in_force_s == pytest.approx(4.5)
    assert derived.skew_margin_s == pytest.approx(0.5)
    assert derived.row_backoff_base_s == pytest.approx(1.0)
    assert derived.redrive_budget_s == pytest.approx(5.0)
    assert derived.reserve_s == pytest.approx(0.25)


@pytest.mark.parametrize("budget_s", [0.2, 1.0, 60.0, 600.0])
def test_any_budget_gives_settings_that_the_handler_takes(budget_s: float) -> None:
    """The reserve is never the whole budget, and a large budget makes nothing else larger."""
    derived = settings_from(handler_environment(budget_s))

    assert 0 < derived.reserve_s <= min(1.0, budget_s / 2)
    assert derived.attempt_limit_s <= 20


@pytest.mark.parametrize(
    ("environ", "ours", "key"),
    [
        ({}, True, "local"),
        ({}, False, "local"),
        ({"AWS_ACCESS_KEY_ID": "mine"}, True, "local"),
        ({"AWS_ACCESS_KEY_ID": "mine"}, False, "mine"),
        ({"AWS_PROFILE": "mine"}, False, None),
        ({"AWS_PROFILE": "mine"}, True, "local"),
    ],
)
def test_a_store_of_ours_never_sees_the_users_credentials(
    environ: dict[str, str], key: str | None, *, ours: bool
) -> None:
    """A store that exists gets them if there are any, else the ones a local store takes."""
    variables = store_environment("http://s", environ, ours=ours)

    assert variables.get("AWS_ACCESS_KEY_ID") == key
    assert variables.get("AWS_PROFILE") == (None if ours else environ.get("AWS_PROFILE"))
    assert variables["AWS_ENDPOINT_URL_DYNAMODB"] == "http://s"


@pytest.mark.parametrize(
    ("environ", "first"),
    [
        ({}, "127.0.0.1"),
        ({"NO_PROXY": "a.example"}, "a.example"),
        ({"no_proxy": "b.example"}, "b.example"),
    ],
)
def test_no_proxy_leads_to_this_machine(environ: dict[str, str], first: str) -> None:
    """A company's proxy does not know the developer's loopback."""
    variables = store_environment("http://s", environ, ours=True)

    names = variables["NO_PROXY"].split(",")
    assert (names[0], names[-3:]) == (first, ["127.0.0.1", "localhost", "::1"])
    assert variables["no_proxy"] == variables["NO_PROXY"]


@pytest.mark.parametrize(
    ("environ", "region"),
    [
        ({}, "us-east-1"),
        ({"AWS_DEFAULT_REGION": "eu-west-1"}, "eu-west-1"),
        ({"AWS_REGION": "eu-north-1", "AWS_DEFAULT_REGION": "eu-west-1"}, "eu-north-1"),
    ],
)
def test_the_region_is_the_users_or_the_usual_one(environ: dict[str, str], region: str) -> None:
    """Both names say the same to every client."""
    variables = store_environment("http://s", environ, ours=False)

    assert (variables["AWS_REGION"], variables["AWS_DEFAULT_REGION"]) == (region, region)


def test_the_destinations_file_is_one_that_the_handler_reads(tmp_path: Path) -> None:
    """The local receiver with idempotency and without."""
    path = tmp_path / "destinations.toml"
    write_destinations(path, "http://127.0.0.1:9")
    found = read_destinations(path)

    assert {name: (one.url, one.idempotent) for name, one in found.items()} == {
        "receiver": ("http://127.0.0.1:9/hooks/receiver", True),
        "plain": ("http://127.0.0.1:9/hooks/plain", False),
    }
    assert math.isclose(found["receiver"].dedupe_window_s, 86_400)


def test_what_the_user_has_set_wins_over_what_is_derived(tmp_path: Path) -> None:
    """Every OUTLAST_ variable but the budget, which is an option of its own."""
    environ = {"OUTLAST_LEASE_S": "9", "OUTLAST_DESTINATIONS": "mine.toml", "PATH": "/bin"}
    topology = local_topology(FREE, environ, tmp_path)

    environment = topology.environment
    assert environment["OUTLAST_LEASE_S"] == "9"
    assert environment["OUTLAST_DESTINATIONS"] == "mine.toml"
    assert (environment["OUTLAST_BUDGET_S"], environment["PATH"]) == ("2.5", "/bin")
    assert list(tmp_path.iterdir()) == []


def test_processes_are_told_where_store_and_receiver_are(tmp_path: Path) -> None:
    """The destinations file outlives the start, in the folder that was given."""
    topology = local_topology(FREE, {}, tmp_path)

    environment = topology.environment
    written = tomllib.loads(Path(environment["OUTLAST_DESTINATIONS"]).read_text("utf-8"))
    assert written["destinations"]["receiver"]["url"] == f"{topology.receiver_url}/hooks/receiver"
    assert environment["AWS_ENDPOINT_URL_DYNAMODB"] == topology.store_url
    assert topology.redrive_limit_s == pytest.approx(6.0)


def test_an_app_of_the_users_own_is_run_in_place_of_the_handler(tmp_path: Path) -> None:
    """Everything around it stays the same."""
    own = LocalOptions(app="mine:app", web_port=0, store_port=0, receiver_port=0)
    topology = local_topology(own, {}, tmp_path)

    assert (topology.programs.app, topology.programs.redrive) == ("mine:app", HANDLER.redrive)


def test_a_variable_that_cannot_be_used_stops_before_anything_starts(tmp_path: Path) -> None:
    """The handler's own message, with variable and remedy."""
    with pytest.raises(LaunchError, match="OUTLAST_LEASE_S: 'soon' cannot be used"):
        local_topology(FREE, {"OUTLAST_LEASE_S": "soon"}, tmp_path)
