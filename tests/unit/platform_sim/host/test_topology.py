"""The topology: which process is started how, and which of them may be started again."""

from dataclasses import replace
from pathlib import Path

import pytest

from platform_sim.host.child import ChildSpec
from platform_sim.host.topology import Programs, Topology

PLAIN = Topology(
    programs=Programs(app="app:it", redrive="r:it", prepare="p:it"),
    web_port=1,
    receiver_port=2,
    store_port=3,
    store_url="http://127.0.0.1:3",
    ceiling_s=3,
    cut="kill",
    redrive_every_s=2,
    redrive_limit_s=6,
    environment={"A": "b"},
)


def line(spec: ChildSpec | None) -> str:
    """Return a child's command line after `python -m platform_sim.host.`."""
    assert spec is not None
    return " ".join(spec.argv[2:]).removeprefix("platform_sim.host.")


def test_each_process_gets_what_it_needs_in_the_order_of_need() -> None:
    """The command lines are the contract with the processes."""
    assert line(PLAIN.store()) == "store_server --port 3 --prepare p:it"
    assert [line(spec) for spec in PLAIN.others()] == [
        "receiver_server --port 2",
        "server --app app:it --port 1 --cut kill --shutdown-grace-s 2 --ceiling-s 3",
        "cron --call r:it --every-s 2 --limit-s 6",
    ]


def test_a_profile_and_a_record_are_passed_to_the_web_process() -> None:
    """Without a ceiling of its own the profile's holds."""
    other = replace(PLAIN, ceiling_s=None, profile="workers", record=Path("/tmp/r"))

    web = line(other.others()[1])
    assert web.endswith("--shutdown-grace-s 2 --profile workers --record /tmp/r")


def test_the_store_alone_is_not_started_again() -> None:
    """Everything else can come back without making work vanish."""
    specs = [PLAIN.store(), *PLAIN.others()]

    assert [(spec.role, spec.restart, spec.tier) for spec in specs if spec] == [
        ("store", False, 0),
        ("receiver", True, 0),
        ("web", True, 1),
        ("redrive", True, 1),
    ]
    assert all(spec.environment == {"A": "b"} for spec in specs if spec)


@pytest.mark.parametrize(
    ("store_port", "store_url", "steps"),
    [
        (3, "http://127.0.0.1:3", ["check"]),
        (None, "http://localhost:8000", ["prepare", "check"]),
        (None, "https://dynamodb.eu-west-1.amazonaws.com", ["prepare"]),
    ],
)
def test_a_store_is_prepared_unless_it_is_ours_and_checked_when_it_is_local(
    store_port: int | None, store_url: str, steps: list[str]
) -> None:
    """Our own prepares itself; the real service needs no proof of atomicity."""
    topology = replace(PLAIN, store_port=store_port, store_url=store_url)

    assert [spec.role for spec in topology.preparations()] == steps
    assert (topology.store() is None) == (store_port is None)
