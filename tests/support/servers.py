"""Servers that misbehave on purpose, on loopback sockets."""

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

__all__ = ["BadServer", "closed_port", "resetting_server", "silent_server"]


@dataclass
class BadServer:
    """A server's address and how many connections it has accepted."""

    url: str
    connections: list[socket.socket] = field(default_factory=list)


@contextmanager
def silent_server() -> Iterator[BadServer]:
    """Accept, read nothing, answer nothing."""
    with _serving(lambda _: None) as server:
        yield server


@contextmanager
def resetting_server() -> Iterator[BadServer]:
    """Accept, read the request's first bytes, then reset the connection."""

    def reset(connection: socket.socket) -> None:
        connection.recv(1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()

    with _serving(reset) as server:
        yield server


def closed_port() -> str:
    """Return an address where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"http://127.0.0.1:{listener.getsockname()[1]}"


@contextmanager
def _serving(treat: Callable[[socket.socket], None]) -> Iterator[BadServer]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = BadServer(f"http://127.0.0.1:{listener.getsockname()[1]}")
        thread = threading.Thread(target=_accept, args=(listener, server, treat))
        thread.start()
        try:
            yield server
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
            for connection in server.connections:
                connection.close()


def _accept(
    listener: socket.socket, server: BadServer, treat: Callable[[socket.socket], None]
) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        server.connections.append(connection)
        treat(connection)
