"""The table of agreement."""

from platform_sim.lab.conformance.compare import Difference
from platform_sim.lab.conformance.table import as_json, as_text
from platform_sim.lab.conformance.verdict import Verdict

GOOD = Verdict(scenario="good", agrees=True, notes=("changed",))
BAD = Verdict(scenario="bad", agrees=False, differences=(Difference(at_s=1.0, text="late"),))
OTHER = Verdict(scenario="other_scenario", agrees=None, reason="why")


def test_every_scenario_has_a_line_and_what_is_not_claimed_stands_apart() -> None:
    """With first difference, changes to the profile, and reason."""
    assert as_text([GOOD, OTHER, BAD]).splitlines() == [
        "scenario        agrees  first difference",
        "good            yes     - (changed)",
        "bad             NO      late",
        "",
        "not claimed     reason",
        "other_scenario  why",
        "",
        (
            "1 agree, 1 disagree, 1 are not claimed (times within 0.15 s; events within 0.02 s in "
            "either order)"
        ),
    ]


def test_a_part_without_lines_is_left_out() -> None:
    """Only claimed ones, or only others."""
    assert "reason" not in as_text([GOOD])
    assert "agrees" not in as_text([OTHER])


def test_as_json_it_counts_and_lists() -> None:
    """The tolerances are part of it."""
    table = as_json([GOOD, OTHER, BAD])

    assert {name: table[name] for name in table if name != "scenarios"} == {
        "tolerance_s": 0.15,
        "either_order_s": 0.02,
        "agree": 1,
        "disagree": 1,
        "not_claimed": 1,
    }
    assert [each["scenario"] for each in table["scenarios"]] == ["good", "other_scenario", "bad"]
