"""The transport over boto3: one thread a call, one try, never longer than the caller waits.

boto3 blocks, so each call runs on a thread of the transport's own pool. A caller whose time is
over, or who is cancelled, leaves at once; the abandoned thread goes on, its write may still
land, and it keeps its place in the pool until it ends, so threads never exceed `max_threads`.
A call that found no free thread in its time is withdrawn and has certainly not written.
Retries are not here and are refused in the client: each would spend time that nobody counted.
"""

import asyncio
import os
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

import anyio
import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from storage.errors import StoreMisconfigured, StoreUnavailable
from storage.requests import Request, writes
from storage.transport.base import Reply
from storage.transport.failures import failure_of
from storage.transport.render import read_answer, read_refusal, render

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

__all__ = ["BotoTransport", "make_client"]

DEFAULT_MAX_THREADS: Final = 32


def make_client(
    *,
    endpoint_url: str | None = None,
    region: str | None = None,
    max_pool: int = DEFAULT_MAX_THREADS,
    connect_timeout_s: float = 1.0,
    read_timeout_s: float = 5.0,
) -> "DynamoDBClient":
    """Build the one client a process needs; takes some 20 ms, so do it at start-up.

    Args:
        endpoint_url: None leaves it to AWS_ENDPOINT_URL_DYNAMODB, then to the region.
        region: None leaves it to AWS_DEFAULT_REGION and the profile, then to AWS_REGION, which
            botocore itself does not read.
        max_pool: Connections kept; at least as many as the transport's threads.
        connect_timeout_s: Seconds for a connection to come about.
        read_timeout_s: Seconds of silence; a call with less time left has less.

    Raises:
        StoreMisconfigured: The client cannot be built, for example for want of a region.
    """
    config = Config(
        connect_timeout=connect_timeout_s,
        read_timeout=read_timeout_s,
        retries={"total_max_attempts": 1, "mode": "standard"},
        max_pool_connections=max_pool,
        tcp_keepalive=True,
    )
    try:
        session = boto3.Session()
        return session.client(
            "dynamodb",
            endpoint_url=endpoint_url,
            region_name=region or session.region_name or os.environ.get("AWS_REGION"),
            config=config,
        )
    except (BotoCoreError, ValueError) as error:
        raise StoreMisconfigured(
            f"no DynamoDB client: {error}; check AWS_DEFAULT_REGION and AWS_ENDPOINT_URL_DYNAMODB"
        ) from error


class BotoTransport:
    """Executes requests with a boto3 client.

    Args:
        client: From `make_client`, or any whose retries are off.
        max_threads: Calls at a time, abandoned ones included.

    Raises:
        StoreMisconfigured: The client retries by itself.
    """

    def __init__(self, client: "DynamoDBClient", *, max_threads: int = DEFAULT_MAX_THREADS) -> None:
        _refuse_retries(client)
        self._client = client
        self._methods: Mapping[str, Callable[..., Any]] = {
            "GetItem": client.get_item,
            "PutItem": client.put_item,
            "Query": client.query,
            "UpdateItem": client.update_item,
        }
        self._executor = ThreadPoolExecutor(max_threads, thread_name_prefix="outlast-store")
        self._thread = threading.local()
        client.meta.events.register("before-call.dynamodb", self._cap_read_timeout)

    async def execute(self, request: Request, *, within_s: float) -> Reply:
        """Execute one request on a thread; see `Transport.execute`."""
        give_up_at = time.monotonic() + within_s
        try:
            call = self._executor.submit(self._call, request, within_s, give_up_at)
        except RuntimeError as error:
            raise StoreUnavailable(str(error), may_have_written=False) from error
        try:
            with anyio.fail_after(within_s):
                return await asyncio.wrap_future(call)
        except TimeoutError:
            if call.cancel():
                raise _could_not_start(within_s) from None
            raise StoreUnavailable(
                f"no answer from the store within {within_s:.3f} s",
                may_have_written=writes(request),
            ) from None

    async def aclose(self) -> None:
        """Take no more calls and close idle connections; calls under way have their own time."""
        self._executor.shutdown(wait=False)
        self._client.meta.events.unregister("before-call.dynamodb", self._cap_read_timeout)
        self._client.close()

    def _call(self, request: Request, within_s: float, give_up_at: float) -> Reply:
        """Do the call, on a thread."""
        remaining_s = give_up_at - time.monotonic()
        if remaining_s <= 0:
            raise _could_not_start(within_s)
        call = render(request)
        self._thread.read_timeout_s = remaining_s
        try:
            answer = self._methods[call.operation](**call.parameters)
        except self._client.exceptions.ConditionalCheckFailedException as refusal:
            return read_refusal(refusal.response)
        except (BotoCoreError, ClientError) as error:
            raise failure_of(
                error, table_name=request.table_name, writes=writes(request)
            ) from error
        return read_answer(request, answer)

    def _cap_read_timeout(self, context: dict[str, Any], **_: object) -> None:
        """Let silence last no longer than the caller waits; botocore calls this on the thread."""
        remaining_s: float | None = getattr(self._thread, "read_timeout_s", None)
        if remaining_s is not None:
            context["read_timeout"] = min(remaining_s, context["client_config"].read_timeout)


def _could_not_start(within_s: float) -> StoreUnavailable:
    return StoreUnavailable(
        f"no thread was free for the store call within {within_s:.3f} s", may_have_written=False
    )


def _refuse_retries(client: "DynamoDBClient") -> None:
    retries: Mapping[str, Any] = getattr(client.meta.config, "retries", None) or {}
    if retries.get("total_max_attempts") != 1:
        raise StoreMisconfigured(
            f"the DynamoDB client retries by itself (retries={dict(retries)}): build it with "
            "storage.transport.boto.make_client, or with total_max_attempts=1"
        )
