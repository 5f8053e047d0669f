"""The web process's options, and what it says when it cannot start."""

import re
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from platform_sim.host import server
from platform_sim.host.front.messages import Order
from platform_sim.host.server import ServerOptions, main
from platform_sim.host.signals import Stopped
from platform_sim.lifetime.profile import GENERIC, WORKERS, CutMode
from platform_sim.view.recorder import Tee


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[ServerOptions]:
    """Collect the options instead of serving."""
    seen: list[ServerOptions] = []

    async def serve(app: Any, options: ServerOptions, observer: Any, log: Any) -> None:
        assert callable(app)
        assert (log is None) is (options.record is None)
        assert isinstance(observer, Tee)
        seen.append(options)

    monkeypatch.setattr(server, "serve", serve)
    monkeypatch.setattr(server, "watch_lifeline", lambda: None)
    return seen


def test_the_profile_decides_what_no_option_changes(told: list[ServerOptions]) -> None:
    """Defaults: workers on the loopback address, nothing recorded, no access log."""
    main(["--app", "tests.support.served:app"])

    (options,) = told
    assert options.profile == WORKERS
    assert (options.host, options.port) == ("127.0.0.1", 8787)
    assert (options.record, options.access_log) == (None, False)


def test_every_limit_can_be_set(told: list[ServerOptions], tmp_path: Path) -> None:
    """The ceiling is configurable everywhere; zero is a ceiling too."""
    main(
        [
            *("--app", "tests.support.served:app", "--host", "::1", "--port", "1"),
            *("--profile", "generic", "--ceiling-s", "0", "--cut", "kill"),
            *("--cancel-grace-s", "0.5", "--shutdown-grace-s", "2"),
            *("--record", str(tmp_path / "record"), "--access-log"),
        ]
    )

    (options,) = told
    profile = options.profile
    assert (profile.name, profile.sources) == (GENERIC.name, GENERIC.sources)
    assert (profile.allowance_s, profile.cut) == (0.0, CutMode.KILL)
    assert (profile.cancel_grace_s, profile.shutdown_grace_s) == (0.5, 2.0)
    assert (options.host, options.port, options.access_log) == ("::1", 1, True)
    assert options.record == tmp_path / "record"
    assert options.record.exists()


@pytest.mark.parametrize("interrupted", [False, True])
def test_a_cut_that_takes_the_process_along_needs_a_front(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    interrupted: bool,  # noqa: FBT001  a parameter of the test
) -> None:
    """The ready line is this process's; whoever stops it before that gets exit code 0."""
    orders: list[Order] = []

    async def serve_behind_front(order: Order, listener: socket.socket, up: Any) -> str:
        orders.append(order)
        if interrupted:
            raise Stopped("SIGTERM")
        up()
        return "SIGTERM"

    monkeypatch.setattr(server, "serve_behind_front", serve_behind_front)
    monkeypatch.setattr(server, "watch_lifeline", lambda: None)
    record = ("--record", str(tmp_path / "run.jsonl")) if interrupted else ()
    arguments = ["--app", "main:app", "--cut", "process", "--port", "0", "--stall-s", "0", *record]
    if interrupted:
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 0
    else:
        main(arguments)

    (order,) = orders
    assert (order.app, order.profile.cut) == ("main:app", CutMode.PROCESS)
    assert (order.record, order.stall_s) == (record[1] if record else None, None)
    assert capsys.readouterr().out.count('"ready":"web"') == (not interrupted)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--app", "nowhere:app"], "outlast: nowhere:app: no module 'nowhere': start in the "),
        (
            ["--app", "tests.support.served:app", "--profile", "worker"],
            "outlast: no profile 'worker'; there are: workers, lambda, vercel, cloud-run, generic",
        ),
        (
            ["--app", "tests.support.served:app", "--cancel-grace-s", "0"],
            "outlast: profile workers: cancel_grace_s must be above 0",
        ),
    ],
)
def test_what_cannot_be_started_is_one_sentence(
    told: list[ServerOptions],
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    """And exit code 2."""
    with pytest.raises(SystemExit) as stopped:
        main(arguments)

    assert stopped.value.code == 2
    assert capsys.readouterr().err.startswith(message)
    assert told == []


def test_a_taken_port_is_one_sentence_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Found before the app is asked to start."""
    monkeypatch.setattr(server, "watch_lifeline", lambda: None)
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(SystemExit) as stopped:
        main(["--app", "tests.support.served:app", "--port", str(taken.getsockname()[1])])

    assert stopped.value.code == 2
    (sentence,) = capsys.readouterr().err.splitlines()
    assert re.match(r"outlast: port \d+ cannot be used \(address already in use\)", sentence)


def test_an_app_that_cannot_be_made_shows_where_it_failed(
    told: list[ServerOptions],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The app's own traceback, and the sentence last."""
    (tmp_path / "unmakeable.py").write_text("def make():\n    raise KeyError('OUTLAST_TABLE')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(SystemExit):
        main(["--app", "unmakeable:make()"])
    sys.modules.pop("unmakeable")

    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("Traceback")
    assert lines[-1] == "outlast: unmakeable:make() raised KeyError: 'OUTLAST_TABLE'"
    assert told == []


@pytest.mark.parametrize("wrong", ["-1", "nan", "inf", "soon"])
def test_seconds_are_numbers_of_seconds(
    told: list[ServerOptions], capsys: pytest.CaptureFixture[str], wrong: str
) -> None:
    """The usage error names the option."""
    with pytest.raises(SystemExit):
        main(["--app", "tests.support.served:app", f"--ceiling-s={wrong}"])

    assert "argument --ceiling-s: " in capsys.readouterr().err
    assert told == []
