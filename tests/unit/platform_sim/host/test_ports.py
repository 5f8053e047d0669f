"""Ports are settled before anything starts."""

import re
import socket
from collections.abc import Iterator

import pytest

from platform_sim.host.errors import PortError
from platform_sim.host.ports import choose_ports


@pytest.fixture
def taken() -> Iterator[int]:
    """Hold a port, as another server does."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_zero_becomes_a_free_port_and_no_two_options_share_one() -> None:
    """Every option gets a port of its own."""
    chosen = choose_ports({"--a": 0, "--b": 0, "--c": 0})

    assert list(chosen) == ["--a", "--b", "--c"]
    assert len(set(chosen.values())) == 3
    assert 0 not in chosen.values()


def test_a_port_that_was_asked_for_is_kept() -> None:
    """A free port is taken as given, and is free again for the child that binds it."""
    port = choose_ports({"--a": 0})["--a"]

    assert choose_ports({"--free": 0, "--a": port})["--a"] == port


def test_a_taken_port_is_named_with_its_option_and_the_remedy(taken: int) -> None:
    """Whoever reads the message knows what to type next."""
    message = (
        f"port {taken} cannot be used (address already in use): choose another with --web-port,"
        " or --web-port 0 for any free one. Nothing was started."
    )
    with pytest.raises(PortError, match=re.escape(message)):
        choose_ports({"--store-port": 0, "--web-port": taken})


def test_one_port_for_two_options_is_refused() -> None:
    """The second option is the one to change."""
    port = choose_ports({"--a": 0})["--a"]

    with pytest.raises(PortError, match=f"port {port} .*--b"):
        choose_ports({"--a": port, "--b": port})
