"""Stores to test against: memory, moto through our launcher, and dynoxide where it is installed.

Each server is a real process, started once a session and raced for atomicity before anything
relies on it. Each test gets a table of its own.
"""

import itertools
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import anyio
import pytest
from botocore.exceptions import EndpointConnectionError

from platform_sim.host.lifeline import Lifeline
from platform_sim.host.ports import choose_ports
from platform_sim.host.ready import parse_ready
from platform_sim.host.store_check import CheckReport, StoreNotAtomic, check_store
from storage.attributes import Row
from storage.store import Store
from storage.table import create_table
from storage.transport.base import Transport
from storage.transport.boto import BotoTransport, make_client
from storage.transport.memory import MemoryTransport
from tests.support.rows import plain, typed

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

__all__ = [
    "Backend",
    "LocalStore",
    "WallClock",
    "backend",
    "check_or_stop",
    "dynoxide",
    "moto",
    "wall",
]

ROOT = Path(__file__).parents[2]
DYNOXIDE = ROOT / ".tools/node_modules/@dynoxide/linux-x64/dynoxide"
START_S = 15.0
TRANSPORTS = ("memory", "moto", "dynoxide")

_table_numbers = itertools.count(1)


@dataclass
class WallClock:
    """A wall clock that moves when told to; `ms` is epoch milliseconds."""

    ms: int = 1_700_000_000_000

    def __call__(self) -> int:
        """Return the present instant."""
        return self.ms

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.ms += round(seconds * 1000)


class Backend(Protocol):
    """One table on one transport, with a way to see and make rows as they are."""

    table_name: str
    transport: Transport

    def put_row(self, row: Row) -> None:
        """Write a row as it is, without any condition."""

    def rows(self) -> dict[str, Mapping[str, Any]]:
        """Return every row, by operation id."""


class MemoryBackend:
    """Rows in memory."""

    def __init__(self) -> None:
        self.table_name = "outlast"
        self._memory = MemoryTransport()
        self.transport: Transport = self._memory

    def put_row(self, row: Row) -> None:
        """Write a row as it is."""
        self._memory.put_row(row)

    def rows(self) -> dict[str, Mapping[str, Any]]:
        """Return every row."""
        return dict(self._memory.rows)


class DynamoBackend:
    """Rows in a table of their own, behind a server."""

    def __init__(self, client: "DynamoDBClient") -> None:
        self._client = client
        self.table_name = f"outlast-test-{next(_table_numbers)}"
        create_table(client, self.table_name)
        self.transport: Transport = BotoTransport(client)

    def put_row(self, row: Row) -> None:
        """Write a row as it is."""
        self._client.put_item(TableName=self.table_name, Item=typed(row))

    def rows(self) -> dict[str, Mapping[str, Any]]:
        """Return every row."""
        items = self._client.scan(TableName=self.table_name, ConsistentRead=True)["Items"]
        return {row["operation_id"]: row for row in map(plain, items)}


@dataclass(frozen=True)
class LocalStore:
    """A running server: its address, a client, and how its check for atomicity went."""

    url: str
    client: "DynamoDBClient"
    report: CheckReport


def check_or_stop(
    url: str, check: Callable[..., CheckReport] = check_store, *, limit_s: float = 60.0
) -> CheckReport:
    """Race a store with 100 threads for 20 rounds; a store that is not atomic ends the run.

    Anything a test said about such a store would be worth nothing, whether it passed or not.
    """
    try:
        return check(url, threads=100, rounds=20, limit_s=limit_s)
    except StoreNotAtomic as broken:
        pytest.exit(str(broken), returncode=3)


@pytest.fixture(scope="session")
def moto() -> Iterator[LocalStore]:
    """Run moto through our launcher, as a process."""
    lifeline = Lifeline()
    process = subprocess.Popen(
        [sys.executable, "-m", "platform_sim.host.store_server"],
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env=os.environ | lifeline.environment(),
        pass_fds=[lifeline.read_fd],
    )
    with process, _ended(process):
        assert process.stdout is not None
        ready = parse_ready(process.stdout.readline())
        assert ready is not None
        assert ready.url is not None
        yield _checked(ready.url)
    lifeline.close()


@pytest.fixture(scope="session")
def dynoxide() -> Iterator[LocalStore]:
    """Run dynoxide, a second implementation of DynamoDB, as a process."""
    binary = Path(os.environ.get("OUTLAST_DYNOXIDE", DYNOXIDE))
    if not os.access(binary, os.X_OK):
        pytest.skip(
            f"no dynoxide at {binary}: npm install --no-save --prefix .tools "
            "@dynoxide/linux-x64@1.2.1, or set OUTLAST_DYNOXIDE"
        )
    port = choose_ports({"--port": 0})["--port"]
    process = subprocess.Popen(
        [binary, "serve", "--host", "127.0.0.1", "--port", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    with process, _ended(process):
        url = f"http://127.0.0.1:{port}"
        _wait_until_it_answers(url)
        yield _checked(url)


@pytest.fixture
def wall() -> WallClock:
    """Return a wall clock that stands still until moved."""
    return WallClock()


@pytest.fixture(params=TRANSPORTS)
def backend(request: pytest.FixtureRequest) -> Iterator[Backend]:
    """Return an empty table, once on each transport."""
    if request.param == "memory":
        yield MemoryBackend()
        return
    server: LocalStore = request.getfixturevalue(request.param)
    made = DynamoBackend(server.client)
    yield made
    anyio.run(made.transport.aclose)


@pytest.fixture
def store(backend: Backend, wall: WallClock) -> Store:
    """Return a store on an empty table, once on each transport."""
    return Store(backend.transport, table_name=backend.table_name, now_ms=wall)


def _checked(url: str) -> LocalStore:
    return LocalStore(url, make_client(endpoint_url=url, max_pool=100), check_or_stop(url))


def _wait_until_it_answers(url: str) -> None:
    client = make_client(endpoint_url=url)
    give_up_at = time.monotonic() + START_S
    while True:
        try:
            client.list_tables()
        except EndpointConnectionError:
            if time.monotonic() > give_up_at:
                raise
            time.sleep(0.01)
        else:
            client.close()
            return


@contextmanager
def _ended(process: "subprocess.Popen[bytes]") -> Iterator[None]:
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(START_S)
        except subprocess.TimeoutExpired:
            process.kill()
