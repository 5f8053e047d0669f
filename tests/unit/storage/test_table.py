"""The table: made once, as the promises need it."""

from typing import TYPE_CHECKING

import pytest

from storage.errors import StoreMisconfigured, StoreUnavailable
from storage.table import create_table, main, prepare_from_environment
from storage.transport.boto import make_client
from tests.support.servers import closed_port
from tests.support.stores import LocalStore

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient


@pytest.fixture(params=["moto", "dynoxide"])
def client(request: pytest.FixtureRequest) -> "DynamoDBClient":
    """Return a client of each DynamoDB implementation."""
    server: LocalStore = request.getfixturevalue(request.param)
    return server.client


def test_a_table_is_made_once_with_a_sparse_index_and_expiry(client: "DynamoDBClient") -> None:
    """Making it again changes nothing and loses nothing."""
    create_table(client, "outlast-made")
    client.put_item(TableName="outlast-made", Item={"operation_id": {"S": "op"}})

    create_table(client, "outlast-made")

    table = client.describe_table(TableName="outlast-made")["Table"]
    ttl = client.describe_time_to_live(TableName="outlast-made")["TimeToLiveDescription"]
    (index,) = table["GlobalSecondaryIndexes"]
    kept = client.get_item(TableName="outlast-made", Key={"operation_id": {"S": "op"}})
    client.delete_table(TableName="outlast-made")
    assert kept.get("Item") == {"operation_id": {"S": "op"}}
    assert [key["AttributeName"] for key in table["KeySchema"]] == ["operation_id"]
    assert index["IndexName"] == "due"
    assert [key["AttributeName"] for key in index["KeySchema"]] == ["due_shard", "due_at"]
    assert index["Projection"]["ProjectionType"] == "KEYS_ONLY"
    assert ttl["AttributeName"] == "expires_at"
    assert ttl["TimeToLiveStatus"] == "ENABLED"


@pytest.mark.parametrize("region_name", ["AWS_REGION", "AWS_DEFAULT_REGION"])
def test_the_environment_says_which_table_and_where(
    moto: LocalStore, monkeypatch: pytest.MonkeyPatch, region_name: str
) -> None:
    """What the local store's launcher calls, in the environment it sets."""
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    monkeypatch.setenv(region_name, "us-east-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", moto.url)
    monkeypatch.setenv("OUTLAST_TABLE", "outlast-named")

    prepare_from_environment()

    assert "outlast-named" in moto.client.list_tables()["TableNames"]
    moto.client.delete_table(TableName="outlast-named")


def test_a_store_that_is_not_there_is_unavailable() -> None:
    """Nothing was made."""
    with pytest.raises(StoreUnavailable) as refused:
        create_table(make_client(endpoint_url=closed_port()))

    assert not refused.value.may_have_written


def test_missing_credentials_are_misconfigured(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message is for the operator, and names the table it was about."""
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")

    with pytest.raises(StoreMisconfigured, match=r"'outlast'.*AWS_ACCESS_KEY_ID"):
        create_table(make_client(endpoint_url=closed_port()))


def test_the_table_can_be_made_from_the_command_line(
    moto: LocalStore, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`python -m storage.table`, where no template makes it."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", moto.url)
    monkeypatch.setenv("OUTLAST_TABLE", "outlast-typed")

    code = main()

    assert code == 0
    assert capsys.readouterr().out == "the table is ready\n"
    moto.client.delete_table(TableName="outlast-typed")


def test_a_table_that_cannot_be_made_says_why_and_what_to_set(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One sentence and exit code 2, no traceback."""
    monkeypatch.delenv("AWS_DEFAULT_REGION")

    code = main()

    assert code == 2
    assert "AWS_DEFAULT_REGION" in capsys.readouterr().err
