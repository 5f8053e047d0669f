"""Store check: is a local DynamoDB atomic at all?

Some stand-ins let two of several simultaneous conditional writes win. Every promise of a product
that relies on such a store would look broken, or worse, kept by luck. So the check comes first:
in each round many threads race one conditional write of one fresh row, put and update by turns,
and exactly one may win; each loser must be shown the row that stood in its way.
It uses boto3 alone and a table of its own, which it deletes. It shows the presence of a race, not
its absence: a store that passes may still be wrong.
"""

import argparse
import sys
import threading
import time
import urllib.request
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

__all__ = [
    "LOCK_HEADER",
    "CheckReport",
    "StoreNotAtomic",
    "StoreNotChecked",
    "check_store",
    "main",
    "race",
]

LOCK_HEADER = "X-Outlast-Store"
"""Every answer of our own store carries it: calls are made one at a time."""

_LOOK_S = 2.0

_KEY: Final = "id"


class StoreNotAtomic(Exception):
    """A conditional write had other than one winner, or a loser was not shown the row."""

    def __init__(self, detail: str) -> None:
        super().__init__(f"local store is not atomic: {detail}")


class StoreNotChecked(Exception):
    """The store could not be reached or did not finish a single round in time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReport:
    """What was checked: `rounds` done, `threads` in each, seconds taken."""

    rounds: int
    threads: int
    took_s: float


def check_store(
    endpoint_url: str | None = None, *, threads: int = 16, rounds: int = 20, limit_s: float = 5.0
) -> CheckReport:
    """Race conditional writes against a store.

    Args:
        endpoint_url: Where it is; None leaves it to the environment.
        threads: Writers in each round.
        rounds: Rounds to do.
        limit_s: Seconds after which no further round starts.

    Raises:
        StoreNotAtomic: It had a round with another number of winners than one.
        StoreNotChecked: No round could be done.
    """
    started = time.monotonic()
    table_name = f"outlast-check-{uuid.uuid4().hex}"
    done = 0
    try:
        client = _client(endpoint_url, threads, read_timeout_s=max(limit_s, 1.0))
        _create_table(client, table_name)
        try:
            _refuse_unlocked_moto(client.meta.endpoint_url)
            with ThreadPoolExecutor(threads) as pool:
                while done < rounds and time.monotonic() - started < limit_s:
                    race(client, table_name, pool, threads=threads, number=done)
                    done += 1
        finally:
            client.delete_table(TableName=table_name)
            client.close()
    except (BotoCoreError, ClientError, ValueError) as error:
        raise StoreNotChecked(f"the store could not be checked: {error}") from error
    if done == 0:
        raise StoreNotChecked(f"the store did not finish one round within {limit_s} s")
    return CheckReport(rounds=done, threads=threads, took_s=time.monotonic() - started)


def _refuse_unlocked_moto(url: str) -> None:
    """Recognise moto without a lock: its two winners are too seldom for a short check to see."""
    try:
        with urllib.request.urlopen(f"{url}/moto-api/", timeout=_LOOK_S) as answer:  # noqa: S310  the operator's own store
            locked = LOCK_HEADER in answer.headers
    except (OSError, ValueError):
        return  # not moto
    if not locked:
        raise StoreNotAtomic(
            "it is moto with no lock round its calls; leave --store out to get one"
        )


def race(
    client: "DynamoDBClient",
    table_name: str,
    pool: ThreadPoolExecutor,
    *,
    threads: int,
    number: int,
) -> None:
    """Let every thread write one row on the condition that nobody has.

    Args:
        client: Client with a pool of at least `threads` connections.
        table_name: Table whose partition key is the text `id`.
        pool: Has at least `threads` threads, all idle.
        threads: Writers.
        number: Number of the round: names the row, and odd rounds update instead of putting.

    Raises:
        StoreNotAtomic: Other than one won, or a loser was not shown the row.
    """
    start = threading.Barrier(threads, timeout=10.0)
    write = _update if number % 2 else _put

    def compete(me: int) -> Any:
        start.wait()
        return write(client, table_name, row=f"round-{number}", winner=f"thread-{me}")

    shown = list(pool.map(compete, range(threads)))
    winners = sum(row is None for row in shown)
    if winners != 1:
        raise StoreNotAtomic(f"round {number} of {threads} threads had {winners} winners")
    if not all(row.get("winner") for row in shown if row is not None):
        raise StoreNotAtomic(f"round {number}: a refused write did not return the row (ALL_OLD)")


def main(argv: Sequence[str] | None = None) -> int:
    """Check the store and say what was found; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m platform_sim.host.store_check", description="Is a local store atomic?"
    )
    parser.add_argument("--endpoint-url", help="default: AWS_ENDPOINT_URL_DYNAMODB")
    parser.add_argument("--threads", type=int, default=16, help="writers a round (%(default)s)")
    parser.add_argument("--rounds", type=int, default=20, help="(%(default)s)")
    parser.add_argument("--limit-s", type=float, default=5.0, help="seconds (%(default)s)")
    options = parser.parse_args(argv)
    try:
        report = check_store(
            options.endpoint_url,
            threads=options.threads,
            rounds=options.rounds,
            limit_s=options.limit_s,
        )
    except (StoreNotAtomic, StoreNotChecked) as failure:
        print(failure, file=sys.stderr)
        return 1
    print(
        f"store is atomic: one winner in each of {report.rounds} rounds of {report.threads} "
        f"threads ({report.took_s:.1f} s)"
    )
    return 0


def _put(client: "DynamoDBClient", table_name: str, *, row: str, winner: str) -> Any:
    """Write the row; returns None, or the row that was there."""
    try:
        client.put_item(
            TableName=table_name,
            Item={_KEY: {"S": row}, "winner": {"S": winner}},
            ConditionExpression="attribute_not_exists(winner)",
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
        )
    except client.exceptions.ConditionalCheckFailedException as refusal:
        return refusal.response.get("Item", {})
    return None


def _update(client: "DynamoDBClient", table_name: str, *, row: str, winner: str) -> Any:
    """Change the row; returns None, or the row that was there."""
    try:
        client.update_item(
            TableName=table_name,
            Key={_KEY: {"S": row}},
            UpdateExpression="SET winner = :winner",
            ConditionExpression="attribute_not_exists(winner)",
            ExpressionAttributeValues={":winner": {"S": winner}},
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
        )
    except client.exceptions.ConditionalCheckFailedException as refusal:
        return refusal.response.get("Item", {})
    return None


def _client(endpoint_url: str | None, threads: int, *, read_timeout_s: float) -> "DynamoDBClient":
    config = Config(
        connect_timeout=1.0,
        read_timeout=read_timeout_s,
        retries={"total_max_attempts": 1, "mode": "standard"},
        max_pool_connections=threads,
    )
    return boto3.Session().client("dynamodb", endpoint_url=endpoint_url, config=config)


def _create_table(client: "DynamoDBClient", table_name: str) -> None:
    client.create_table(
        TableName=table_name,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": _KEY, "AttributeType": "S"}],
        KeySchema=[{"AttributeName": _KEY, "KeyType": "HASH"}],
    )
    client.get_waiter("table_exists").wait(
        TableName=table_name, WaiterConfig={"Delay": 1, "MaxAttempts": 5}
    )


if __name__ == "__main__":
    sys.exit(main())
