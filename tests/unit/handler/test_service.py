"""The service: its parts are opened once, on first use, and closed once, whatever happens."""

import asyncio
import json

import anyio
import pytest
import structlog
from aiohttp import ClientSession

from handler.destinations import Destination
from handler.errors import ConfigurationError
from handler.events import Action
from handler.sender import HttpSender
from handler.service import Parts, Service
from handler.settings import Settings
from storage.transport.boto import BotoTransport
from tests.support.clock import LoopClock
from tests.support.senders import ScriptedSender
from tests.support.transports import FaultyTransport
from tests.support.virtual import run_virtual

ENVIRONMENT = {
    "OUTLAST_BUDGET_S": "3",
    "OUTLAST_DESTINATION_A_URL": "http://receiver.test/hook",
}


class SlowSender(ScriptedSender):
    """A sender whose close takes its time, or fails."""

    takes_s: float = 0.0
    raises: Exception | None = None

    async def aclose(self) -> None:
        """Close."""
        await anyio.sleep(self.takes_s)
        self.closed += 1
        if self.raises is not None:
            raise self.raises


def opened(sender: ScriptedSender, transport: FaultyTransport) -> Service:
    """Open a service over these."""
    return Service(
        Parts(
            settings=Settings(),
            destinations={},
            clock=LoopClock(),
            open_transport=lambda: transport,
            open_sender=lambda: sender,
        )
    )


def test_parts_come_from_the_environment() -> None:
    """Settings and destinations, each with its own errors."""
    parts = Parts.from_environment(ENVIRONMENT)

    assert parts.settings.budget_s == 3.0
    assert parts.destinations == {"a": Destination(url="http://receiver.test/hook")}


def test_an_unusable_environment_is_refused_before_anything_is_opened() -> None:
    """The operator reads the variable's name."""
    with pytest.raises(ConfigurationError, match="OUTLAST_BUDGET_S"):
        Parts.from_environment({"OUTLAST_BUDGET_S": "x"})


def test_events_are_json_lines_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    """Standard output belongs to the program that hosts the handler (ready lines, reports)."""
    (sink,) = Parts.from_environment(ENVIRONMENT).sinks
    sink(Action.SETTLED, {"operation_id": "op", "odd": object})
    out, err = capsys.readouterr()

    assert out == ""
    assert (
        json.loads(err).items()
        >= {
            "event": "settled",
            "action": "settled",
            "operation_id": "op",
            "level": "info",
        }.items()
    )


def test_a_program_that_configured_structlog_keeps_its_own_logging(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The handler is a guest in its host's log."""
    entries = list[str]()

    def capture(_logger: object, _name: str, event: structlog.typing.EventDict) -> str:
        entries.append(str(event["event"]))
        raise structlog.DropEvent

    structlog.configure(processors=[capture])
    try:
        (sink,) = Parts.from_environment(ENVIRONMENT).sinks
        sink(Action.SETTLED, {})
    finally:
        structlog.reset_defaults()

    assert entries == ["settled"]
    assert capsys.readouterr() == ("", "")


def test_everything_is_closed_once() -> None:
    """Sender and transport."""
    sender, transport = ScriptedSender(), FaultyTransport()
    run_virtual(lambda: opened(sender, transport).aclose())

    assert (sender.closed, transport.closed) == (1, 1)


def test_a_sender_that_fails_to_close_leaves_no_transport_open() -> None:
    """One broken part does not leak the other."""
    sender, transport = SlowSender(), FaultyTransport()
    sender.raises = OSError("x")
    with pytest.raises(OSError, match="x"):
        run_virtual(lambda: opened(sender, transport).aclose())

    assert transport.closed == 1


def test_closing_is_bounded() -> None:
    """A connection that will not close holds nobody up for ever."""
    sender, transport = SlowSender(), FaultyTransport()
    sender.takes_s = 1000.0

    async def main() -> float:
        await opened(sender, transport).aclose()
        return anyio.current_time()

    assert run_virtual(main) == 5.0
    assert (sender.closed, transport.closed) == (0, 1)


def test_closing_goes_on_while_being_cancelled() -> None:
    """A scope's cancellation waits for it."""
    sender, transport = SlowSender(), FaultyTransport()
    sender.takes_s = 1.0

    async def main() -> None:
        with anyio.move_on_after(0.5):
            await opened(sender, transport).aclose()

    run_virtual(main)

    assert (sender.closed, transport.closed) == (1, 1)


def test_without_parts_of_ones_own_it_is_boto3_and_aiohttp(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One client of each for the life of the process, opened without a request."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "local")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "local")

    async def main() -> tuple[object, object]:
        service = Service(Parts(settings=Settings(), destinations={}))
        opened_parts = service.delivery.sender, service.store._transport
        await service.aclose()
        return opened_parts

    sender, transport = asyncio.run(main())

    assert isinstance(sender, HttpSender)
    assert isinstance(transport, BotoTransport)


def test_a_service_needs_the_loop_that_will_use_it() -> None:
    """Importing the handler opens nothing; a session is bound to its loop."""
    with pytest.raises(RuntimeError):
        ClientSession()
