"""Scripts are data from people: defaults are filled in and mistakes named."""

import pytest

from platform_sim.world.script import Commit, Script, ScriptError, Step, parse_script, parse_steps


def test_the_nth_request_uses_step_n_and_the_last_step_repeats() -> None:
    """A script is never used up."""
    script = parse_script([{"status": 503}, {"status": 500}, {"status": 200}])

    assert [script.step(number).status for number in (1, 2, 3, 4, 9)] == [503, 500, 200, 200, 200]


@pytest.mark.parametrize(
    ("step", "commits"),
    [
        ({}, Commit.AFTER),
        ({"status": 204, "then": "hang"}, Commit.AFTER),
        ({"status": 503}, Commit.NEVER),
        ({"status": 422, "commit": "before"}, Commit.BEFORE),
        ({"commit": "never"}, Commit.NEVER),
    ],
)
def test_an_effect_happens_with_a_2xx_unless_the_step_says_otherwise(
    step: dict[str, object], commits: Commit
) -> None:
    """Default: commit just before a 2xx, never with anything else."""
    assert parse_script([step]).step(1).commits == commits


def test_a_script_may_say_how_repeats_are_treated() -> None:
    """The long form carries dedupe and its window next to the steps."""
    script = parse_script({"steps": [{"delay_s": 1}], "dedupe": False, "dedupe_window_s": 60})

    expected = Script(steps=(Step(delay_s=1.0),), dedupe=False, dedupe_window_s=60.0)
    assert expected == script


@pytest.mark.parametrize(
    ("source", "named"),
    [
        ([], r"length >= 1.*\$\.steps"),
        ([{"delay_s": -1}], r">= 0.*\$\.steps\[0\]\.delay_s"),
        ([{}, {"status": 700}], r"<= 599.*\$\.steps\[1\]\.status"),
        ([{"sleep": 1}], r"unknown field `sleep`.*\$\.steps\[0\]"),
        ([{"then": "explode"}], r"explode.*\$\.steps\[0\]\.then"),
        ([{"key_lease_s": 1}], r"key_lease_s` needs `commit"),
        ({"dedupe_window_s": 0}, r"> 0.*\$\.dedupe_window_s"),
        (7, r"Expected `object`"),
    ],
)
def test_a_mistake_is_named_with_its_place(source: object, named: str) -> None:
    """Whoever wrote the script can find what to change."""
    with pytest.raises(ScriptError, match=f"bad script: .*{named}"):
        parse_script(source)


@pytest.mark.parametrize("body", [b"", b"not json", b"[1]", b'{"amount": 3}', b"\xff"])
def test_a_payload_without_steps_carries_none(body: bytes) -> None:
    """Any payload is fine; only the key `receiver` means something."""
    assert parse_steps(body) is None


def test_a_payload_may_carry_its_own_steps() -> None:
    """One operation can be scripted without registering anything."""
    expected = (Step(status=422),)
    assert expected == parse_steps(b'{"amount": 3, "receiver": [{"status": 422}]}')


def test_broken_steps_in_a_payload_are_an_error() -> None:
    """A mistyped script must not pass for a working receiver."""
    with pytest.raises(ScriptError, match="steps"):
        parse_steps(b'{"receiver": "soon"}')
