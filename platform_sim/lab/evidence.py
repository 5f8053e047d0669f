"""Evidence: the witnesses of an experiment, each asked in its own way.

The receiver's ledger comes over HTTP, the store's rows by a plain boto3 scan, what the platform did
from the web process's record. None of the product's code is used, so none of its mistakes count
twice.
"""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
import boto3
import botocore.session
from botocore.config import Config

from platform_sim.lab.verdict import Row

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

__all__ = ["Ledger", "StoreRows", "read_record"]

_CALL_S = 5.0


class Ledger:
    """A receiver's ledger behind its address."""

    def __init__(self, session: aiohttp.ClientSession, receiver_url: str) -> None:
        self._session = session
        self._url = f"{receiver_url}/_ledger"

    async def read(self) -> dict[str, Any]:
        """Return requests and effects as the receiver lists them."""
        async with self._session.get(self._url) as reply:
            reply.raise_for_status()
            ledger: dict[str, Any] = await reply.json()
            return ledger


class StoreRows:
    """The rows of a marker table, as they are.

    Args:
        environment: Where the store is and how it is entered, as the processes were told.
        table: Name of the table.
    """

    def __init__(self, environment: Mapping[str, str], *, table: str = "outlast") -> None:
        self._table = table
        # the user's profile and proxies are for other places than this store
        own = botocore.session.Session(session_vars={"profile": (None, [], None, None)})
        self._client: DynamoDBClient = boto3.session.Session(botocore_session=own).client(
            "dynamodb",
            endpoint_url=environment["AWS_ENDPOINT_URL_DYNAMODB"],
            region_name=environment["AWS_REGION"],
            aws_access_key_id=environment["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=environment["AWS_SECRET_ACCESS_KEY"],
            config=Config(
                connect_timeout=_CALL_S,
                read_timeout=_CALL_S,
                proxies={},
                retries={"total_max_attempts": 1, "mode": "standard"},
            ),
        )

    async def read(self) -> dict[str, Row]:
        """Return every row by operation id."""
        return await asyncio.to_thread(self._scan)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _scan(self) -> dict[str, Row]:
        pages = self._client.get_paginator("scan").paginate(
            TableName=self._table, ConsistentRead=True
        )
        return {
            item["operation_id"]["S"]: Row(
                state=item["state"]["S"],
                attempts=_number(item, "attempts"),
                passes=_number(item, "passes"),
            )
            for page in pages
            for item in page["Items"]
        }


def read_record(path: Path) -> list[dict[str, Any]]:
    """Return the events that a web process recorded, in order.

    A process that is killed may leave a line half written; what it would have said is unknown.
    """
    events = []
    for line in path.read_text("utf-8", errors="replace").splitlines():
        try:
            events.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return events


def _number(item: Mapping[str, Any], name: str) -> int:
    return int(item[name]["N"]) if name in item else 0
