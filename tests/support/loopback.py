"""Loopback guard: no test reaches another machine, by address or by asking for a name.

A refused try fails at once with an error a client understands, and is noted, so that a test
whose code under test swallowed it fails all the same.
"""

import ipaddress
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["LoopbackGuard"]

_LOCAL_NAMES = frozenset({"", "localhost", socket.gethostname()})


class LoopbackGuard:
    """Stands in front of this process's sockets once installed.

    Attributes:
        refused: The tries so far, in words.
    """

    def __init__(self) -> None:
        self.refused: list[str] = []

    def install(self) -> None:
        """Guard every socket made from now on, until the process ends."""
        socket.socket.connect = self._guarded(socket.socket.connect)  # type: ignore[method-assign]
        socket.socket.connect_ex = self._guarded(  # type: ignore[method-assign]
            socket.socket.connect_ex
        )
        socket.getaddrinfo = self._guarded_lookup(socket.getaddrinfo)

    @contextmanager
    def expecting(self) -> Iterator[list[str]]:
        """Yield the list of tries that are refused in the block, which fail no test."""
        before, self.refused = self.refused, []
        try:
            yield self.refused
        finally:
            self.refused = before

    def _guarded(self, connect: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(sock: socket.socket, address: Any) -> Any:
            if sock.family in {socket.AF_INET, socket.AF_INET6} and not _is_local(address[0]):
                self.refused.append(f"connect to {address[0]}:{address[1]}")
                raise ConnectionRefusedError(f"a test must not {self.refused[-1]}")
            return connect(sock, address)

        return guarded

    def _guarded_lookup(self, lookup: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(host: Any, *args: Any, **kwargs: Any) -> Any:
            name = host.decode() if isinstance(host, bytes) else host or ""
            if _is_local(name) or _is_address(name):
                return lookup(host, *args, **kwargs)
            if not name.endswith(".invalid"):
                self.refused.append(f"look up {name}")
            raise socket.gaierror(socket.EAI_NONAME, f"a test must not look up {name}")

        return guarded


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _is_local(host: str) -> bool:
    return host in _LOCAL_NAMES or (_is_address(host) and ipaddress.ip_address(host).is_loopback)
