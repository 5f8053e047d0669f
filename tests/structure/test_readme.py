"""The README says only what is so."""

import re
from pathlib import Path

import msgspec

from handler.settings import Settings, env_name

_README = Path(__file__).parents[2] / "README.md"
_ROW = re.compile(r"^\| `([A-Z_]+)` \| ([^|]+) \|", re.MULTILINE)
_IN_WORDS = {"LEASE_S": "1.8 budgets", "HEARTBEAT_EVERY_S": "off"}


def _rows() -> dict[str, str]:
    return {name: default.strip() for name, default in _ROW.findall(_text())}


def test_the_settings_table_names_every_setting_and_no_other() -> None:
    """A setting that is added, renamed or dropped changes the README in the same commit."""
    names = {env_name(field.name).removeprefix("OUTLAST_") for field in _fields()}

    assert names == set(_rows())


def test_the_settings_table_gives_the_defaults_that_are_in_force() -> None:
    """A default stands in the code; the README repeats it and is held to it."""
    defaults = {env_name(field.name).removeprefix("OUTLAST_"): field.default for field in _fields()}
    expected = {name: _IN_WORDS.get(name, _shown(value)) for name, value in defaults.items()}

    assert expected == _rows()


def _shown(value: object) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def test_the_report_of_the_background_task_is_what_really_comes_out() -> None:
    """The README's failing example is the same one that `docs/sweep.md` shows and a test runs."""
    shown = re.search(r"<!-- sweep: .*?```console\n(.*?)```", _text(), re.DOTALL)
    document = (_README.parent / "docs" / "sweep.md").read_text("utf-8")

    assert shown is not None
    assert shown[1] in document


def test_every_file_the_readme_names_exists() -> None:
    """A link or a path in a command that leads nowhere is a lie."""
    named = set(re.findall(r"(?:docs|tests)/[\w./-]+\.(?:md|toml)", _text()))
    missing = {name for name in named if not (_README.parent / name).exists()}

    assert named
    assert missing == set()


def _text() -> str:
    return _README.read_text("utf-8")


def _fields() -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(Settings)
