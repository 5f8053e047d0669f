"""The HTTP interface: paths, answers, errors, and the service behind it."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

import anyio
import msgspec
import pytest
from starlette.requests import Request

from handler.app import create_app, from_environment
from handler.budget import Deadline
from handler.destinations import Operation
from handler.errors import ConfigurationError, LifetimeMissing
from handler.events import Action
from handler.outcome import Outcome
from handler.service import standard_sinks
from handler.settings import Settings
from storage.states import State
from tests.support.apps import Answer, Platform, Setting, call, no_jitter
from tests.support.senders import HANG, ScriptedSender, status
from tests.support.transports import FaultyTransport, down
from tests.support.virtual import run_virtual

PROBLEM = "application/problem+json"


def test_an_operation_is_accepted_with_its_location() -> None:
    """202, Location, id and state; afterwards it can be looked at."""
    setting = Setting()

    async def main() -> tuple[Answer, Answer, Answer]:
        app = setting.app()
        accepted = await setting.post(app, payload={"n": 1})
        during = await setting.get(app, accepted.headers["location"])
        await setting.platform.settled()
        return accepted, during, await setting.get(app, accepted.headers["location"])

    accepted, during, after = run_virtual(main)
    operation_id = accepted.json["id"]

    assert (accepted.status, accepted.json["state"]) == (202, "claimed")
    assert accepted.headers["location"] == f"/operations/{operation_id}"
    assert (during.status, during.json["state"]) == (200, "claimed")
    assert during.json["lease_until"] == "2023-11-14T22:14:05.000+00:00"
    assert after.json == {
        "id": operation_id,
        "state": "delivered",
        "destination": "a",
        "attempts": 1,
        "passes": 1,
        "unknown": False,
        "created_at": "2023-11-14T22:13:20.000+00:00",
        "updated_at": "2023-11-14T22:13:20.000+00:00",
        "settled_at": "2023-11-14T22:13:20.000+00:00",
        "next_try_at": None,
        "lease_until": None,
        "last_outcome": "delivered",
        "last_status": 204,
        "last_attempt_at": "2023-11-14T22:13:20.000+00:00",
        "reason": None,
    }


def test_a_waiting_operation_says_when_it_is_tried_next() -> None:
    """Only a waiting one: the due time of a claimed one is its lease's end."""
    setting = Setting(sender=ScriptedSender([status(503, headers={"retry-after": "60"})]))

    async def main() -> Any:
        app = setting.app()
        accepted = await setting.post(app)
        await setting.platform.settled()
        return (await setting.get(app, accepted.headers["location"])).json

    shown = run_virtual(main)

    assert (shown["state"], shown["next_try_at"]) == (
        "undelivered",
        "2023-11-14T22:14:20.000+00:00",
    )


@pytest.mark.parametrize(
    ("method", "path", "body", "expected"),
    [
        ("GET", "/nothing", b"", (404, "not-found", "path")),
        ("GET", "/operations", b"", (405, "method-not-allowed", "method")),
        ("DELETE", "/operations/x", b"", (405, "method-not-allowed", "method")),
        ("GET", "/operations/x", b"", (404, "no-such-operation", "id")),
        ("GET", "/operations/" + "x" * 5000, b"", (404, "no-such-operation", "id")),
        ("POST", "/operations", b"", (400, "malformed-json", "body")),
        ("POST", "/operations", b"{", (400, "malformed-json", "body")),
        (
            "POST",
            "/operations",
            b'{"destination": "a", "payload": ' + b"[" * 50_000 + b"]" * 50_000 + b"}",
            (400, "malformed-json", "body"),
        ),
        ("POST", "/operations", b"\xff", (400, "malformed-json", "body")),
        ("POST", "/operations", b"{}", (400, "bad-request", "destination")),
        (
            "POST",
            "/operations",
            b'{"destination": "b", "payload": 1}',
            (422, "unknown-destination", "destination"),
        ),
        (
            "POST",
            "/operations",
            b'{"destination": "a", "payload": "' + b"x" * 1024 * 1024 + b'"}',
            (413, "payload-too-large", "payload"),
        ),
    ],
)
def test_every_refusal_is_a_problem_that_names_field_and_remedy(
    method: str, path: str, body: bytes, expected: tuple[int, str, str]
) -> None:
    """And nothing is written, nothing goes on after the answer."""
    setting = Setting()

    async def main() -> Answer:
        return await call(
            setting.app(), method, path, body=body, extensions=setting.platform.extensions()
        )

    answer = run_virtual(main)
    kind = answer.json["type"].removeprefix("urn:outlast:problem:")

    assert expected == (answer.status, kind, answer.json["field"])
    assert (answer.headers["content-type"], answer.json["status"]) == (PROBLEM, answer.status)
    assert answer.json["remedy"]
    assert answer.json["title"]
    assert (setting.transport.writes, setting.platform.tasks) == (0, [])


def test_an_id_that_can_be_none_of_ours_is_not_asked_for() -> None:
    """A store refuses overlong keys as a mistake of ours; to the caller it is just not there."""
    setting = Setting()
    answer = run_virtual(lambda: setting.get(setting.app(), "/operations/" + "x" * 37))

    assert (answer.status, setting.transport.calls) == (404, [])


def test_405_names_the_methods_there_are() -> None:
    """As RFC 9110 asks."""
    setting = Setting()
    answer = run_virtual(lambda: setting.get(setting.app(), "/operations"))

    assert (answer.headers["allow"], answer.json["remedy"]) == ("POST", "Use POST")


def test_a_reused_key_is_a_problem_too() -> None:
    """422 through the whole app."""
    setting = Setting()

    async def main() -> Answer:
        app = setting.app()
        await setting.post(app, payload=1, key="k")
        await setting.platform.settled()
        return await setting.post(app, payload=2, key="k")

    answer = run_virtual(main)

    assert (answer.status, answer.headers["content-type"]) == (422, PROBLEM)
    assert len(setting.markers()) == 1


def test_looking_while_the_store_is_away_is_a_503() -> None:
    """Not a 404: nothing is known."""
    setting = Setting()
    setting.transport.fault = down
    answer = run_virtual(lambda: setting.get(setting.app(), "/operations/x"))

    assert (answer.status, answer.headers["content-type"], answer.headers["retry-after"]) == (
        503,
        PROBLEM,
        "1",
    )


def test_a_defect_is_a_problem_and_is_raised_to_the_server() -> None:
    """500 for the caller, the traceback for the server's log."""
    setting = Setting()
    messages = list[Any]()

    def broken(_request: Request) -> str:
        raise ZeroDivisionError

    async def send(message: Any) -> None:
        messages.append(message)

    async def main() -> None:
        app = create_app(
            setting.settings,
            destinations=setting.destinations,
            identify=broken,
            open_transport=lambda: setting.transport,
            open_sender=lambda: setting.sender,
        )
        await setting.post(app, send=send)

    with pytest.raises(ZeroDivisionError):
        run_virtual(main)

    assert messages[0]["status"] == 500
    assert (b"content-type", PROBLEM.encode()) in messages[0]["headers"]
    assert setting.transport.calls == []


def test_callers_are_told_apart_by_identify() -> None:
    """One key, two callers, two operations."""
    setting = Setting()

    async def main() -> list[str]:
        app = create_app(
            setting.settings,
            destinations=setting.destinations,
            identify=lambda request: request.headers["x-caller"],
            clock=setting.clock,
            open_transport=lambda: setting.transport,
            open_sender=lambda: setting.sender,
        )
        ids = list[str]()
        for caller in ("alice", "bob", "alice"):
            answer = await call(
                app,
                "POST",
                "/operations",
                body=msgspec.json.encode({"destination": "a", "payload": 1}),
                headers={"Idempotency-Key": "k", "X-Caller": caller},
                extensions=setting.platform.extensions(),
            )
            ids.append(answer.json["id"])
        await setting.platform.settled()
        return ids

    alice, bob, again = run_virtual(main)

    assert alice == again
    assert alice != bob


def test_a_function_is_a_destination() -> None:
    """A user's own `async def deliver(operation, budget)`."""
    given = list[Operation]()

    async def deliver(operation: Operation, _budget: Deadline) -> Outcome:
        given.append(operation)
        return Outcome.DELIVERED

    setting = Setting(destinations={"a": deliver})

    async def main() -> None:
        await setting.post(setting.app(), payload={"n": 1})
        await setting.platform.settled()

    run_virtual(main)

    assert (setting.marker().state, given[0].payload) == (State.DELIVERED, b'{"n":1}')


def test_health_tells_what_is_under_way_and_what_happened() -> None:
    """Counts by action; a pass takes its place from its accept on."""
    setting = Setting(sender=ScriptedSender([status(204, after_s=5.0)]))

    async def main() -> tuple[Any, Any]:
        app = setting.app()
        await setting.post(app)
        during = (await setting.get(app, "/healthz")).json
        await setting.platform.settled()
        return during, (await setting.get(app, "/healthz")).json

    during, after = run_virtual(main)

    assert (during["status"], during["passes_under_way"], after["passes_under_way"]) == ("ok", 1, 0)
    assert after["counts"]["settled"] == 1


def test_a_platform_that_refuses_the_work_costs_no_answer() -> None:
    """202: the marker is written. It stays claimed, its lease brings it to redrive."""
    platform = Platform(wait_until_raises=RuntimeError("the window is closed"))
    setting = Setting(platform=platform)

    async def main() -> tuple[Answer, Any]:
        app = setting.app()
        answer = await setting.post(app)
        return answer, (await setting.get(app, "/healthz")).json

    answer, health = run_virtual(main)
    (told,) = setting.events.of(Action.BACKGROUND_REFUSED)

    assert (answer.status, setting.marker().state) == (202, State.CLAIMED)
    assert (health["passes_under_way"], setting.transport.writes) == (0, 1)
    assert told["reason"] == "RuntimeError: the window is closed"


def test_o03_strict_mode_answers_no_request_without_a_lifetime() -> None:
    """On a server that sends no start-up the first request tells, by name."""
    setting = Setting()
    messages = list[Any]()

    async def send(message: Any) -> None:
        messages.append(message)

    with pytest.raises(LifetimeMissing):
        run_virtual(lambda: call(setting.app(), "GET", "/healthz", send=send))

    assert messages[0]["status"] == 500
    assert b"outlast.lifetime" in messages[1]["body"]


def test_o03_lenient_mode_leaves_every_delivery_to_redrive() -> None:
    """Accepted, counted, never started here."""
    setting = Setting(settings=no_jitter(lifetime="lenient"))
    body = msgspec.json.encode({"destination": "a", "payload": 1})

    async def main() -> tuple[Answer, Any]:
        app = setting.app()
        answer = await call(app, "POST", "/operations", body=body)
        return answer, (await call(app, "GET", "/healthz")).json

    answer, health = run_virtual(main)

    assert (answer.status, answer.json["state"]) == (202, "undelivered")
    assert health["counts"]["background_unowned"] == 1


class Opened:
    """Counts how often parts are opened."""

    def __init__(self) -> None:
        self.transports = list[FaultyTransport]()
        self.senders = list[ScriptedSender]()

    def transport(self) -> FaultyTransport:
        """Open a transport."""
        self.transports.append(FaultyTransport())
        return self.transports[-1]

    def sender(self) -> ScriptedSender:
        """Open a sender."""
        self.senders.append(ScriptedSender([HANG]))
        return self.senders[-1]


async def lifespan(app: Any, extensions: Mapping[str, Any]) -> tuple[list[Any], asyncio.Event]:
    """Start an app; return what it says and the event that ends it."""
    stop, said = asyncio.Event(), list[Any]()
    incoming = iter(["lifespan.startup", "lifespan.shutdown"])

    async def receive() -> Mapping[str, Any]:
        kind = next(incoming)
        if kind == "lifespan.shutdown":
            await stop.wait()
        return {"type": kind}

    async def send(message: Any) -> None:
        said.append(message["type"])

    task = asyncio.ensure_future(
        app({"type": "lifespan", "extensions": extensions, "state": {}}, receive, send)
    )
    said.append(task)
    await anyio.sleep(0.1)
    return said, stop


def app_over(opened: Opened) -> Any:
    """Return an app that counts what it opens."""
    return create_app(
        no_jitter(),
        destinations=Setting().destinations,
        open_transport=opened.transport,
        open_sender=opened.sender,
    )


def test_the_service_is_opened_at_start_up_and_closed_once_at_the_end() -> None:
    """One of each for the life of the process."""
    opened, platform = Opened(), Platform()

    async def main() -> list[str]:
        app = app_over(opened)
        (task, *_), stop = await lifespan(app, platform.extensions())
        for _ in range(2):
            await call(app, "GET", "/operations/x", extensions=platform.extensions())
        stop.set()
        await task
        return [str(len(opened.transports)), str(len(opened.senders))]

    assert run_virtual(main) == ["1", "1"]
    assert (opened.transports[0].closed, opened.senders[0].closed) == (1, 1)


def test_an_app_that_is_started_again_has_a_service_again() -> None:
    """Some servers run one app's lifespan more than once."""
    opened, platform = Opened(), Platform()

    async def main() -> list[int]:
        app, statuses = app_over(opened), list[int]()
        for _ in range(2):
            (task, *_), stop = await lifespan(app, platform.extensions())
            path = "/operations/x"
            answer = await call(app, "GET", path, extensions=platform.extensions())
            statuses.append(answer.status)
            stop.set()
            await task
        return statuses

    assert run_virtual(main) == [404, 404]
    assert [transport.closed for transport in opened.transports] == [1, 1]


def test_making_the_app_opens_nothing_and_the_first_request_does() -> None:
    """o36: clients are made on first use; a server without lifespan gets one set all the same."""
    opened, platform = Opened(), Platform()

    async def main() -> int:
        app = app_over(opened)
        before = len(opened.transports)
        for _ in range(3):
            await call(app, "GET", "/operations/x", extensions=platform.extensions())
        return before

    assert run_virtual(main) == 0
    assert (len(opened.transports), len(opened.senders)) == (1, 1)


def test_a_client_that_leaves_half_way_through_the_body_costs_nothing() -> None:
    """Nothing written, nothing raised to the server's log."""
    setting = Setting()

    async def half() -> AsyncIterator[Any]:
        yield {"type": "http.request", "body": b'{"dest', "more_body": True}
        yield {"type": "http.disconnect"}

    source = half()

    async def main() -> Answer:
        return await call(
            setting.app(),
            "POST",
            "/operations",
            body=source,
            extensions=setting.platform.extensions(),
        )

    assert run_virtual(main).status == 400
    assert setting.transport.calls == []


def test_from_environment_reads_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a server loads; an unusable variable is refused before it serves anything."""
    monkeypatch.setenv("OUTLAST_LIFETIME", "loose")
    with pytest.raises(ConfigurationError, match="OUTLAST_LIFETIME"):
        from_environment()
    monkeypatch.setenv("OUTLAST_LIFETIME", "lenient")

    async def main() -> Answer:
        return await call(from_environment(), "GET", "/nothing")

    assert run_virtual(main).status == 404


def test_a_destination_that_is_no_async_function_is_refused_at_once() -> None:
    """Found when the app is made, not at the first delivery."""

    def deliver(_operation: Operation, _budget: Deadline) -> Outcome:
        return Outcome.DELIVERED

    with pytest.raises(ConfigurationError, match=r"destinations\.mail.*async"):
        create_app(Settings(), destinations={"mail": deliver})  # type: ignore[dict-item]


def test_an_app_tells_its_events_on_standard_error_unless_told_otherwise(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A program that passes nothing must not be left in the dark."""
    standard_sinks()[0](Action.PASS_FAILED, {"reason": "boom"})

    assert '"reason": "boom"' in capsys.readouterr().err


@pytest.mark.parametrize("at_ms", [10**17, 10**30, -(10**17)])
def test_an_instant_that_no_calendar_has_does_not_hide_the_rest(at_ms: int) -> None:
    """A row that somebody tampered with is still shown."""
    setting = Setting()

    async def main() -> Answer:
        app = setting.app()
        accepted = await setting.post(app, payload=1)
        row = {**setting.memory.rows[accepted.json["id"]], "created_at_ms": at_ms}
        setting.memory.put_row(row)
        shown = await setting.get(app, accepted.headers["location"])
        await setting.platform.settled()
        return shown

    shown = run_virtual(main)

    assert shown.status == 200
    assert shown.json["created_at"] is None
