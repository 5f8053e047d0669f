"""Ports: which ones the processes will use, settled before any of them is started.

A port that is asked for is tried; 0 becomes a free one. They are all held at once while choosing,
so no two options get the same, and released before the children bind them.
"""

import os
import socket
from collections.abc import Mapping
from contextlib import ExitStack

from platform_sim.host.errors import PortError

__all__ = ["choose_ports"]


def choose_ports(wanted: Mapping[str, int], *, host: str = "127.0.0.1") -> dict[str, int]:
    """Return a usable port for each option.

    Args:
        wanted: The port each option asks for; 0 stands for any free one.
        host: The address the processes will bind.

    Raises:
        PortError: One that was asked for cannot be bound; names option and port.
    """
    chosen: dict[str, int] = {}
    with ExitStack() as held:
        # those asked for first, lest a free one is picked that a later option names
        for option, port in sorted(wanted.items(), key=lambda item: item[1] == 0):
            probe = held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
            # as servers do: connections that linger after a stop do not make a port taken
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
                probe.listen(1)
            except OSError as refused:
                reason = os.strerror(refused.errno or 0).lower()
                raise PortError(option, port, reason) from refused
            chosen[option] = probe.getsockname()[1]
    return chosen
