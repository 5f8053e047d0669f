"""Options are checked before anything starts; what is left out is derived."""

import math
from typing import Any

import pytest

from platform_sim.host.errors import OptionError
from platform_sim.host.options import LocalOptions, checked
from platform_sim.host.topology import Programs

PROGRAMS = Programs(app="app:it", redrive="r:it", prepare="p:it")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ceiling_s": 0}, "--ceiling-s: 0 s cannot work. Give seconds above 0, such as 30."),
        ({"budget_s": -1}, "--budget-s: -1 s cannot work. Give seconds above 0, such as 25."),
        ({"redrive_every_s": math.nan}, "--redrive-every-s: nan s cannot work. Give seconds"),
        ({"ceiling_s": math.inf}, "--ceiling-s: inf s cannot work."),
        ({"cut": "maim"}, "--cut: there is no 'maim'. Use one of cancel, kill, process, freeze."),
        ({"store": "localhost:8000"}, "--store: 'localhost:8000' is no address. Give one like"),
        (
            {"profile": "mars"},
            "--profile: no profile 'mars'; there are: workers, lambda, vercel, cloud-run, generic",
        ),
        ({"web_port": -1}, "--web-port: -1 is no port. Use 0 (any free one) to 65535."),
        ({"store_port": 65_536}, "--store-port: 65536 is no port."),
        ({"receiver_port": 99_999}, "--receiver-port: 99999 is no port."),
    ],
)
def test_a_value_that_cannot_work_is_named_with_its_remedy(
    options: dict[str, Any], message: str
) -> None:
    """One sentence says what to type instead."""
    with pytest.raises(OptionError) as refused:
        checked(LocalOptions(**options))

    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("ceiling_s", "budget_s", "warned"), [(3, 2.9, False), (3, 3, True), (30, 31, True)]
)
def test_a_budget_that_reaches_the_ceiling_is_a_warning(
    ceiling_s: float, budget_s: float, *, warned: bool
) -> None:
    """Seeing passes cut is a use of the emulator, not a mistake."""
    warnings = checked(LocalOptions(ceiling_s=ceiling_s, budget_s=budget_s))

    assert [f"of {ceiling_s:g} s" in warning for warning in warnings] == [True] * warned


@pytest.mark.parametrize(
    ("options", "budget_s"),
    [
        (LocalOptions(), 25),
        (LocalOptions(ceiling_s=3), 2.5),
        (LocalOptions(ceiling_s=300), 25),
        (LocalOptions(budget_s=7), 7),
        (LocalOptions(profile="generic"), 25),
    ],
)
def test_the_budget_keeps_its_margin_under_the_ceiling(
    options: LocalOptions, budget_s: float
) -> None:
    """25 s under 30 s, scaled down with the ceiling and never above 25 s by itself."""
    assert checked(options) == []
    assert options.budget_in_force_s == pytest.approx(budget_s)


def test_a_store_that_exists_takes_no_port() -> None:
    """Its address is used as given."""
    options = LocalOptions(web_port=0, receiver_port=0, store="http://127.0.0.1:8000")
    topology = options.topology(PROGRAMS, redrive_limit_s=9)

    assert (topology.store_port, topology.store_url) == (None, "http://127.0.0.1:8000")


def test_free_ports_are_settled_and_reach_the_addresses() -> None:
    """What is printed is what the processes will bind."""
    options = LocalOptions(web_port=0, store_port=0, receiver_port=0)
    topology = options.topology(PROGRAMS, redrive_limit_s=9)

    ports = {topology.web_port, topology.store_port, topology.receiver_port}
    assert len(ports - {0, None}) == 3
    assert topology.store_url == f"http://127.0.0.1:{topology.store_port}"
    assert topology.web_url == f"http://127.0.0.1:{topology.web_port}"
    assert topology.receiver_url == f"http://127.0.0.1:{topology.receiver_port}"
