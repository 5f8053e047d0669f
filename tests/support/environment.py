"""Environment: what the tests let through from the shell that started them."""

import os
from collections.abc import MutableMapping

__all__ = ["FAKE_CREDENTIALS", "scrub"]

FAKE_CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
}

_KEPT = frozenset({"OUTLAST_DYNOXIDE", "OUTLAST_MODEL_HISTORIES", "OUTLAST_MODEL_SEED"})


def scrub(environ: MutableMapping[str, str]) -> None:
    """Take away what could reach a real account or change a default; set fake credentials.

    `OUTLAST_DYNOXIDE` stays: it tells the tests where a second store's binary is. So do the number
    and the seed of the model's histories.
    """
    for name in list(environ):
        if name.startswith(("AWS_", "OUTLAST_", "BOTO_")) and name not in _KEPT:
            del environ[name]
    environ.update(FAKE_CREDENTIALS)
