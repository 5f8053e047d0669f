"""The check for atomicity: it finds a store that is not, and believes one that is."""

import re
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.config import Config
from moto import mock_aws
from moto.dynamodb.responses import DynamoHandler
from moto.server import ThreadedMotoServer

from platform_sim.host.store_check import (
    StoreNotAtomic,
    StoreNotChecked,
    check_store,
    main,
    race,
)
from platform_sim.host.store_server import make_atomic
from tests.support.servers import closed_port, silent_server
from tests.support.stores import LocalStore

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

THREADS = 16
ROUNDS = 200


@pytest.fixture
def client() -> Iterator["DynamoDBClient"]:
    """Return a client of moto in this process, with threads that interrupt each other often."""
    usual_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    with mock_aws():
        made = boto3.Session().client("dynamodb", config=Config(max_pool_connections=THREADS))
        made.create_table(
            TableName="race",
            BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        )
        yield made
    sys.setswitchinterval(usual_s)


def races_until_broken(client: "DynamoDBClient", rounds: int) -> str | None:
    """Race until a round has two winners; returns what was said, or None."""
    with ThreadPoolExecutor(THREADS) as pool:
        for number in range(rounds):
            try:
                race(client, "race", pool, threads=THREADS, number=number)
            except StoreNotAtomic as broken:
                return str(broken)
            except RuntimeError:
                continue  # moto without a lock also fails in other ways
    return None


def test_stock_moto_has_double_winners(client: "DynamoDBClient") -> None:
    """Without the lock, conditions do not hold under threads: seen within a few rounds."""
    said = races_until_broken(client, ROUNDS)

    assert said is not None
    assert re.match(r"local store is not atomic: round \d+ of 16 threads had \d+ winners", said)


def test_moto_under_the_lock_has_one_winner_each(
    client: "DynamoDBClient", monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same race that breaks stock moto, with the one lock round each API call."""
    monkeypatch.setattr(DynamoHandler, "call_action", DynamoHandler.call_action)
    make_atomic()

    assert races_until_broken(client, 60) is None


def test_an_atomic_store_is_believed_and_left_as_it_was(
    moto: LocalStore, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command says how it raced; its table is gone."""
    before = moto.client.list_tables()["TableNames"]

    code = main(["--endpoint-url", moto.url, "--threads", "4", "--rounds", "3"])

    assert code == 0
    assert "one winner in each of 3 rounds of 4 threads" in capsys.readouterr().out
    assert before == moto.client.list_tables()["TableNames"]


def test_a_store_that_is_not_there_is_said_to_be_unchecked(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Not reached is not the same as not atomic."""
    code = main(["--endpoint-url", closed_port()])

    assert code == 1
    assert "could not be checked" in capsys.readouterr().err


def test_a_check_without_time_for_a_round_says_so(moto: LocalStore) -> None:
    """No round, no verdict."""
    with pytest.raises(StoreNotChecked, match=r"one round within 0\.0 s"):
        check_store(moto.url, limit_s=0.0)


def test_a_check_is_bounded_in_rounds_and_threads(moto: LocalStore) -> None:
    """What it did is in its report."""
    report = check_store(moto.url, threads=2, rounds=4)

    assert (report.threads, report.rounds) == (2, 4)


class Answers:
    """Stands in for a store whose conditional writes answer as told."""

    class exceptions:  # noqa: N801  botocore's name
        """The one error that a race looks for."""

        class ConditionalCheckFailedException(Exception):
            """A refusal."""

            def __init__(self, response: dict[str, Any]) -> None:
                super().__init__()
                self.response = response

    def __init__(self, *answers: dict[str, Any] | None) -> None:
        self._answers = list(answers)

    def put_item(self, **_: object) -> None:
        """Win for None, else be refused with that."""
        answer = self._answers.pop()
        if answer is not None:
            raise self.exceptions.ConditionalCheckFailedException(answer)


ROW = {"Item": {"winner": {"S": "somebody"}}}


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ([ROW, ROW], "had 0 winners"),
        ([None, None], "had 2 winners"),
        ([None, {}], "did not return the row (ALL_OLD)"),
    ],
)
def test_what_is_wrong_is_said(answers: Any, said: str) -> None:
    """No winner, two winners, or a loser that learns nothing."""
    store: Any = Answers(*answers)

    with ThreadPoolExecutor(2) as pool, pytest.raises(StoreNotAtomic, match=re.escape(said)):
        race(store, "t", pool, threads=2, number=0)


def test_a_silent_store_is_unchecked_in_bounded_time() -> None:
    """One try with a read timeout, no retries."""
    with silent_server() as server:
        with pytest.raises(StoreNotChecked):
            check_store(server.url, limit_s=0.5)

        assert len(server.connections) == 1


def test_motos_own_server_is_recognised_however_lucky_the_races() -> None:
    """It has two winners once in some hundred rounds: too seldom for a short check to see."""
    stock = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    stock.start()
    try:
        host, port = stock.get_host_and_port()
        with pytest.raises(StoreNotAtomic, match="no lock"):
            check_store(f"http://{host}:{port}", rounds=1)
    finally:
        stock.stop()


def test_our_own_server_is_told_from_motos(moto: LocalStore) -> None:
    """Every answer of it says that it makes one call at a time."""
    assert check_store(moto.url, rounds=1).rounds == 1
