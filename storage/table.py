"""The table: its key, the due index and the attribute that lets settled markers expire.

Partition key is the operation id. The index `due` holds keys only, and only of markers that
carry `due_shard` and `due_at`: settled ones leave it. In production the table comes from
the infrastructure's template, which must say the same.
"""

import os
import sys
from typing import TYPE_CHECKING, Final

from botocore.exceptions import BotoCoreError, ClientError

from storage.attributes import Attribute
from storage.errors import StoreError
from storage.transport.boto import make_client
from storage.transport.failures import failure_of
from storage.transport.render import DUE_INDEX

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

__all__ = ["DEFAULT_TABLE_NAME", "create_table", "main", "prepare_from_environment"]

DEFAULT_TABLE_NAME: Final = "outlast"


def create_table(client: "DynamoDBClient", table_name: str = DEFAULT_TABLE_NAME) -> None:
    """Create the table and wait until it can be used; one that exists is left as it is.

    Blocks; for start-up and tests.

    Raises:
        StoreUnavailable: The store could not be reached or did not become ready.
        StoreMisconfigured: It refuses the credentials or the request.
    """
    try:
        _create(client, table_name)
        waiter = client.get_waiter("table_exists")
        waiter.wait(TableName=table_name, WaiterConfig={"Delay": 1, "MaxAttempts": 60})
        _let_expire(client, table_name)
    except (BotoCoreError, ClientError) as error:
        raise failure_of(error, table_name=table_name, writes=True) from error


def prepare_from_environment() -> None:
    """Create the table that OUTLAST_TABLE names in the store the environment points at."""
    client = make_client()
    try:
        create_table(client, os.environ.get("OUTLAST_TABLE", DEFAULT_TABLE_NAME))
    finally:
        client.close()


def _create(client: "DynamoDBClient", table_name: str) -> None:
    try:
        client.create_table(
            TableName=table_name,
            BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[
                {"AttributeName": Attribute.OPERATION_ID, "AttributeType": "S"},
                {"AttributeName": Attribute.DUE_SHARD, "AttributeType": "S"},
                {"AttributeName": Attribute.DUE_AT, "AttributeType": "N"},
            ],
            KeySchema=[{"AttributeName": Attribute.OPERATION_ID, "KeyType": "HASH"}],
            GlobalSecondaryIndexes=[
                {
                    "IndexName": DUE_INDEX,
                    "KeySchema": [
                        {"AttributeName": Attribute.DUE_SHARD, "KeyType": "HASH"},
                        {"AttributeName": Attribute.DUE_AT, "KeyType": "RANGE"},
                    ],
                    "Projection": {"ProjectionType": "KEYS_ONLY"},
                }
            ],
        )
    except client.exceptions.ResourceInUseException:
        return


def _let_expire(client: "DynamoDBClient", table_name: str) -> None:
    ttl = client.describe_time_to_live(TableName=table_name)["TimeToLiveDescription"]
    if ttl.get("TimeToLiveStatus") in {"ENABLED", "ENABLING"}:
        return
    client.update_time_to_live(
        TableName=table_name,
        TimeToLiveSpecification={"Enabled": True, "AttributeName": Attribute.EXPIRES_AT},
    )


def main() -> int:
    """Create the table from the command line: `python -m storage.table`."""
    try:
        prepare_from_environment()
    except StoreError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write("the table is ready\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
