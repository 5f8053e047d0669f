"""Clients that leave real sockets: by FIN, by RST, and by closing only their own half.

An ASGI server cannot tell the three apart: a FIN ends its connection, whether or not the client
still reads. So each is a client that left, at once, whatever the app looks at.
"""

import json
import socket
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes import module_process, poll, ready

pytestmark = pytest.mark.live

Leave = Callable[[socket.socket], None]


def fin(connection: socket.socket) -> None:
    """Close."""
    connection.close()


def rst(connection: socket.socket) -> None:
    """Close with RST instead of FIN."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def half(connection: socket.socket) -> None:
    """Send a FIN and go on reading."""
    connection.shutdown(socket.SHUT_WR)


@pytest.fixture(params=[fin, rst, half], ids=["FIN", "RST", "half-close"])
def leave(request: pytest.FixtureRequest) -> Leave:
    """Return a way to leave."""
    way: Leave = request.param
    return way


class Served:
    """The app of `tests.support.leaving` in a process of its own."""

    def __init__(self, url: str, folder: Path) -> None:
        host, _, port = url.removeprefix("http://").partition(":")
        self._address = (host, int(port))
        self._log = folder / "log"
        self._events = folder / "events"
        self.connection: socket.socket

    def ask(self, path: str) -> None:
        """Send a request and wait until its app has been called."""
        self.connection = socket.create_connection(self._address, timeout=10)
        target = f"{path}?log={self._log}"
        self.connection.sendall(f"GET {target} HTTP/1.1\r\nHost: test\r\n\r\n".encode())
        poll(lambda: self.events("request"), what="the request")

    def log(self) -> list[str]:
        """Return what the app wrote."""
        return self._log.read_text().splitlines() if self._log.exists() else []

    def events(self, kind: str) -> list[dict[str, Any]]:
        """Return the recorded events of a kind."""
        lines = self._events.read_text().splitlines() if self._events.exists() else []
        return [event for event in map(json.loads, lines) if event["kind"] == kind]

    def end(self) -> str:
        """Wait for the end of the request's context; return its reason."""
        (end,) = poll(lambda: self.events("context_end"), what="the end")
        reason: str = end["fields"]["reason"]
        return reason

    def rest(self) -> bytes:
        """Read what still comes to a client that closed only its own half."""
        rest = b""
        while piece := self.connection.recv(65536):
            rest += piece
        return rest


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """Serve the app."""
    arguments = ("--app", "tests.support.leaving:app", "--port", "0")
    record = ("--record", str(tmp_path / "events"))
    with module_process("platform_sim.host.server", *arguments, *record) as process:
        served = Served(ready(process)["url"], tmp_path)
        yield served
        served.connection.close()


def test_a_handler_that_nothing_holds_is_cut_at_the_disconnect(
    served: Served, leave: Leave
) -> None:
    """s12, reset: long before its 60 s are over."""
    served.ask("/unheld")
    leave(served.connection)

    assert served.end() == "client_left"
    assert served.log() == ["handler cancelled"]
    assert len(served.events("client_left")) == 1


def test_a_handler_that_work_holds_is_cut_with_the_work(served: Served, leave: Leave) -> None:
    """s22, reset: the work ends, and nothing else would hold the handler."""
    served.ask("/held")
    leave(served.connection)

    assert served.end() == "client_left"
    assert served.log() == ["work done", "handler cancelled"]
    (left,) = served.events("client_left")
    assert left["fields"]["remaining_s"] == pytest.approx(30.0, abs=0.1)


def test_an_app_that_listens_hears_of_it_before_it_is_cut(served: Served, leave: Leave) -> None:
    """s12, reset, with the signal."""
    served.ask("/listening")
    leave(served.connection)

    assert served.end() == "client_left"
    assert served.log() == ["client left", "handler cancelled"]


def test_a_stream_ends_with_its_client_and_the_work_goes_on(served: Served, leave: Leave) -> None:
    """s13: the registered work is done before everything ends."""
    served.ask("/stream")
    received = b""
    while b"piece" not in received:
        received += served.connection.recv(4096)
    leave(served.connection)

    assert served.end() == "client_left"
    assert served.log() == ["work done"]
    (cut,) = served.events("cut")
    assert cut["fields"]["names"] == ["the app call"]


def test_a_client_that_still_reads_gets_no_answer(served: Served) -> None:
    """s12, half-close, which the recorded runtime answers and no ASGI server can."""
    served.ask("/unheld")
    half(served.connection)

    assert served.rest() == b""
    assert served.end() == "client_left"
