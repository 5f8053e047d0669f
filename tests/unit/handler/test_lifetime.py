"""The platform contract: read from the scope; strict mode refuses to be without it."""

from typing import Any

import pytest

from handler.errors import LifetimeMissing
from handler.lifetime import Lifetime, LifetimeGuard
from tests.support.apps import Platform
from tests.support.virtual import run_virtual

SUPPLIED = Platform().extensions()


async def through_guard(scope: dict[str, Any]) -> tuple[list[str], list[dict[str, Any]]]:
    """Send a scope through the guard; return what reached the app and what was sent."""
    reached, sent = list[str](), list[dict[str, Any]]()

    async def app(scope: Any, _receive: Any, _send: Any) -> None:
        reached.append(scope["type"])

    async def receive() -> dict[str, Any]:
        return {"type": "lifespan.startup"}

    async def send(message: Any) -> None:
        sent.append(message)

    await LifetimeGuard(app)(scope, receive, send)
    return reached, sent


@pytest.mark.parametrize("scope", [{}, {"extensions": None}, {"extensions": {"other": {}}}])
def test_a_scope_without_lifetime_has_none(scope: dict[str, Any]) -> None:
    """Missing is a case of its own, not an error here."""
    assert Lifetime.of(scope) is None


def test_a_supplied_lifetime_is_read() -> None:
    """`wait_until`, `remaining` and the platform's name."""
    found = Lifetime.of({"extensions": SUPPLIED})

    assert found is not None
    assert (found.platform, found.remaining()) == ("test", 30.0)
    assert found.wait_until == SUPPLIED["outlast.lifetime"]["wait_until"]


@pytest.mark.parametrize("kind", ["http", "lifespan"])
def test_a_scope_with_lifetime_passes_the_guard(kind: str) -> None:
    """Strict mode adds nothing where the platform keeps the contract."""
    scope = {"type": kind, "extensions": SUPPLIED}

    assert run_virtual(lambda: through_guard(scope)) == ([kind], [])


def test_o03_start_up_is_refused_naming_what_is_missing() -> None:
    """The server is told at start-up, before a request could be lost."""
    reached, (sent,) = run_virtual(lambda: through_guard({"type": "lifespan"}))

    assert (reached, sent["type"]) == ([], "lifespan.startup.failed")
    assert "scope['extensions']['outlast.lifetime']" in sent["message"]
    assert "OUTLAST_LIFETIME=lenient" in sent["message"]


def test_a_request_on_a_server_without_lifespan_is_refused_too() -> None:
    """Some servers send no start-up; then the first request tells."""
    with pytest.raises(LifetimeMissing, match=r"outlast\.lifetime"):
        run_virtual(lambda: through_guard({"type": "http"}))


def test_other_scopes_are_none_of_the_guards_business() -> None:
    """A websocket carries no background work."""
    assert run_virtual(lambda: through_guard({"type": "websocket"})) == (["websocket"], [])
