"""A single call: the function named by the command line, and no other."""

import sys
from types import ModuleType

import pytest

from platform_sim.host.call import main


def test_the_function_that_is_named_is_called_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """By argument, or by the process's own command line."""
    calls: list[str] = []
    module = ModuleType("some_module")
    module.prepare = lambda: calls.append("prepared")  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "some_module", module)
    main(["some_module:prepare"])
    monkeypatch.setattr(sys, "argv", ["call", "some_module:prepare"])
    main()

    assert calls == ["prepared", "prepared"]


def test_a_failure_is_one_line_and_exit_code_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever reads it needs the reason, not our stack."""

    def prepare() -> None:
        message = "no such store"
        raise ConnectionError(message)

    module = ModuleType("some_module")
    module.prepare = prepare  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "some_module", module)
    with pytest.raises(SystemExit) as ended:
        main(["some_module:prepare"])

    assert ended.value.code == 1
    assert capsys.readouterr().err == "some_module:prepare: no such store\n"
