"""The handler's app under a stand-in platform, on virtual time, and a redrive beside it."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
from starlette.applications import Starlette

from handler.app import create_app
from handler.destinations import Deliver, Destination
from handler.events import Action
from handler.ids import Ids
from handler.redrive import Redrive, RedriveReport
from handler.sender import Sender
from handler.service import Parts, Service
from handler.settings import Settings
from storage.marker import Marker
from storage.replies import read_marker
from storage.transport.memory import MemoryTransport
from tests.support.clock import LoopClock
from tests.support.senders import ScriptedSender
from tests.support.transports import FaultyTransport

__all__ = ["Answer", "Events", "Platform", "Setting", "call", "no_jitter", "seeded_ids"]

URL = "http://receiver.test/hooks/a"


def no_jitter(**changes: Any) -> Settings:
    """Return settings without jitter, so that waits are exact."""
    return Settings(**({"backoff_jitter": 0.0, "row_backoff_jitter": 0.0} | changes))


def seeded_ids(clock: LoopClock, seed: int = 1) -> Ids:
    """Return identifiers that are the same in every run."""
    return Ids(
        replica_id=f"replica{seed}",
        random_bits=random.Random(seed).getrandbits,
        wall_ms=clock.wall_ms,
    )


@dataclass(slots=True)
class Events:
    """A sink that remembers."""

    seen: list[tuple[Action, Mapping[str, Any]]] = field(default_factory=list)

    def __call__(self, action: Action, fields: Mapping[str, Any]) -> None:
        """Remember one event."""
        self.seen.append((action, fields))

    def actions(self) -> list[Action]:
        """Return the actions in order."""
        return [action for action, _ in self.seen]

    def of(self, action: Action) -> list[Mapping[str, Any]]:
        """Return the fields of every event of one action."""
        return [fields for seen, fields in self.seen if seen is action]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An HTTP answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """Return the decoded body."""
        return msgspec.json.decode(self.body)


@dataclass(slots=True)
class Platform:
    """A platform without rules of its own: work runs as tasks that a test can cut.

    Attributes:
        allowance_s: What `remaining()` says.
        wait_until_raises: Raised by `wait_until`, when set.
        tasks: One for each `wait_until` call.
    """

    allowance_s: float | None = 30.0
    wait_until_raises: Exception | None = None
    tasks: list[asyncio.Task[Any]] = field(default_factory=list)

    def extensions(self) -> dict[str, Any]:
        """Return the scope's extensions."""
        return {
            "outlast.lifetime": {
                "wait_until": self.wait_until,
                "remaining": lambda: self.allowance_s,
                "platform": "test",
            }
        }

    def wait_until(self, work: Awaitable[Any]) -> None:
        """Run work as a task."""
        if self.wait_until_raises is not None:
            raise self.wait_until_raises
        self.tasks.append(asyncio.ensure_future(work))

    async def settled(self) -> list[Any]:
        """Wait for all work and return what each came to."""
        return await asyncio.gather(*self.tasks, return_exceptions=True)

    async def cut(self) -> list[Any]:
        """Cancel all work, as a platform that takes its allowance back does."""
        for task in self.tasks:
            task.cancel()
        return await self.settled()


Message = MutableMapping[str, Any]


async def call(
    app: Callable[..., Awaitable[None]],
    method: str,
    path: str,
    *,
    body: bytes | AsyncIterator[Message] = b"",
    headers: Mapping[str, str] | None = None,
    extensions: Mapping[str, Any] | None = None,
    send: Callable[[Message], Awaitable[None]] | None = None,
) -> Answer:
    """Send one request to an ASGI app; `send` overhears, and may raise as a lost client does."""
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(n.lower().encode(), v.encode("latin-1")) for n, v in (headers or {}).items()],
        "server": ("handler.test", 80),
        "client": ("client.test", 1),
        "extensions": dict(extensions or {}),
    }
    answered = asyncio.Event()
    given = iter(_whole(body)) if isinstance(body, bytes) else None
    messages: list[Message] = []

    async def receive() -> Message:
        if given is None:
            assert not isinstance(body, bytes)
            async for message in body:
                return message
        else:
            for message in given:
                return message
        await answered.wait()
        return {"type": "http.disconnect"}

    async def overheard(message: Message) -> None:
        messages.append(message)
        if send is not None:
            await send(message)

    await app(scope, receive, overheard)
    start = messages[0]
    return Answer(
        status=start["status"],
        headers={name.decode(): value.decode("latin-1") for name, value in start["headers"]},
        body=b"".join(message.get("body", b"") for message in messages[1:]),
    )


def _whole(body: bytes) -> list[Message]:
    return [{"type": "http.request", "body": body}]


@dataclass(slots=True, kw_only=True)
class Setting:
    """One store, one receiver side, any number of apps and redrives on them.

    Attributes:
        settings: Of app and redrive.
        destinations: By name; `a` is an idempotent receiver unless told otherwise.
        sender: Carries deliveries.
        memory: The rows.
        transport: What app and redrive use to reach them.
    """

    settings: Settings = field(default_factory=no_jitter)
    destinations: Mapping[str, Destination | Deliver] = field(
        default_factory=lambda: {"a": Destination(url=URL, idempotent=True)}
    )
    sender: Sender = field(default_factory=ScriptedSender)
    clock: LoopClock = field(default_factory=LoopClock)
    memory: MemoryTransport = field(default_factory=MemoryTransport)
    transport: FaultyTransport = field(init=False)
    events: Events = field(default_factory=Events)
    platform: Platform = field(default_factory=Platform)
    replicas: int = 0

    def __post_init__(self) -> None:
        self.transport = FaultyTransport(inner=self.memory)

    def app(self) -> Starlette:
        """Make one replica of the app."""
        self.replicas += 1
        return create_app(
            self.settings,
            destinations=self.destinations,
            clock=self.clock,
            ids=seeded_ids(self.clock, self.replicas),
            uniform=lambda: 0.5,
            open_transport=lambda: self.transport,
            open_sender=lambda: self.sender,
            sinks=(self.events,),
        )

    def service(self) -> Service:
        """Open one replica's service."""
        self.replicas += 1
        named = {
            name: given if isinstance(given, Destination) else Destination(deliver=given)
            for name, given in self.destinations.items()
        }
        return Service(
            Parts(
                settings=self.settings,
                destinations=named,
                clock=self.clock,
                ids=seeded_ids(self.clock, self.replicas),
                uniform=lambda: 0.5,
                open_transport=lambda: self.transport,
                open_sender=lambda: self.sender,
                sinks=(self.events,),
            )
        )

    async def redrive(self) -> RedriveReport:
        """Run redrive once."""
        return await Redrive(self.service()).run()

    async def post(
        self,
        app: Starlette,
        *,
        destination: str = "a",
        payload: Any = None,
        key: str | None = None,
        platform: Platform | None = None,
        send: Callable[[Message], Awaitable[None]] | None = None,
    ) -> Answer:
        """Post an operation."""
        body = msgspec.json.encode({"destination": destination, "payload": payload})
        return await call(
            app,
            "POST",
            "/operations",
            body=body,
            headers={} if key is None else {"Idempotency-Key": key},
            extensions=(platform or self.platform).extensions(),
            send=send,
        )

    async def get(self, app: Starlette, path: str) -> Answer:
        """Get a path."""
        return await call(app, "GET", path, extensions=self.platform.extensions())

    def markers(self) -> list[Marker]:
        """Return every marker, oldest first."""
        found = [read_marker(row) for row in self.memory.rows.values()]
        return sorted(found, key=lambda marker: (marker.created_at_ms, marker.operation_id))

    def marker(self) -> Marker:
        """Return the only marker there is."""
        (found,) = self.markers()
        return found
