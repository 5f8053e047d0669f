"""The app: the handler's HTTP interface, as a plain ASGI app made by `create_app`.

`POST /operations`, `GET /operations/{id}`, `GET /healthz`. Errors are problem+json (`problems`).
The pass that follows an answer is in `inline`.
"""

import random
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import anyio
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from handler.accept import Acceptance, Acceptor
from handler.budget import Clock, SystemClock
from handler.destinations import Deliver, Destination
from handler.errors import ConfigurationError
from handler.events import Action, Sink
from handler.ids import Ids
from handler.inline import InlineAnswer, InlinePass
from handler.intake import read_intake
from handler.lifetime import Lifetime, LifetimeGuard
from handler.places import Places
from handler.problems import Problem, answer_http_error, answer_problem, answer_unexpected
from handler.sender import Sender
from handler.service import Parts, Service, standard_sinks
from handler.settings import Settings
from storage.errors import StoreError
from storage.marker import Marker
from storage.states import State
from storage.transport.base import Transport

__all__ = ["create_app", "from_environment"]

_ID_CHARS = 36

Identify = Callable[[Request], str]


def from_environment() -> Starlette:
    """Make the app from environment variables; what a server loads.

    Raises:
        ConfigurationError: A variable is unusable; the message names it and the remedy.
    """
    return _app(Parts.from_environment(), _one_caller)


def create_app(
    settings: Settings,
    *,
    destinations: Mapping[str, Destination | Deliver],
    identify: Identify | None = None,
    clock: Clock | None = None,
    ids: Ids | None = None,
    uniform: Callable[[], float] | None = None,
    open_transport: Callable[[], Transport] | None = None,
    open_sender: Callable[[], Sender] | None = None,
    sinks: tuple[Sink, ...] | None = None,
) -> Starlette:
    """Make the app.

    Args:
        settings: Limits and durations.
        destinations: By name: a receiver, or a user's own `async def deliver(operation, budget)`.
        identify: Names the caller of a request, so that keys of different callers never meet.
            Without it all callers are one.
        clock: Where time is read; the system's when left out.
        ids: Where identifiers come from.
        uniform: Draws evenly from [0, 1) for jitter.
        open_transport: Opens the store's transport; boto3 when left out.
        open_sender: Opens the sender of deliveries; aiohttp when left out.
        sinks: Told of every event; the log on standard error when left out.

    Raises:
        ConfigurationError: A destination is neither a receiver nor an async function.
    """
    named = {name: _destination(name, given) for name, given in destinations.items()}
    parts = Parts(
        settings=settings,
        destinations=named,
        clock=clock or SystemClock(),
        ids=ids,
        uniform=uniform or random.random,
        open_transport=open_transport,
        open_sender=open_sender,
        sinks=standard_sinks() if sinks is None else sinks,
    )
    return _app(parts, identify or _one_caller)


def _destination(name: str, given: Destination | Deliver) -> Destination:
    if isinstance(given, Destination):
        return given
    try:
        return Destination(deliver=given)
    except ValueError as error:
        remedy = "Write async def deliver(operation, budget)"
        raise ConfigurationError(f"destinations.{name}", str(error), remedy) from error


def _app(parts: Parts, identify: Identify) -> Starlette:
    endpoints = _Endpoints(parts, identify)
    strict = parts.settings.lifetime == "strict"
    return Starlette(
        routes=[
            Route("/operations", endpoints.accept, methods=["POST"]),
            Route("/operations/{operation_id}", endpoints.show, methods=["GET"]),
            Route("/healthz", endpoints.health, methods=["GET"]),
        ],
        middleware=[Middleware(LifetimeGuard)] if strict else [],
        exception_handlers={
            Problem: answer_problem,
            HTTPException: answer_http_error,
            Exception: answer_unexpected,
        },
        lifespan=endpoints.lifespan,
    )


def _one_caller(_request: Request) -> str:
    return ""


class _Endpoints:
    """The endpoints over one service, opened at start-up or, where none is sent, on first use."""

    def __init__(self, parts: Parts, identify: Identify) -> None:
        self._parts = parts
        self._identify = identify
        self._service: Service | None = None
        self._places = Places(parts.settings.max_inline_passes)

    @asynccontextmanager
    async def lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        service = self._opened()
        try:
            yield
        finally:
            self._service = None
            await service.aclose()

    def _opened(self) -> Service:
        if self._service is None:
            self._service = Service(self._parts)
        return self._service

    async def accept(self, request: Request) -> Response:
        service = self._opened()
        intake = await read_intake(
            request,
            destinations=service.destinations.keys(),
            max_payload_bytes=service.settings.max_payload_bytes,
            max_key_chars=service.settings.max_key_chars,
        )
        acceptor = Acceptor(
            store=service.store,
            settings=service.settings,
            clock=service.clock,
            ids=service.ids,
            events=service.events,
            places=self._places,
        )
        lifetime = Lifetime.of(request.scope)
        acceptance = await acceptor.accept(
            intake, caller=self._identify(request), lifetime=lifetime
        )
        marker = acceptance.marker
        answer = InlineAnswer(
            {"id": marker.operation_id, "state": marker.state.value},
            status_code=202,
            headers={"Location": f"/operations/{marker.operation_id}"},
        )
        answer.follow_up = self._follow_up(service, acceptance, lifetime)
        return answer

    def _follow_up(
        self, service: Service, acceptance: Acceptance, lifetime: Lifetime | None
    ) -> InlinePass | None:
        marker, deadline = acceptance.marker, acceptance.deadline
        if lifetime is None or deadline is None or marker.claim_id is None:
            return None
        claim_id = marker.claim_id

        async def run(answered: anyio.Event) -> None:
            try:
                await service.delivery.run_pass(
                    marker, deadline, after=answered, stopping=lifetime.stopping
                )
            finally:
                self._places.give_back(claim_id)

        def refused(error: Exception) -> None:
            self._places.give_back(claim_id)
            service.events.emit(
                Action.BACKGROUND_REFUSED,
                operation_id=marker.operation_id,
                reason=f"{type(error).__name__}: {error}",
            )

        return InlinePass(run=run, wait_until=lifetime.wait_until, refused=refused)

    async def show(self, request: Request) -> Response:
        service = self._opened()
        operation_id = request.path_params["operation_id"]
        marker = None
        try:
            # What is longer than any id of ours would be refused by the store as a bad key.
            if len(operation_id) <= _ID_CHARS:
                marker = await service.store.read(
                    operation_id, within_s=service.settings.accept_budget_s
                )
        except StoreError as error:
            raise Problem(
                503,
                "store-unavailable",
                "the marker could not be read",
                remedy="Ask again",
                headers={"Retry-After": "1"},
            ) from error
        if marker is None:
            raise Problem(
                404,
                "no-such-operation",
                f"no operation has the id {operation_id[:100]!r}, or its retention is over",
                field="id",
                remedy="Use the id of the answer that accepted it",
            )
        return JSONResponse(_shown(marker))

    async def health(self, _request: Request) -> Response:
        service = self._opened()
        return JSONResponse(
            {
                "status": "ok",
                "passes_under_way": self._places.taken(),
                "counts": service.counts.as_dict(),
            }
        )


def _shown(marker: Marker) -> dict[str, object]:
    waiting = marker.state in {State.UNDELIVERED, State.UNCERTAIN}
    return {
        "id": marker.operation_id,
        "state": marker.state.value,
        "destination": marker.destination,
        "attempts": marker.attempts,
        "passes": marker.passes,
        "unknown": marker.unknown,
        "created_at": _instant(marker.created_at_ms),
        "updated_at": _instant(marker.updated_at_ms),
        "settled_at": _instant(marker.settled_at_ms),
        "next_try_at": _instant(marker.due_at_ms if waiting else None),
        "lease_until": _instant(marker.lease_until_ms),
        "last_outcome": marker.last_outcome,
        "last_status": marker.last_status,
        "last_attempt_at": _instant(marker.last_attempt_at_ms),
        "reason": marker.reason,
    }


def _instant(at_ms: int | None) -> str | None:
    if at_ms is None:
        return None
    try:
        return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds")
    except (OverflowError, OSError, ValueError):
        return None  # a number that was tampered with must not hide the rest of the row
