"""The web process: real uvicorn, real sockets, real signals."""

import asyncio
import json
import os
import signal
import socket
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from platform_sim.host import server
from platform_sim.host.lifeline import Lifeline
from platform_sim.host.server import ServerOptions, serve
from platform_sim.lifetime.profile import WORKERS, CutMode
from platform_sim.view.event import EventKind
from platform_sim.view.recorder import Recorder
from tests.support import served
from tests.support.processes import module_process, poll, ready, request, send

pytestmark = pytest.mark.live

SERVER = "platform_sim.host.server"


@contextmanager
def served_app(*options: str, **more: Any) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Serve the test app in a process of its own; yield the process and its address."""
    arguments = ("--app", "tests.support.served:app", "--port", "0", *options)
    with module_process(SERVER, *arguments, **more) as process:
        line = ready(process)
        assert line == {"ready": "web", "url": line["url"], "pid": process.pid}
        yield process, line["url"]


def written(path: Path) -> list[str]:
    """Return the lines of a file that may not exist yet."""
    return path.read_text().splitlines() if path.exists() else []


def raw_request(url: str, target: str) -> socket.socket:
    """Open a connection and send a request."""
    host, port = url.removeprefix("http://").split(":")
    connection = socket.create_connection((host, int(port)), timeout=10)
    connection.sendall(f"GET {target} HTTP/1.1\r\nHost: test\r\n\r\n".encode())
    return connection


def read_answer(connection: socket.socket) -> bytes:
    """Read one whole chunked answer."""
    answer = b""
    while not answer.endswith(b"0\r\n\r\n"):
        answer += connection.recv(4096)
    return answer


def reset(connection: socket.socket) -> None:
    """Close with RST instead of FIN."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def record(path: Path, *kinds: EventKind) -> list[dict[str, Any]]:
    """Return the recorded events of these kinds."""
    events = [json.loads(line) for line in written(path)]
    return [event for event in events if event["kind"] in kinds]


def test_the_ready_line_is_true_and_work_goes_on_after_the_answer(tmp_path: Path) -> None:
    """The first request after the line is answered, and its work is done later."""
    log = tmp_path / "log"
    with served_app() as (_, url):
        answer = send("GET", f"{url}/quick?log={log}")
        at_once = written(log)
        poll(lambda: written(log) == ["work"], what="the work")

    assert answer == (200, b"ok")
    assert at_once == []


@pytest.mark.parametrize("cut", [CutMode.CANCEL, CutMode.KILL])
def test_the_ceiling_cuts_and_the_log_names_the_work(tmp_path: Path, cut: CutMode) -> None:
    """One line on stderr per cut; the record has the rest."""
    log, events = tmp_path / "log", tmp_path / "events"
    options = ("--ceiling-s", "0.2", "--cut", cut, "--record", str(events))
    with served_app(*options) as (process, url):
        send("GET", f"{url}/long?log={log}")
        poll(lambda: record(events, EventKind.CONTEXT_END), what="the end")
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=10)

    assert process.returncode == 0
    (line,) = [line for line in errors.splitlines() if line.strip()]
    assert f"request 1: {cut} at " in line
    assert "(ceiling): _log (registered at " in line
    assert "window 0.2 s counted from the answer at " in line
    assert written(log) == (["work cancelled"] if cut is CutMode.CANCEL else [])
    (started,) = record(events, EventKind.STARTED)
    assert started["fields"]["cut"] == cut
    assert started["fields"]["wall_ms"] > 1_700_000_000_000
    (end,) = record(events, EventKind.CONTEXT_END)
    (answered,) = record(events, EventKind.RESPONSE_END)
    assert end["at_s"] - answered["at_s"] >= 0.2


@pytest.mark.parametrize("leave", [socket.socket.close, reset], ids=["FIN", "RST"])
def test_a_client_that_leaves_mid_stream_opens_the_window(tmp_path: Path, leave: Any) -> None:
    """The registered work ends, the stream with it, though the app looks at no disconnect."""
    log, events = tmp_path / "log", tmp_path / "events"
    with served_app("--record", str(events)) as (_, url):
        connection = raw_request(url, f"/stream?log={log}")
        assert b"chunk" in b"".join(connection.recv(4096) for _ in range(2))
        leave(connection)
        (end,) = poll(lambda: record(events, EventKind.CONTEXT_END), what="the end")
        lines = written(log)

    assert lines == ["work"]
    assert end["fields"]["reason"] == "client_left"
    assert len(record(events, EventKind.CLIENT_LEFT)) == 1
    (cut,) = record(events, EventKind.CUT)
    assert cut["fields"]["names"] == ["the app call"]


@pytest.mark.parametrize("leave", [socket.socket.close, reset], ids=["FIN", "RST"])
def test_a_client_that_leaves_before_the_answer_takes_an_unheld_handler_along(
    tmp_path: Path, leave: Any
) -> None:
    """Nothing else holds it."""
    log = tmp_path / "log"
    events = tmp_path / "events"
    with served_app("--record", str(events)) as (_, url):
        connection = raw_request(url, f"/slow?log={log}")
        poll(lambda: record(events, EventKind.REQUEST), what="the request")
        leave(connection)
        poll(lambda: record(events, EventKind.CONTEXT_END), what="the end")

    assert written(log) == ["handler cancelled"]


def test_a_kept_alive_connection_serves_on_after_a_kill(tmp_path: Path) -> None:
    """The killed request's connection is the server's, and so is its next request."""
    log = tmp_path / "log"
    with served_app("--ceiling-s", "0.05", "--cut", "kill") as (process, url):
        connection = raw_request(url, f"/long?log={log}")
        first = read_answer(connection)
        assert process.stderr is not None
        assert "kill at" in process.stderr.readline()
        connection.sendall(f"GET /plain?log={log} HTTP/1.1\r\nHost: test\r\n\r\n".encode())
        second = read_answer(connection)
        connection.close()

    assert first.startswith(b"HTTP/1.1 200")
    assert second.startswith(b"HTTP/1.1 200")


def test_term_lets_work_finish_within_the_grace(tmp_path: Path) -> None:
    """Registered work ends, the process exits with 0 and leaves nothing unsaid."""
    log = tmp_path / "log"
    with served_app() as (process, url):
        send("GET", f"{url}/quick?log={log}")
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=20)

    assert process.returncode == 0
    assert written(log) == ["work"]
    assert "stopping: what is under way gets up to 30 s" in errors
    assert len(errors.splitlines()) == 1


def test_term_cuts_what_is_left_when_the_grace_ends(tmp_path: Path) -> None:
    """Both a handler that has not answered and registered work; no new connection is taken."""
    log, other, events = tmp_path / "log", tmp_path / "other", tmp_path / "events"
    options = ("--shutdown-grace-s", "0.5", "--record", str(events))
    with served_app(*options) as (process, url):
        send("GET", f"{url}/long?log={log}")
        connection = raw_request(url, f"/slow?log={other}")
        poll(lambda: len(record(events, EventKind.REQUEST)) == 2, what="the second request")
        process.send_signal(signal.SIGTERM)
        poll(lambda: refused(url), what="the refusal")
        assert process.poll() is None
        _, errors = process.communicate(timeout=20)
        connection.close()

    assert process.returncode == 0
    assert written(log) == ["work cancelled"]
    assert written(other) == ["handler cancelled"]
    assert "(shutdown): _log (registered at " in errors


def refused(url: str) -> bool:
    """Say whether a new connection is refused."""
    try:
        raw_request(url, "/").close()
    except OSError:
        return True
    return False


def test_asked_twice_it_cuts_at_once(tmp_path: Path) -> None:
    """The default grace is 30 s; whoever asks again will not wait for it."""
    log = tmp_path / "log"
    with served_app() as (process, url):
        send("GET", f"{url}/long?log={log}")
        process.send_signal(signal.SIGINT)
        poll(lambda: refused(url), what="the refusal")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)

    assert process.returncode == 0
    assert written(log) == ["work cancelled"]


def test_an_app_that_refuses_to_start_ends_the_process_with_its_message() -> None:
    """No ready line; uvicorn's code 3."""
    with module_process(SERVER, "--app", "tests.support.served:refusing", "--port", "0") as process:
        output, errors = process.communicate(timeout=20)

    assert process.returncode == 3
    assert output == ""
    assert "no table of that name" in errors


def test_a_port_that_is_taken_is_one_clear_sentence() -> None:
    """Exit code 2, no traceback."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        arguments = ("--app", "tests.support.served:app", "--port", str(port))
        with module_process(SERVER, *arguments) as process:
            output, errors = process.communicate(timeout=20)

    assert process.returncode == 2
    assert output == ""
    (sentence,) = errors.splitlines()
    assert sentence.startswith(f"outlast: port {port} cannot be used (address already in use)")


def test_it_leaves_when_its_supervisor_is_gone() -> None:
    """The lifeline's other end closes; nobody is orphaned."""
    lifeline = Lifeline()
    with served_app(environment=lifeline.environment(), pass_fds=(lifeline.read_fd,)) as (
        process,
        _,
    ):
        lifeline.close()
        process.wait(timeout=10)

    assert process.returncode == 0


def test_the_access_log_goes_to_stderr_and_only_when_asked_for(tmp_path: Path) -> None:
    """The pipe of stdout carries the ready line and nothing else."""
    with served_app("--access-log") as (process, url):
        send("GET", f"{url}/plain?log={tmp_path / 'log'}")
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=20)

    assert output == ""
    assert '"GET /plain' in errors


def options(**changes: Any) -> ServerOptions:
    """Return options for serving in this process."""
    base = ServerOptions(
        app="tests.support.served:app",
        host="127.0.0.1",
        port=0,
        profile=replace(WORKERS, shutdown_grace_s=0.3),
        record=None,
        access_log=False,
    )
    return replace(base, **changes)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_it_serves_and_stops_in_process_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    """The same code under another's event loop, on either family of addresses."""
    recorder = Recorder()

    async def main() -> tuple[int, bytes]:
        urls: asyncio.Queue[str] = asyncio.Queue()
        monkeypatch.setattr(server, "announce", lambda _, url: urls.put_nowait(url))
        serving = asyncio.create_task(serve(served.app, options(host=host), recorder))
        url = await urls.get()
        answer = await request("GET", f"{url}/long?log={tmp_path / 'log'}")
        _, idle = await asyncio.open_connection(host, int(url.rpartition(":")[2]))
        os.kill(os.getpid(), signal.SIGTERM)
        await serving
        idle.close()
        await idle.wait_closed()
        return answer

    assert asyncio.run(main()) == (200, b"ok")
    assert [event.fields["reason"] for event in recorder.of(EventKind.CONTEXT_END)] == ["shutdown"]
