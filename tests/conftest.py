"""What every test stands on: a clean environment, no way out of this machine, checked stores."""

import os
from collections.abc import Iterator

import pytest

from tests.support.environment import scrub
from tests.support.loopback import LoopbackGuard

pytest_plugins = ["tests.support.stores"]

scrub(os.environ)
GUARD = LoopbackGuard()
GUARD.install()


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Run coroutine tests on asyncio, the only backend the product supports."""
    return "asyncio"


@pytest.fixture
def loopback_guard() -> LoopbackGuard:
    """Return the guard that stands in front of this process's sockets."""
    return GUARD


@pytest.fixture(autouse=True)
def _nothing_left_this_machine() -> Iterator[None]:
    yield
    refused, GUARD.refused = GUARD.refused, []
    if refused:
        pytest.fail(f"this test tried to leave the machine: {'; '.join(refused)}")
