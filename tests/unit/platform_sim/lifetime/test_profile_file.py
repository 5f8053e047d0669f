"""Profiles of one's own: what a file may say, and how it is told that it may not."""

from pathlib import Path

import pytest

from platform_sim.lifetime.errors import BadProfile
from platform_sim.lifetime.profile import LAMBDA, WORKERS, CutMode, Topic
from platform_sim.lifetime.profile_file import load_profile, resolve_profile


def written(folder: Path, text: str) -> Path:
    """Write a profile's file."""
    path = folder / "mine.toml"
    path.write_text(text)
    return path


def test_a_file_overrides_some_rules_and_cites_itself_for_them(tmp_path: Path) -> None:
    """What it does not override keeps its value and its source."""
    path = written(tmp_path, 'extends = "workers"\nallowance_s = 10\ncut = "kill"\n')

    profile = resolve_profile(str(path))

    assert (profile.name, profile.allowance_s, profile.cut) == ("mine", 10.0, CutMode.KILL)
    assert profile.summary == f"workers with allowance_s, cut, from {path}"
    assert profile.on_disconnect is WORKERS.on_disconnect
    assert profile.sources[Topic.ALLOWANCE] == profile.sources[Topic.UNSETTLED] == str(path)
    assert profile.sources[Topic.DISCONNECT] == WORKERS.sources[Topic.DISCONNECT]


def test_a_file_may_name_itself_and_lift_limits(tmp_path: Path) -> None:
    """TOML has no null: the word is unbounded."""
    text = 'extends = "lambda"\nname = "slow"\nsummary = "long"\nscheduled_limit_s = "unbounded"\n'

    profile = load_profile(written(tmp_path, text))

    assert (profile.name, profile.summary) == ("slow", "long")
    assert profile.scheduled_limit_s is None
    assert profile.sources[Topic.ALLOWANCE] == LAMBDA.sources[Topic.ALLOWANCE]


def test_a_file_that_changes_nothing_says_so(tmp_path: Path) -> None:
    """It is the platform under another name."""
    profile = load_profile(written(tmp_path, 'extends = "generic"\n'))

    assert profile.summary.startswith("generic with nothing changed, from ")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "extends must name one of workers, lambda, vercel, cloud-run, generic, not left out"),
        ('extends = "moon"', "extends must name one of workers, .*not 'moon'"),
        ("extends = []", r"extends must name one of .*not \[\]"),
        (
            'extends = "workers"\nallowance = 3',
            "key allowance: did you mean allowance_s\\? Keys are",
        ),
        ('extends = "workers"\nzzz = 3', "unknown key zzz: Keys are: extends, name, "),
        (
            'extends = "workers"\ncut = "explode"',
            "cut must be one of cancel, kill, process, freeze",
        ),
        ('extends = "workers"\ncut = []', r"cut must be one of .*not \[\]"),
        ('extends = "workers"\nallowance_s = "long"', "allowance_s must be a number of seconds or"),
        ('extends = "workers"\nallowance_s = true', "allowance_s must be .*, not True"),
        ('extends = "workers"\nallowance_s = -1', "mine.toml: profile mine: allowance_s must be"),
        ('extends = "workers"\nallowance_s = inf', "allowance_s must be .*, not inf"),
        ('extends = "workers"\nshutdown_grace_s = "unbounded"', "must be a number of seconds, not"),
        ('extends = "workers"\nname = ""', "name must be a text, not ''"),
        ("extends = ", "mine.toml is no TOML: "),
    ],
)
def test_what_no_profile_can_say_is_answered_with_what_it_can(
    tmp_path: Path, text: str, message: str
) -> None:
    """The message names the file and the key."""
    with pytest.raises(BadProfile, match=message) as refused:
        load_profile(written(tmp_path, text))

    assert "mine.toml" in str(refused.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    """With the system's reason."""
    with pytest.raises(BadProfile, match=r"profile .*none\.toml: No such file"):
        resolve_profile(str(tmp_path / "none.toml"))


def test_bytes_that_are_no_text_are_no_toml(tmp_path: Path) -> None:
    """Not a traceback."""
    path = tmp_path / "mine.toml"
    path.write_bytes(b"\xff\xfe")

    with pytest.raises(BadProfile, match="is no TOML"):
        load_profile(path)
