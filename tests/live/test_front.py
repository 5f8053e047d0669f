"""Workers behind a front: killed, recycled, reloaded and stopped, while the address stays."""

import asyncio
import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import aiohttp
import pytest

from platform_sim.view.event import EventKind
from platform_sim.view.recording import Recorded, read_recording
from tests.support.processes import alive, children, module_process, poll, ready, send

pytestmark = pytest.mark.live

APP = "tests.support.fronted:app"


@contextmanager
def web(*options: str, app: str = APP) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run the web process; yield it and its address."""
    arguments = ("--app", app, "--port", "0", *options)
    with module_process("platform_sim.host.server", *arguments) as process:
        yield process, ready(process)["url"]


@contextmanager
def serving(
    *options: str, app: str = APP, cwd: Path | None = None
) -> Iterator[tuple[subprocess.Popen[str], str, list[str]]]:
    """Run `outlast serve`; yield it, its address and what it said when it was ready."""
    with module_process(
        "platform_sim.cli", "serve", app, "--port", "0", *options, in_folder=cwd
    ) as process:
        assert process.stdout is not None
        said: list[str] = []
        while not said or " at http://" not in said[-1]:
            said.append(process.stdout.readline())
            assert said[-1], process.communicate()[1]
        yield process, said[-1].split()[2], said


def pid_of(url: str, path: str = "/") -> int:
    """Ask a process for its id, on a connection of its own."""
    status, body = send("GET", url + path)
    assert status == 200
    return int(body)


def recorded(path: Path, *kinds: EventKind) -> list[Recorded]:
    """Return the recorded events of these kinds."""
    lines = read_recording(path).lines if path.exists() else ()
    return [line for line in lines if line.kind in kinds]


def open_request(url: str, target: str) -> socket.socket:
    """Send a request and do not wait for its answer."""
    host, port = url.removeprefix("http://").split(":")
    connection = socket.create_connection((host, int(port)), timeout=10)
    connection.sendall(f"GET {target} HTTP/1.1\r\nHost: test\r\n\r\n".encode())
    return connection


def answer_of(connection: socket.socket) -> bytes:
    """Read until the other side has closed or reset."""
    answer = b""
    try:
        while data := connection.recv(4096):
            answer += data
    except ConnectionResetError:
        pass
    connection.close()
    return answer


def stop(process: subprocess.Popen[str]) -> tuple[str, str]:
    """Ask a process to end; return what it wrote."""
    process.send_signal(signal.SIGTERM)
    return process.communicate(timeout=20)


def test_a_ceiling_kills_the_worker_and_another_takes_over(tmp_path: Path) -> None:
    """Requests that share the worker are reported; whoever comes next is served at once."""
    record = tmp_path / "run.jsonl"
    options = ("--ceiling-s", "0.5", "--cut", "process", "--record", str(record))
    with web(*options) as (process, url):
        first = pid_of(url, "/long")
        shared = open_request(url, "/slow?30")
        poll(lambda: recorded(record, EventKind.PROCESS_KILLED), what="the cut")
        lost = answer_of(shared)
        second = pid_of(url)
        poll(lambda: not alive(first), what="the end of the first worker")
        _, errors = stop(process)

    assert process.returncode == 0
    assert lost == b""
    assert second != first
    (killed,) = recorded(record, EventKind.PROCESS_KILLED)
    assert (killed.invocation_id, killed.fields["shared_with"]) == ("1", ["2"])
    cuts = {cut.invocation_id: cut.fields for cut in recorded(record, EventKind.CUT)}
    assert (cuts["1"]["reason"], cuts["1"]["mode"]) == ("ceiling", "process")
    assert cuts["2"]["reason"] == "neighbour"
    assert "request 1: process at " in errors
    assert "sleep (registered at " in errors
    assert "requests 2 were there too" in errors
    assert f"({first}) was killed by SIGKILL; another takes over" in errors


def test_no_new_request_is_refused_while_workers_are_killed(tmp_path: Path) -> None:
    """A request fails only if it was at a worker when that was killed, and that is said."""
    record = tmp_path / "run.jsonl"
    options = ("--ceiling-s", "0.3", "--cut", "process", "--record", str(record))

    async def ask(session: aiohttp.ClientSession, url: str) -> int | None:
        try:
            async with session.get(url) as answer:
                return int(await answer.read())
        except aiohttp.ClientConnectorError:
            raise  # refused: what must not be
        except aiohttp.ClientError:
            return None

    async def main(url: str) -> list[int | None]:
        connector = aiohttp.TCPConnector(force_close=True)
        async with aiohttp.ClientSession(connector=connector) as session:
            answers = []
            for _ in range(4):
                answers.append(await ask(session, f"{url}/long"))
                for _ in range(40):
                    answers.append(await ask(session, url))
                    await asyncio.sleep(0.015)
            return answers

    with web(*options) as (process, url):
        answers = asyncio.run(main(url))
        _, errors = stop(process)

    workers = {pid for pid in answers if pid is not None}
    reports = [line for line in errors.splitlines() if "kills itself at a ceiling" in line]
    shared = sum(int(line.split(" with ")[1].split()[0]) for line in reports)
    assert len(workers) >= 3
    assert len(reports) >= 2
    assert answers.count(None) <= shared


def test_a_worker_that_cannot_react_is_killed_from_outside(tmp_path: Path) -> None:
    """Its event loop is blocked, so it does not see its own ceiling; the front does."""
    record = tmp_path / "run.jsonl"
    options = ("--ceiling-s", "0.3", "--cut", "process", "--record", str(record))
    with web(*options) as (process, url):
        first = pid_of(url, "/blocked")
        poll(lambda: not alive(first), what="the kill")
        second = pid_of(url)
        _, errors = stop(process)

    assert second != first
    assert "request 1: its ceiling passed 0.5 s ago" in errors
    assert "unsettled: _block" in errors
    told = [line.invocation_id for line in recorded(record, EventKind.WORKER)]
    assert "1" in told


def test_a_worker_killed_by_somebody_else_is_replaced() -> None:
    """As the out-of-memory killer does; connections wait meanwhile."""
    with serving("--cut", "cancel") as (process, url, _):
        first = pid_of(url)
        os.kill(first, signal.SIGKILL)
        second = pid_of(url)
        output, errors = stop(process)

    assert second != first
    assert f"worker 1 ({first}) was killed by SIGKILL; another is started" in errors
    assert output.rstrip().endswith("SIGTERM: stopped")


def test_recycling_a_worker_loses_no_request() -> None:
    """Killed coroutines are kept; with too many of them the worker finishes what it has."""

    async def main(url: str) -> tuple[set[int], list[int]]:
        async with aiohttp.ClientSession() as session:

            async def ask(path: str) -> int:
                async with session.get(url + path) as answer:
                    assert answer.status == 200
                    return int(await answer.read())

            pids: set[int] = set()
            slow: list[asyncio.Task[int]] = []
            for number in range(1500):
                if number >= 120 and len(pids) >= 2:
                    break
                slow.append(asyncio.create_task(ask("/slow?1.0")))
                pids.add(await ask("/long" if number % 3 == 0 else "/"))
                await asyncio.sleep(0.02)
            return pids, await asyncio.gather(*slow)

    options = ("--cut", "kill", "--ceiling-s", "0.1", "--recycle-after", "10")
    with serving(*options) as (process, url, said):
        pids, slow = asyncio.run(main(url))
        _, errors = stop(process)

    assert len(pids) >= 2
    assert len(slow) >= 120  # each was answered with 200, whichever worker had it
    assert "after 10 of them the worker process is replaced" in "".join(said)
    assert "keeps 10 killed coroutines, which can be neither run nor closed" in errors
    assert "worker 1 (" in errors
    assert "has finished" in errors


def stopped(pid: int) -> bool:
    """Say whether a process stands still."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def test_a_process_stands_still_between_requests_and_goes_on_with_the_next(tmp_path: Path) -> None:
    """SIGSTOP and SIGCONT: no line of it runs meanwhile, and time that passes has passed."""
    log = tmp_path / "log"
    with serving("--profile", "cloud-run", "--freeze", "process") as (process, url, said):
        worker = pid_of(url, f"/work?{log}")
        poll(lambda: stopped(worker), what="the stop")
        asyncio.run(asyncio.sleep(0.6))
        before = log.exists()
        again = pid_of(url, "/slow?0.2")
        poll(lambda: stopped(worker), what="the second stop")
        lines = log.read_text().splitlines()
        _, errors = stop(process)

    assert again == worker
    assert not before
    assert lines == [f"work {worker}"]
    assert "between requests the worker is stopped (SIGSTOP)" in "".join(said)
    assert "request 1: freeze at " in errors
    assert process.returncode == 0


def test_what_is_left_of_a_request_is_frozen_inside_the_process_too(tmp_path: Path) -> None:
    """The process runs on and serves; no line of the work is run until somebody asks again."""
    log = tmp_path / "log"
    with serving("--profile", "lambda") as (process, url, _):
        pid_of(url, f"/floating?{log}")
        asyncio.run(asyncio.sleep(0.6))
        before = log.exists()
        worker = pid_of(url, "/slow?0.2")
        poll(log.exists, what="the work")
        _, errors = stop(process)

    assert not before
    assert log.read_text() == f"floating {worker}\n"
    assert "freeze at " in errors
    assert "_write (never given to wait_until; created at " in errors


def test_a_process_that_stands_still_ends_with_its_front() -> None:
    """A stopped process reads no lifeline; the kernel sees to it."""
    with serving("--profile", "cloud-run", "--freeze", "process") as (process, url, _):
        worker = pid_of(url)
        poll(lambda: stopped(worker), what="the stop")
        process.kill()
        poll(lambda: not alive(worker), what="the worker's end")


def test_a_change_of_the_code_replaces_the_worker_and_a_broken_one_does_not(
    tmp_path: Path,
) -> None:
    """The address answers all the time, by the last code that worked."""
    module = tmp_path / "reloaded.py"

    def write(body: str) -> None:
        module.write_text(
            "async def app(scope, receive, send):\n"
            "    if scope['type'] != 'http':\n        return\n"
            "    await send({'type': 'http.response.start', 'status': 200, 'headers': []})\n"
            f"    await send({{'type': 'http.response.body', 'body': {body}}})\n"
        )

    write("b'one'")
    with serving("--reload", app="reloaded:app", cwd=tmp_path) as (process, url, _):
        assert send("GET", url) == (200, b"one")
        write("b'two'")
        poll(lambda: send("GET", url) == (200, b"two"), what="the new code")
        module.write_text("raise OSError('half typed')\n")
        errors = ""
        assert process.stderr is not None
        while "serves on" not in errors:
            errors += process.stderr.readline()
        still = send("GET", url)
        write("b'three'")
        poll(lambda: send("GET", url) == (200, b"three"), what="the mended code")
        stop(process)

    assert still == (200, b"two")
    assert "reloaded.py changed: a new worker is started" in errors
    assert "OSError: half typed" in errors


def test_a_stop_ends_all_workers_and_lets_work_finish(tmp_path: Path) -> None:
    """Registered work gets the grace, in the worker that serves; the spare one just ends."""
    log = tmp_path / "log"
    with web("--cut", "process") as (process, url):
        worker = pid_of(url, f"/work?{log}")
        poll(lambda: len(children(process.pid)) == 2, what="the spare worker")
        workers = children(process.pid)
        output, _ = stop(process)

    assert process.returncode == 0
    assert log.read_text().splitlines() == [f"work {worker}"]
    assert [pid for pid in workers if alive(pid)] == []
    assert output == ""


def test_workers_end_with_a_front_that_is_killed() -> None:
    """Nobody is orphaned."""
    with web("--cut", "process") as (process, url):
        pid_of(url)
        poll(lambda: len(children(process.pid)) == 2, what="the spare worker")
        workers = children(process.pid)
        process.kill()
        poll(lambda: not any(alive(pid) for pid in workers), what="the workers' end")


def test_asked_twice_the_front_waits_for_nobody() -> None:
    """The grace is 30 s."""
    with web("--cut", "process") as (process, url):
        pid_of(url, "/long")
        process.send_signal(signal.SIGINT)
        poll(lambda: len(children(process.pid)) <= 1, what="the spare worker's end")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=10)

    assert process.returncode == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--cut", "process"), "outlast: the app ended with exit code 2 before it was ready"),
        ((), "outlast: nowhere:app: no module 'nowhere'"),
    ],
)
def test_an_app_that_cannot_be_loaded_is_said_once(options: tuple[str, ...], message: str) -> None:
    """With the reason, and exit code 2."""
    arguments = ("--app", "nowhere:app", "--port", "0", *options)
    with module_process("platform_sim.host.server", *arguments) as process:
        _, errors = process.communicate(timeout=20)

    assert process.returncode == 2
    assert message in errors
    assert errors.count("no module 'nowhere'") == 1
    assert "Traceback" not in errors


def test_blocking_code_is_reported_with_its_line_and_length(tmp_path: Path) -> None:
    """By the worker's watch, while the app knows nothing of it."""
    record = tmp_path / "run.jsonl"
    with serving("--record", str(record), "--stall-s", "0.1") as (process, url, _):
        pid_of(url, "/stall?0.5")
        poll(lambda: recorded(record, EventKind.STALL), what="the report")
        _, errors = stop(process)

    (stall,) = recorded(record, EventKind.STALL)
    assert stall.invocation_id == "1"
    assert stall.fields["file"].endswith("tests/support/fronted.py")
    assert stall.fields["function"] == "app"
    line = Path(stall.fields["file"]).read_text().splitlines()[stall.fields["line"] - 1]
    assert "time.sleep(float(query))" in line
    assert stall.fields["length_s"] >= 0.4
    assert "request 1: the event loop was blocked for " in errors


def test_what_the_app_logs_is_recorded_under_its_request(tmp_path: Path) -> None:
    """As JSON lines with an action, which still go to stderr."""
    (tmp_path / "logging_app.py").write_text(
        "import sys, json\n"
        "async def app(scope, receive, send):\n"
        "    if scope['type'] != 'http':\n        return\n"
        "    print(json.dumps({'action': 'seen', 'operation_id': 'a'}), file=sys.stderr)\n"
        "    await send({'type': 'http.response.start', 'status': 200, 'headers': []})\n"
        "    await send({'type': 'http.response.body', 'body': b''})\n"
    )
    record = tmp_path / "run.jsonl"
    options = ("--record", str(record))
    with serving(*options, app="logging_app:app", cwd=tmp_path) as (process, url, _):
        send("GET", url)
        _, errors = stop(process)

    (action,) = recorded(record, EventKind.ACTION)
    assert action.invocation_id == "1"
    assert action.fields == {"action": "seen", "operation_id": "a"}
    assert json.dumps(action.fields) in errors
