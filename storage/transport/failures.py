"""What a failed DynamoDB call means: whether it may have written, and who has to act.

The table is by error code for answers, by exception type for calls without one. Anything not
listed may have written: that is the assumption which never loses or doubles an effect.
Refused conditions are not failures.
"""

from types import MappingProxyType
from typing import Final

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    CredentialRetrievalError,
    EndpointConnectionError,
    NoCredentialsError,
    ParamValidationError,
    PartialCredentialsError,
    ProxyConnectionError,
)

from storage.errors import StoreError, StoreMisconfigured, StoreThrottled, StoreUnavailable

__all__ = ["failure_of"]

_THROTTLED: Final = frozenset(
    {
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "ThrottlingException",
    }
)

_CREDENTIALS: Final = (
    "check the credentials and the role's rights on the table "
    "(AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; locally any value will do)"
)
_VALIDATION: Final = (
    "check that the table was made by storage.table.create_table and that the payload "
    "keeps a row under 400 KB"
)

_REMEDIES: Final = MappingProxyType(
    {
        "AccessDeniedException": _CREDENTIALS,
        "ExpiredTokenException": _CREDENTIALS,
        "IncompleteSignatureException": _CREDENTIALS,
        "InvalidSignatureException": _CREDENTIALS,
        "MissingAuthenticationTokenException": _CREDENTIALS,
        "UnrecognizedClientException": _CREDENTIALS,
        "ResourceNotFoundException": (
            "create the table with storage.table.create_table, or correct OUTLAST_TABLE, "
            "the region or AWS_ENDPOINT_URL_DYNAMODB"
        ),
        "SerializationException": _VALIDATION,
        "ValidationException": _VALIDATION,
    }
)

_UNSENT: Final = (
    ConnectTimeoutError,
    CredentialRetrievalError,
    EndpointConnectionError,
    ProxyConnectionError,
)


def failure_of(error: ClientError | BotoCoreError, *, table_name: str, writes: bool) -> StoreError:
    """Return the error to raise for a call that failed.

    Args:
        error: What botocore raised.
        table_name: For the message.
        writes: The call would have written.
    """
    match error:
        case ClientError():
            code = error.response.get("Error", {}).get("Code", "")
            throttled, remedy = code in _THROTTLED, _REMEDIES.get(code)
        case NoCredentialsError() | PartialCredentialsError():
            throttled, remedy = False, _CREDENTIALS
        case ParamValidationError():
            throttled, remedy = False, _VALIDATION
        case _:
            throttled, remedy = False, None
    if throttled:
        return StoreThrottled(str(error))
    if remedy is not None:
        return StoreMisconfigured(f"table {table_name!r}: {error}; {remedy}")
    sent = not isinstance(error, _UNSENT)
    return StoreUnavailable(str(error), may_have_written=writes and sent)
