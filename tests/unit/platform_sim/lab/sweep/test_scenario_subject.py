"""A scenario as a subject: cut, driven to rest, and judged by the promises."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from platform_sim.lab.scenario.errors import BadScenario
from platform_sim.lab.scenario.file import Scenario
from platform_sim.lab.scenario.product import ReplicaParts, WorldParts
from platform_sim.lab.scenario.reading import parse_scenario
from platform_sim.lab.sweep.errors import BadSweep
from platform_sim.lab.sweep.scenario_subject import ScenarioSubject
from platform_sim.lab.sweep.sweep import sweep
from platform_sim.lab.sweep.trial import Cuts, Kind
from platform_sim.wiring.lab import OutlastProduct
from tests.support.scenarios import ONE, world

OWN = frozenset({"handler", "storage"})


def subject(*parts: str, product: Any = None, **top: Any) -> ScenarioSubject:
    """Return a scenario as a subject."""
    return ScenarioSubject(
        parse_scenario(world(*parts, **top)), product or OutlastProduct(), own=OWN
    )


def test_resumptions_are_counted_from_the_first_one() -> None:
    """And named in the product's own code."""
    trial = subject(ONE).run(Cuts(recording=True))

    assert trial.resumptions == len(trial.places) > 5
    assert not trial.places[0].has_begun
    assert {place.file.partition("/")[0] for place in trial.places[1:]} >= {"handler", "storage"}
    assert (trial.place, trial.findings, trial.redrive_resumptions) == (None, (), 0)


def test_a_cut_is_finished_by_redrive() -> None:
    """Whatever the scenario says about when it stops running."""
    swept = subject(ONE, "[redrive]\nreplicas = 0\nuntil_s = 1.0\n")
    uncut = swept.run(Cuts())
    trial = swept.run(Cuts(request_at=uncut.resumptions - 2))

    assert trial.place is not None
    assert trial.redrive_resumptions > 5
    assert trial.findings == ()


def test_a_cut_redrive_is_finished_by_the_next() -> None:
    """Its claim is taken over in turn."""
    swept = subject(ONE)
    uncut = swept.run(Cuts())
    single = swept.run(Cuts(request_at=uncut.resumptions - 2))
    for point in (1, single.redrive_resumptions):
        pair = swept.run(Cuts(request_at=uncut.resumptions - 2, redrive_at=point))

        assert pair.redrive_place is not None
        assert pair.redrive_place.task == "the redrive run" or point > 1
        assert pair.findings == ()


class _Changed:
    """A product with one part in place of its own."""

    def __init__(self, part: str, other: Any) -> None:
        self._product = OutlastProduct()
        self._part, self._other = part, other
        self.check, self.words = self._product.check, self._product.words

    def open(self, scenario: Scenario, world: WorldParts) -> Any:
        """Open it."""
        opened = self._product.open(scenario, world)
        names = ("web", "redrive", "rows", "break_row", "operation_id")
        return SimpleNamespace(
            **{name: getattr(opened, name) for name in names} | {self._part: self._other}
        )


async def does_nothing(_replica: ReplicaParts) -> None:
    """Stand for a redrive that does nothing."""


def no_rows() -> Mapping[str, Mapping[str, Any]]:
    """Stand for a store that keeps nothing."""
    return {}


def test_a_product_without_redrive_is_found_out() -> None:
    """Everything that was acknowledged and cut is lost; what came before the answer is not."""
    report = sweep(subject(ONE, product=_Changed("redrive", does_nothing)))
    lost = [each for each in report.failures if Kind.LOST in each.kinds]

    assert report.uncut == ()
    assert lost != []
    assert "is still claimed when everything is at rest" in str(report)
    assert lost[0].point > 3
    assert any(place.file.startswith("handler/") for place in (each.place for each in lost))


def test_a_product_that_stores_nothing_is_found_out_without_a_cut() -> None:
    """Its very first acknowledgement is a broken promise."""
    trial = subject(ONE, product=_Changed("rows", no_rows)).run(Cuts())

    assert Kind.LOST in {finding.kind for finding in trial.findings}


def test_what_was_begun_has_its_time_before_the_world_ends() -> None:
    """A slow receiver's effect comes though everybody has gone, and doubles would be seen."""
    slow = '[receivers.r]\nreplies = [{ delay_s = 200.0 }]\n[[requests]]\nkey = "a"\n'
    swept = subject(slow + 'destination = "r"\n[handler]\nattempt_limit_s = 1.0\n')
    swept.run(Cuts())

    assert swept._uncut is not None
    assert swept._uncut.end.effects["r"] != {}


def test_replies_of_a_request_count_for_how_long_things_take() -> None:
    """They may be slower than the receiver's."""
    own = ONE.replace('key = "a"', 'key = "a"\nreplies = [{ delay_s = 3.0 }]')

    assert sweep(subject(own)).passed


def test_a_scenario_that_cannot_be_played_or_sends_nothing_cannot_be_swept() -> None:
    """One is no scenario, the other has nothing to cut."""
    with pytest.raises(BadScenario, match="profile"):
        subject(ONE, '[platform]\nprofile = "none"\n')
    with pytest.raises(BadSweep, match="sends no request"):
        subject("[receivers.r]\n")
