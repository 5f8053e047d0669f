"""Failed calls: who has to act, and whether the write may have landed."""

import pytest
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionClosedError,
    ConnectTimeoutError,
    CredentialRetrievalError,
    EndpointConnectionError,
    HTTPClientError,
    NoCredentialsError,
    ParamValidationError,
    PartialCredentialsError,
    ProxyConnectionError,
    ReadTimeoutError,
)

from storage.errors import StoreMisconfigured, StoreThrottled, StoreUnavailable
from storage.transport.failures import failure_of

URL = "http://127.0.0.1:1"


def answered(code: str) -> ClientError:
    """Return what botocore raises for an error answer."""
    return ClientError({"Error": {"Code": code, "Message": "said so"}}, "PutItem")


@pytest.mark.parametrize(
    "code",
    ["ThrottlingException", "ProvisionedThroughputExceededException", "RequestLimitExceeded"],
)
def test_a_throttled_write_has_not_been_done(code: str) -> None:
    """The store refused it unread."""
    failure = failure_of(answered(code), table_name="t", writes=True)

    assert isinstance(failure, StoreThrottled)
    assert not failure.may_have_written


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (answered("ResourceNotFoundException"), "create_table"),
        (answered("AccessDeniedException"), "credentials"),
        (answered("UnrecognizedClientException"), "credentials"),
        (answered("ExpiredTokenException"), "credentials"),
        (answered("ValidationException"), "400 KB"),
        (NoCredentialsError(), "credentials"),
        (PartialCredentialsError(provider="env", cred_var="secret"), "credentials"),
        (ParamValidationError(report="no"), "create_table"),
    ],
    ids=str,
)
def test_what_can_never_work_names_its_remedy(
    error: ClientError | BotoCoreError, remedy: str
) -> None:
    """It is for the operator, and repeating it is no use."""
    failure = failure_of(error, table_name="outlast", writes=True)

    assert isinstance(failure, StoreMisconfigured)
    assert "'outlast'" in str(failure)
    assert remedy in str(failure)


@pytest.mark.parametrize(
    ("error", "may_have_written"),
    [
        (EndpointConnectionError(endpoint_url=URL), False),
        (ConnectTimeoutError(endpoint_url=URL), False),
        (ProxyConnectionError(proxy_url=URL), False),
        (CredentialRetrievalError(provider="role", error_msg="slow"), False),
        (ReadTimeoutError(endpoint_url=URL), True),
        (ConnectionClosedError(endpoint_url=URL), True),
        (HTTPClientError(error="anything"), True),
        (answered("InternalServerError"), True),
        (answered("ServiceUnavailable"), True),
        (answered("SomethingNew"), True),
        (ClientError({}, "PutItem"), True),
    ],
    ids=str,
)
def test_a_write_may_have_landed_unless_it_certainly_was_not_sent(
    error: ClientError | BotoCoreError, *, may_have_written: bool
) -> None:
    """Anything unknown is taken for sent; a read never writes."""
    write = failure_of(error, table_name="t", writes=True)
    read = failure_of(error, table_name="t", writes=False)

    assert type(write) is StoreUnavailable
    assert may_have_written == write.may_have_written
    assert isinstance(read, StoreUnavailable)
    assert not read.may_have_written
