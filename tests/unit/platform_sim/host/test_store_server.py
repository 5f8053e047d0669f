"""The store server: loopback, atomic, prepared before it is ready, and gone on TERM."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from moto.dynamodb.responses import DynamoHandler

from platform_sim.host.errors import PortError
from platform_sim.host.ready import announce, parse_ready
from platform_sim.host.store_server import local_credentials, main, make_atomic, serving
from storage.transport.boto import make_client
from tests.support.stores import ROOT

COMMAND = [sys.executable, "-m", "platform_sim.host.store_server"]


class Handler:
    """Stands in for moto's handler: notices when two calls are inside at once."""

    inside = 0
    most = 0

    def call_action(self) -> str:
        """Stay a moment."""
        Handler.inside += 1
        Handler.most = max(Handler.most, Handler.inside)
        meeting.wait(0.01)
        Handler.inside -= 1
        return "done"


meeting = threading.Event()


def test_one_call_at_a_time_in_the_whole_process() -> None:
    """The lock belongs to the class, not to an instance: moto makes one for each request."""
    make_atomic(Handler)
    threads = [threading.Thread(target=Handler().call_action) for _ in range(8)]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert Handler.most == 1
    assert Handler().call_action() == "done"


def test_credentials_are_filled_in_where_missing_only() -> None:
    """A local store checks none; the client wants some, and a region."""
    given = {"AWS_ACCESS_KEY_ID": "mine", "AWS_REGION": "eu-central-1"}

    local_credentials(given)

    assert given == {
        "AWS_ACCESS_KEY_ID": "mine",
        "AWS_SECRET_ACCESS_KEY": "local",
        "AWS_REGION": "eu-central-1",
        "AWS_DEFAULT_REGION": "eu-central-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }


def test_it_serves_on_loopback_while_the_block_runs() -> None:
    """Port 0 picks a free one; afterwards nobody listens there."""
    with serving("127.0.0.1", 0) as url:
        port = int(url.rpartition(":")[2])
        client = make_client(endpoint_url=url)
        tables = client.list_tables()["TableNames"]
        client.close()

    assert tables == []
    assert url.startswith("http://127.0.0.1:")
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0


def test_a_taken_port_is_named_with_a_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    """As an error, and as the command's last word."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(PortError, match=str(port)), serving("127.0.0.1", port):
            pytest.fail("it served on a taken port")
        finished = subprocess.run(
            [*COMMAND, "--port", str(port)], capture_output=True, text=True, check=False, cwd=ROOT
        )

    assert finished.returncode == 1
    assert finished.stdout == ""
    assert f"port {port} cannot be used" in finished.stderr
    assert "--port" in finished.stderr
    assert "Traceback" not in finished.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_prepares_says_ready_and_ends_on_a_signal(number: signal.Signals) -> None:
    """The table is there before the ready line; the end is clean."""
    process = subprocess.Popen(
        [*COMMAND, "--prepare", "storage.table:prepare_from_environment"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        env=os.environ | {"OUTLAST_TABLE": "outlast-prepared"},
    )
    assert process.stdout is not None
    ready = parse_ready(process.stdout.readline())
    assert ready is not None
    client = make_client(endpoint_url=ready.url)
    tables = client.list_tables()["TableNames"]
    client.close()

    process.send_signal(number)
    rest, errors = process.communicate(timeout=15)

    assert (ready.ready, ready.pid) == ("store", process.pid)
    assert tables == ["outlast-prepared"]
    assert (process.returncode, rest, errors) == (0, b"", b"")


@pytest.fixture
def signals_and_lock_restored(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Undo what a process's main leaves behind."""
    monkeypatch.setattr(DynamoHandler, "call_action", DynamoHandler.call_action)
    before = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("signals_and_lock_restored")
@pytest.mark.parametrize("prepare", [True, False])
def test_main_ends_with_0_when_it_is_told_to_stop(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *, prepare: bool
) -> None:
    """Also when the signal comes as early as the ready line."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", "")
    monkeypatch.setenv("OUTLAST_TABLE", "outlast-main")

    def announce_and_stop(*args: Any) -> None:
        announce(*args)
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr("platform_sim.host.store_server.announce", announce_and_stop)
    code = main(["--prepare", "storage.table:prepare_from_environment"] if prepare else [])

    ready = json.loads(capsys.readouterr().out)
    assert code == 0
    assert ready["ready"] == "store"
    assert prepare == (os.environ["AWS_ENDPOINT_URL_DYNAMODB"] == ready["url"])


@pytest.mark.usefixtures("signals_and_lock_restored")
def test_main_says_why_it_cannot_start(capsys: pytest.CaptureFixture[str]) -> None:
    """One line for a person, no traceback."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        code = main(["--port", str(listener.getsockname()[1])])

    assert code == 1
    assert "cannot be used" in capsys.readouterr().err
