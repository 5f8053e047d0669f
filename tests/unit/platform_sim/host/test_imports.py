"""Import strings: what they name, and what each mistake is answered with."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from platform_sim.host.imports import TargetError, load, load_app

APPS = """
class Held:
    async def app(self, scope, receive, send): ...

held = Held()
application = held.app
value = 3

def factory():
    return application

def failing():
    raise ValueError("OUTLAST_DESTINATIONS is not set")

def pair(one, two=2):
    return one
""".lstrip()


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A current directory with some modules, which is not importable yet."""
    (tmp_path / "some_apps.py").write_text(APPS)
    (tmp_path / "needy.py").write_text("import a_missing_library\n")
    (tmp_path / "broken.py").write_text("raise RuntimeError('at import')\n")
    (tmp_path / "some_package").mkdir()
    (tmp_path / "some_package" / "__init__.py").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    yield tmp_path
    for name in ("some_apps", "needy", "broken", "some_package"):
        sys.modules.pop(name, None)


@pytest.mark.usefixtures("directory")
def test_an_attribute_a_deeper_one_and_a_factorys_result_are_found() -> None:
    """In a module of the current directory, as uvicorn finds it."""
    app = load("some_apps:application")

    assert load("some_apps:held.app") == app
    assert load("some_apps:factory()") is app
    assert load_app("some_apps:application") is app
    assert load("some_apps:value") == 3


@pytest.mark.usefixtures("directory")
@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("some_apps", "is no import string: write module:attribute"),
        ("some_apps:application(1)", "is no import string"),
        ("some_aps:application", "no module 'some_aps': start in the directory that holds it"),
        ("some_package.apps:app", "no module 'some_package.apps'"),
        ("needy:app", "module needy needs a_missing_library, which is not installed"),
        ("broken:app", "importing broken raised RuntimeError: at import"),
        ("some_apps:aplication", "there is no 'aplication' in it: did you mean application"),
        ("some_apps:zzz", "there is no 'zzz' in it$"),
        ("some_apps:failing()", "raised ValueError: OUTLAST_DESTINATIONS is not set"),
    ],
)
def test_each_mistake_is_answered_with_its_remedy(target: str, message: str) -> None:
    """One sentence that says what to type instead."""
    with pytest.raises(TargetError, match=message):
        load(target)


@pytest.mark.usefixtures("directory")
@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("some_apps:value", "is no ASGI app but int, which is not callable"),
        ("some_apps:factory", r"if it is a factory, write some_apps:factory\(\)"),
        ("some_apps:pair", "takes no .scope, receive, send."),
    ],
)
def test_what_is_no_app_is_refused_before_it_is_served(target: str, message: str) -> None:
    """A factory without its parentheses is the usual mistake."""
    with pytest.raises(TargetError, match=message):
        load_app(target)


def test_what_has_no_signature_is_given_the_benefit_of_the_doubt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Compiled apps show none."""
    monkeypatch.setattr("platform_sim.host.imports.inspect.signature", _no_signature)

    assert load_app("builtins:print") is print


def _no_signature(app: object) -> None:
    raise ValueError(app)


@pytest.mark.usefixtures("directory")
def test_the_current_directory_is_added_once() -> None:
    """And comes first, so that one's own module wins."""
    load("some_apps:value")
    load("some_apps:value")

    assert sys.path[0] == str(Path.cwd())
    assert sys.path.count(str(Path.cwd())) == 1
