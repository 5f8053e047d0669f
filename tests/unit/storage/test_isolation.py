"""The tests' own ground: no way off this machine, no row left over, an atomic store."""

import os
import socket

import pytest

from platform_sim.host.store_check import CheckReport, StoreNotAtomic
from storage.transport.boto import BotoTransport, make_client
from tests.support.loopback import LoopbackGuard
from tests.support.rows import claimed_row
from tests.support.stores import Backend, LocalStore, check_or_stop


@pytest.mark.parametrize("turn", [1, 2])
def test_o36_each_test_starts_without_rows_in_either_order(backend: Backend, turn: int) -> None:
    """Both turns write the same three markers; neither sees the other's."""
    before = backend.rows()
    for number in range(3):
        backend.put_row(claimed_row(f"op-{number}"))

    assert before == {}
    assert len(backend.rows()) == 3


def test_o36_making_a_client_and_a_transport_asks_nobody(loopback_guard: LoopbackGuard) -> None:
    """Clients are made or passed in at start-up; the first request goes out with the first call."""
    with loopback_guard.expecting() as refused:
        client = make_client(region="eu-west-1")
        BotoTransport(client)

    assert refused == []


@pytest.mark.parametrize(
    "address", [("192.0.2.1", 80), ("2001:db8::1", 80, 0, 0), ("169.254.169.254", 80)]
)
def test_o36_a_connection_to_another_machine_is_refused(
    loopback_guard: LoopbackGuard, address: tuple[object, ...]
) -> None:
    """At once and noted, however the connection is made."""
    family = socket.AF_INET6 if len(address) == 4 else socket.AF_INET
    with loopback_guard.expecting() as refused, socket.socket(family) as sock:
        with pytest.raises(ConnectionRefusedError, match="a test must not connect"):
            sock.connect(address)
        with pytest.raises(ConnectionRefusedError):
            sock.connect_ex(address)

        assert len(refused) == 2


def test_o36_a_request_to_the_real_service_is_refused_before_its_name_is_looked_up(
    loopback_guard: LoopbackGuard,
) -> None:
    """A client without a local endpoint would ask the real one."""
    client = make_client(region="eu-west-1")

    with loopback_guard.expecting() as refused, pytest.raises(Exception, match="Could not connect"):
        client.list_tables()

    assert refused == ["look up dynamodb.eu-west-1.amazonaws.com"]


def test_o36_the_environment_holds_no_real_account() -> None:
    """Whatever the shell had, the tests start with fake credentials and no settings of ours."""
    assert os.environ["AWS_ACCESS_KEY_ID"] == "test"
    assert {name for name in os.environ if name.startswith("OUTLAST_")} <= {"OUTLAST_DYNOXIDE"}


@pytest.mark.parametrize("name", ["moto", "dynoxide"])
def test_o37_the_local_store_was_raced_before_anything_relied_on_it(
    request: pytest.FixtureRequest, name: str
) -> None:
    """100 threads, 20 rounds, one winner each: else this session would have ended."""
    server: LocalStore = request.getfixturevalue(name)

    assert (server.report.threads, server.report.rounds) == (100, 20)


def test_o37_a_store_with_two_winners_stops_the_run() -> None:
    """No product failure and no false pass is reported about such a store."""

    def two_winners(url: str, *, threads: int, rounds: int, limit_s: float) -> CheckReport:
        raise StoreNotAtomic(f"round 3 of {threads} threads had 2 winners")

    with pytest.raises(pytest.exit.Exception, match="local store is not atomic") as stopped:
        check_or_stop("http://127.0.0.1:1", two_winners)

    assert stopped.value.returncode == 3
