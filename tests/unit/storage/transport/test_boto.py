"""The boto3 transport: one try, never longer than the caller waits, threads counted."""

import threading
from collections.abc import Iterator
from typing import Any

import anyio
import anyio.to_thread
import boto3
import pytest
from botocore.config import Config

from storage.attributes import Attribute
from storage.conditions import Missing
from storage.errors import StoreMisconfigured, StoreUnavailable
from storage.marker import Claim, Draft, Settlement
from storage.replies import Accepted, Confirmed
from storage.requests import PutMarker, ReadMarker, Request
from storage.states import Event, State
from storage.store import Store
from storage.table import create_table
from storage.transport.boto import BotoTransport, make_client
from tests.support.rows import claimed_row
from tests.support.servers import closed_port, resetting_server, silent_server
from tests.support.stores import LocalStore, WallClock

pytestmark = pytest.mark.anyio

LONG_S = 10.0
SHORT_S = 0.05
TABLE = "outlast-boto"


class Gate:
    """Holds a client's calls just before they are sent, on their threads."""

    def __init__(self, client: Any) -> None:
        self.arrived = threading.Semaphore(0)
        self.landed = threading.Semaphore(0)
        self._open = threading.Event()
        client.meta.events.register("before-send.dynamodb", self._hold)
        client.meta.events.register("after-call.dynamodb", self._land)

    def open(self) -> None:
        """Let the held calls go on, and later ones pass."""
        self._open.set()

    def _hold(self, **_: object) -> None:
        self.arrived.release()
        assert self._open.wait(LONG_S)

    def _land(self, **_: object) -> None:
        self.landed.release()


class Held:
    """A store whose calls wait at a gate, beside one on the same table whose calls do not."""

    def __init__(self, url: str, wall: WallClock) -> None:
        client = make_client(endpoint_url=url)
        create_table(client, TABLE)
        self.transport = BotoTransport(client, max_threads=3)
        self.store = Store(self.transport, table_name=TABLE, now_ms=wall)
        self.free = BotoTransport(make_client(endpoint_url=url))
        self.free_store = Store(self.free, table_name=TABLE, now_ms=wall)
        self.gate = Gate(client)


@pytest.fixture
def held(moto: LocalStore, wall: WallClock) -> Iterator[Held]:
    """Return a store on moto whose calls wait at a gate."""
    made = Held(moto.url, wall)
    yield made
    made.gate.open()
    anyio.run(made.transport.aclose)
    anyio.run(made.free.aclose)
    moto.client.delete_table(TableName=TABLE)


def draft(operation_id: str) -> Draft:
    """Return an operation about to be accepted."""
    return Draft(
        operation_id=operation_id,
        accept_id="accept",
        destination="shop",
        payload=b"body",
        fingerprint="print",
    )


async def wait(semaphore: threading.Semaphore) -> None:
    """Wait for a thread without blocking the loop."""
    assert await anyio.to_thread.run_sync(lambda: semaphore.acquire(timeout=LONG_S))


async def test_o34_a_late_write_of_an_abandoned_thread_is_refused(held: Held) -> None:
    """The caller leaves in time; what its thread writes later meets the marker's condition."""
    accepted = await held.free_store.accept(
        draft("late"), claim=Claim(claim_id="own", lease_s=45.0), within_s=LONG_S
    )
    with pytest.raises(StoreUnavailable) as left:
        await held.store.release(
            accepted.marker,
            uncertain=True,
            due_at_ms=0,
            settlement=Settlement(),
            within_s=0.5,
        )
    confirmed = await held.free_store.confirm("late", Settlement(), within_s=LONG_S)

    held.gate.open()
    await wait(held.gate.landed)

    marker = await held.free_store.read("late", within_s=LONG_S)
    assert left.value.may_have_written
    assert Confirmed(first=True) == confirmed
    assert marker is not None
    assert marker.state is State.DELIVERED


async def test_o34_abandoned_threads_stay_within_the_cap(held: Held) -> None:
    """Ten calls, three threads: those that never got one have certainly not written."""
    written: list[bool] = []

    async def accept(number: int) -> None:
        with pytest.raises(StoreUnavailable) as left:
            await held.store.accept(draft(f"op-{number}"), claim=None, within_s=0.5)
        written.append(left.value.may_have_written)

    async with anyio.create_task_group() as tasks:
        for number in range(10):
            tasks.start_soon(accept, number)
    threads = [each for each in threading.enumerate() if each.name.startswith("outlast-store")]
    held.gate.open()
    for _ in range(3):
        await wait(held.gate.landed)

    landed = [
        number
        for number in range(10)
        if await held.free_store.read(f"op-{number}", within_s=LONG_S) is not None
    ]
    assert sorted(written) == [False] * 7 + [True] * 3
    assert len(landed) == 3
    # one more belongs to the store that is not held
    assert len(threads) <= 3 + 1


async def test_a_cancelled_caller_leaves_at_once_and_is_cancelled(held: Held) -> None:
    """Cancellation passes through; the write, already on its way, lands later."""
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait_then_cancel, held.gate.arrived, scope)
            await held.store.accept(draft("cut"), claim=None, within_s=LONG_S)
            pytest.fail("a held call came back")

    before = await held.free_store.read("cut", within_s=LONG_S)
    held.gate.open()
    await wait(held.gate.landed)
    after = await held.free_store.read("cut", within_s=LONG_S)

    assert scope.cancelled_caught
    assert before is None
    assert after is not None


async def wait_then_cancel(arrived: threading.Semaphore, scope: anyio.CancelScope) -> None:
    """Cancel once a call is held."""
    await wait(arrived)
    scope.cancel()


async def test_a_call_cancelled_in_the_queue_never_begins(held: Held) -> None:
    """It found no free thread, so it must not write after its caller has gone."""
    async with anyio.create_task_group() as tasks:
        for number in range(3):
            tasks.start_soon(give_up, held.store, f"first-{number}")
        for _ in range(3):
            await wait(held.gate.arrived)
        with anyio.CancelScope() as scope:
            scope.cancel()
            await held.store.accept(draft("queued"), claim=None, within_s=LONG_S)
        await anyio.lowlevel.checkpoint()
        held.gate.open()
    last = await held.store.accept(draft("last"), claim=None, within_s=LONG_S)

    assert isinstance(last, Accepted)
    assert await held.free_store.read("queued", within_s=LONG_S) is None


async def give_up(store: Store, operation_id: str) -> None:
    """Accept, whether or not it ends in time."""
    await store.accept(draft(operation_id), claim=None, within_s=LONG_S)


async def test_a_thread_that_comes_too_late_does_not_call(moto: LocalStore) -> None:
    """The time was over between the queue and the thread."""
    client = make_client(endpoint_url=moto.url)
    sent: list[object] = []
    client.meta.events.register("before-send.dynamodb", lambda **_: sent.append(1))
    transport = BotoTransport(client)

    with pytest.raises(StoreUnavailable) as late:
        await transport.execute(read_request(), within_s=-1.0)

    assert not late.value.may_have_written
    assert sent == []
    await transport.aclose()


def put_request() -> Request:
    """Return a write."""
    return PutMarker(
        table_name="outlast",
        event=Event.ACCEPT,
        row=claimed_row(),
        condition=Missing(Attribute.OPERATION_ID),
    )


def read_request() -> Request:
    """Return a read."""
    return ReadMarker(table_name="outlast", operation_id="op")


async def test_a_refused_connection_has_not_written() -> None:
    """No byte of the request left."""
    transport = BotoTransport(make_client(endpoint_url=closed_port()))

    with pytest.raises(StoreUnavailable) as refused:
        await transport.execute(put_request(), within_s=LONG_S)

    assert not refused.value.may_have_written
    await transport.aclose()


@pytest.mark.parametrize(("request_of", "unknown"), [(put_request, True), (read_request, False)])
async def test_o12_a_reset_may_have_written_and_is_tried_once(
    request_of: Any, *, unknown: bool
) -> None:
    """The request was on its way; a second try would be one that nobody counted."""
    with resetting_server() as server:
        transport = BotoTransport(make_client(endpoint_url=server.url))

        with pytest.raises(StoreUnavailable) as reset:
            await transport.execute(request_of(), within_s=LONG_S)

        assert len(server.connections) == 1
        await transport.aclose()
    assert unknown == reset.value.may_have_written


async def test_o12_silence_ends_with_the_callers_time_after_one_try() -> None:
    """Neither the client's own read timeout nor a retry outlives the caller's seconds."""
    with silent_server() as server:
        transport = BotoTransport(make_client(endpoint_url=server.url, read_timeout_s=60.0))

        with pytest.raises(StoreUnavailable) as silent:
            await transport.execute(put_request(), within_s=0.2)

        # shutdown waits for the thread: it ends because its read timeout was capped as well
        await anyio.to_thread.run_sync(transport._executor.shutdown)
        assert len(server.connections) == 1
        await transport.aclose()
    assert silent.value.may_have_written


@pytest.mark.parametrize(("client_s", "within_s"), [(60.0, 3.0), (2.0, 3.0)])
async def test_the_read_timeout_is_the_lesser_of_the_clients_and_the_callers(
    moto: LocalStore, client_s: float, within_s: float
) -> None:
    """It is set for each call, on the call's own thread."""
    client = make_client(endpoint_url=moto.url, read_timeout_s=client_s)
    transport = BotoTransport(client)
    seen: list[float] = []
    client.meta.events.register_last(
        "before-call.dynamodb", lambda context, **_: seen.append(context["read_timeout"])
    )

    with pytest.raises(StoreMisconfigured):
        await transport.execute(read_request(), within_s=within_s)
    await transport.aclose()

    (timeout_s,) = seen
    assert 0 < timeout_s <= min(client_s, within_s)


async def test_a_missing_table_names_the_remedy(moto: LocalStore) -> None:
    """An operator reads this: which table, and what to do."""
    transport = BotoTransport(make_client(endpoint_url=moto.url))

    with pytest.raises(StoreMisconfigured, match=r"'outlast'.*create_table.*OUTLAST_TABLE"):
        await transport.execute(read_request(), within_s=LONG_S)
    await transport.aclose()


async def test_missing_credentials_name_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Found before anything is sent."""
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    transport = BotoTransport(make_client(endpoint_url=closed_port()))

    with pytest.raises(StoreMisconfigured, match="AWS_ACCESS_KEY_ID"):
        await transport.execute(read_request(), within_s=LONG_S)
    await transport.aclose()


async def test_a_closed_transport_takes_no_call(moto: LocalStore) -> None:
    """And nothing of it was sent."""
    transport = BotoTransport(make_client(endpoint_url=moto.url))
    await transport.aclose()

    with pytest.raises(StoreUnavailable) as closed:
        await transport.execute(put_request(), within_s=LONG_S)

    assert not closed.value.may_have_written


@pytest.mark.parametrize(
    "retries",
    [
        None,
        {"mode": "standard"},
        {"max_attempts": 1},
        {"total_max_attempts": 2, "mode": "adaptive"},
    ],
    ids=str,
)
def test_o12_a_client_with_retries_is_refused(retries: Any) -> None:
    """Each hidden retry would be a request that neither marker nor budget knows of."""
    config = Config(retries=retries) if retries else Config()
    client = boto3.Session().client("dynamodb", endpoint_url=closed_port(), config=config)

    with pytest.raises(StoreMisconfigured, match="retries by itself"):
        BotoTransport(client)


@pytest.mark.parametrize("retries", [{"max_attempts": 0}, {"total_max_attempts": 1}], ids=str)
def test_o12_a_client_without_retries_is_taken(retries: Any) -> None:
    """However the caller said so."""
    config = Config(retries=retries)
    client = boto3.Session().client("dynamodb", endpoint_url=closed_port(), config=config)

    anyio.run(BotoTransport(client).aclose)


def test_a_client_without_a_region_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    """It cannot be built, and what is named is what helps."""
    monkeypatch.delenv("AWS_DEFAULT_REGION")

    with pytest.raises(StoreMisconfigured, match="AWS_DEFAULT_REGION"):
        make_client()


@pytest.mark.parametrize("name", ["AWS_DEFAULT_REGION", "AWS_REGION"])
def test_a_client_takes_its_region_from_either_variable(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The other SDKs, and most people, say AWS_REGION."""
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    monkeypatch.setenv(name, "eu-north-1")

    client = make_client()

    assert client.meta.region_name == "eu-north-1"
    client.close()


def test_a_client_with_a_malformed_endpoint_names_the_remedy() -> None:
    """Found at start-up, not at the first request."""
    with pytest.raises(StoreMisconfigured, match="AWS_ENDPOINT_URL_DYNAMODB"):
        make_client(endpoint_url="127.0.0.1:8000")
