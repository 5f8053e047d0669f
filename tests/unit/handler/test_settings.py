"""Settings: defaults as stated, one variable for each, errors that name variable and remedy."""

import msgspec
import pytest

from handler.errors import ConfigurationError
from handler.settings import Settings, env_name, settings_from


def test_the_defaults_are_the_stated_ones() -> None:
    """25 s under a 30 s allowance, 1 s reserve, 20 s an attempt, a lease of 1.8 budgets."""
    settings = settings_from({})

    assert (settings.budget_s, settings.reserve_s, settings.attempt_limit_s) == (25.0, 1.0, 20.0)
    assert (settings.lease_in_force_s, settings.skew_margin_s) == (45.0, 5.0)
    assert (settings.lifetime, settings.table) == ("strict", "outlast")


def test_every_field_is_read_from_its_variable() -> None:
    """`OUTLAST_<FIELD>` sets the field; surrounding blanks are dropped, blank means unset."""
    environment = {
        "OUTLAST_BUDGET_S": " 2.5 ",
        "OUTLAST_LEASE_S": "7",
        "OUTLAST_SHARD_COUNT": "8",
        "OUTLAST_LIFETIME": "lenient",
        "OUTLAST_TABLE": "markers",
        "OUTLAST_RESERVE_S": "  ",
        "OUTLAST_DESTINATIONS": "/etc/not-a-setting.toml",
    }
    expected = Settings(
        budget_s=2.5, lease_s=7.0, shard_count=8, lifetime="lenient", table="markers"
    )

    assert expected == settings_from(environment)


def test_a_lease_of_zero_is_a_lease() -> None:
    """0 is a value, not "unset": firing a lease early is safe, so it is allowed."""
    assert settings_from({"OUTLAST_LEASE_S": "0"}).lease_in_force_s == 0.0


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("OUTLAST_BUDGET_S", "abc"),
        ("OUTLAST_BUDGET_S", "0"),
        ("OUTLAST_BUDGET_S", "-1"),
        ("OUTLAST_BUDGET_S", "inf"),
        ("OUTLAST_BUDGET_S", "nan"),
        ("OUTLAST_RESERVE_S", "-0.1"),
        ("OUTLAST_BACKOFF_JITTER", "1.5"),
        ("OUTLAST_MAX_PASSES", "0"),
        ("OUTLAST_MAX_PASSES", "2.5"),
        ("OUTLAST_SHARD_COUNT", "101"),
        ("OUTLAST_LIFETIME", "loose"),
        ("OUTLAST_TABLE", "ab"),
        ("OUTLAST_LEASE_S", "soon"),
        ("OUTLAST_MAX_PAYLOAD_BYTES", "400000"),
        ("OUTLAST_REDRIVE_BUDGET_S", "1.5"),
    ],
)
def test_an_unusable_value_is_refused_naming_variable_and_remedy(variable: str, text: str) -> None:
    """The operator reads which variable it was, what was wrong and what to write instead."""
    with pytest.raises(ConfigurationError) as caught:
        settings_from({variable: text})

    assert variable == caught.value.field
    assert str(caught.value).startswith(f"{variable}: ")
    assert caught.value.remedy
    assert caught.value.remedy in str(caught.value)


def test_a_reserve_that_leaves_no_budget_is_refused() -> None:
    """Two values that contradict each other name both."""
    with pytest.raises(ConfigurationError, match=r"OUTLAST_RESERVE_S.*OUTLAST_BUDGET_S"):
        settings_from({"OUTLAST_RESERVE_S": "3", "OUTLAST_BUDGET_S": "3"})


def test_a_redrive_that_could_start_nothing_is_refused() -> None:
    """A run's budget must hold its reserve and the shortest pass, or it would never deliver."""
    with pytest.raises(ConfigurationError, match=r"OUTLAST_REDRIVE_BUDGET_S.*OUTLAST_MIN_PASS_S"):
        Settings(redrive_budget_s=2.9, min_pass_s=2.0, reserve_s=1.0)


def test_variable_names_follow_the_fields() -> None:
    """There is no second list of names that could drift."""
    names = {field.name for field in msgspec.structs.fields(Settings)}

    assert {f"OUTLAST_{name.upper()}" for name in names} == {env_name(name) for name in names}
