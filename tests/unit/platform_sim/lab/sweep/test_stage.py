"""The stage: an app is served, asked, cut, redriven, and looked at when everything is at rest."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, TypeVar

import pytest
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

from platform_sim.lab.sweep.asking import SweptRequest
from platform_sim.lab.sweep.errors import BadSweep
from platform_sim.lab.sweep.loop import run_virtual
from platform_sim.lab.sweep.outside import outside_world
from platform_sim.lab.sweep.places import Code
from platform_sim.lab.sweep.stage import Stage
from platform_sim.lab.sweep.trial import Cuts
from platform_sim.lifetime.profile import GENERIC, WORKERS, Profile
from tests.support.asgi import lifetime_of
from tests.support.swept import ORDER, plain_app

T = TypeVar("T")


def on_stage(
    act: Callable[[Stage], Awaitable[T]], cuts: Cuts | None = None, *, profile: Profile = GENERIC
) -> tuple[T, Stage]:
    """Do something on a stage, then close it."""
    kept: list[Stage] = []

    async def main() -> T:
        stage = Stage(cuts or Cuts(), profile=profile, code=Code(), after_s=10.0, redrive_runs=2)
        kept.append(stage)
        result = await act(stage)
        await stage.aclose()
        return result

    return run_virtual(main), kept[0]


def test_start_up_runs_before_the_request_and_shutdown_after_the_trial() -> None:
    """No check profits from an orderly stop that a killed process never has."""
    said: list[str] = []

    async def lifespan(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            said.append(f"request with {scope['state']}")
            await plain_app()(scope, receive, send)
            return
        assert (await receive())["type"] == "lifespan.startup"
        scope["state"]["pool"] = "open"
        await send({"type": "lifespan.startup.complete"})
        assert (await receive())["type"] == "lifespan.shutdown"
        said.append("shutdown")
        await send({"type": "lifespan.shutdown.complete"})

    async def act(stage: Stage) -> None:
        await stage.ask(lifespan, ORDER)
        said.append("at rest")

    on_stage(act)

    assert said == ["request with {'pool': 'open'}", "at rest", "shutdown"]


def test_an_app_that_refuses_to_start_cannot_be_swept() -> None:
    """Its own message says why."""

    async def app(_scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "lifespan.startup.failed", "message": "no database"})

    with pytest.raises(BadSweep, match="the app refuses to start: no database"):
        on_stage(lambda stage: stage.ask(app, ORDER))


def test_an_app_without_a_lifespan_is_served_all_the_same() -> None:
    """As every server does it."""
    seen, _ = on_stage(lambda stage: stage.ask(plain_app(), ORDER))

    assert (seen.answer.status, seen.acknowledged) == (202, True)
    assert (seen.cut, seen.unfinished, seen.cut_by_platform) == (None, (), ())


def test_the_world_goes_on_for_a_while_before_anybody_looks() -> None:
    """What the app left running ends, if it ends in time."""
    done: list[float] = []

    async def later(_scope: Any) -> None:
        await asyncio.sleep(9.0)
        done.append(asyncio.get_running_loop().time())

    async def act(stage: Stage) -> float:
        await stage.ask(plain_app(later), ORDER)
        return asyncio.get_running_loop().time()

    ended_s, _ = on_stage(act)

    # the server's call is over with the answer, at 0.1 s
    assert (done, ended_s) == ([9.1], 10.1)


def test_a_cut_is_told_with_what_it_stopped() -> None:
    """The client has its answer, and the work after it never ends."""
    done: list[str] = []

    async def later(_scope: Any) -> None:
        await asyncio.sleep(1.0)
        done.append("later")

    _, whole = on_stage(lambda stage: stage.ask(plain_app(later), ORDER))
    resumptions = whole.trial(()).resumptions
    seen, stage = on_stage(
        lambda stage: stage.ask(plain_app(later), ORDER), Cuts(request_at=resumptions)
    )

    assert (seen.answer.status, done) == (202, ["later"])
    assert seen.cut is not None
    assert seen.cut.function == "later"
    assert seen.unfinished == (seen.cut,)
    assert stage.trial(()).place == seen.cut


def test_a_cut_of_an_earlier_request_is_not_told_of_a_later_one() -> None:
    """Each request has its own aftermath; the same app serves both."""

    async def act(stage: Stage) -> list[Any]:
        app = plain_app()
        return [await stage.ask(app, ORDER) for _ in range(2)]

    (first, second), stage = on_stage(act, Cuts(request_at=1))

    assert (first.answer.status, second.answer.status) == (None, 202)
    assert (first.cut is not None, second.cut) == (True, None)
    assert stage.trial(()).resumptions > 1


def test_what_the_platform_cuts_is_told_in_its_words() -> None:
    """A floating task dies with the response on Workers, with no cut of the sweep's."""

    async def floats(_scope: Any) -> None:
        asyncio.create_task(asyncio.sleep(5.0), name="floats")  # noqa: RUF006  on purpose

    seen, _ = on_stage(lambda stage: stage.ask(plain_app(floats), ORDER), profile=WORKERS)

    assert len(seen.cut_by_platform) == 1
    assert "floats (never given to wait_until" in seen.cut_by_platform[0]


def test_a_kill_by_the_sweep_is_not_the_platforms() -> None:
    """It is told as the cut."""
    seen, _ = on_stage(
        lambda stage: stage.ask(plain_app(), ORDER), Cuts(request_at=2), profile=WORKERS
    )

    assert seen.cut_by_platform == ()


def test_redrive_runs_as_often_as_asked_and_may_take_the_app() -> None:
    """With the world going on in between."""
    app = plain_app()
    ran: list[tuple[Any, float]] = []

    async def with_app(given: Any) -> None:
        ran.append((given is app, asyncio.get_running_loop().time()))

    async def without() -> None:
        ran.append((None, asyncio.get_running_loop().time()))

    async def act(stage: Stage) -> None:
        await stage.ask(app, ORDER, redrive=with_app)
        await stage.ask(app, ORDER, redrive=without)

    on_stage(act)

    assert ran == [(True, 10.1), (True, 20.1), (None, 40.2), (None, 50.2)]


def test_a_redrive_that_fails_fails_the_trial() -> None:
    """It is the user's own error, and not a lost order."""

    async def fails() -> None:
        raise KeyError("outbox")

    with pytest.raises(KeyError, match="outbox"):
        on_stage(lambda stage: stage.ask(plain_app(), ORDER, redrive=fails))


@pytest.mark.parametrize(
    ("redrive_at", "expected"), [(1, []), (2, ["one"]), (None, ["one", "two"])]
)
def test_a_cut_redrive_goes_no_further_and_does_not_count(
    redrive_at: int | None, expected: list[str]
) -> None:
    """Two runs come to their end, besides the one that is cut."""
    runs: list[list[str]] = []

    async def redrive() -> None:
        said: list[str] = []
        runs.append(said)
        said.append("one")
        await asyncio.sleep(1.0)
        said.append("two")

    _, stage = on_stage(
        lambda stage: stage.ask(plain_app(), ORDER, redrive=redrive),
        Cuts(request_at=1, redrive_at=redrive_at),
    )
    trial = stage.trial(())
    whole = [["one", "two"], ["one", "two"]]

    assert runs == ([expected, *whole] if expected == ["one"] else whole)
    assert (trial.redrive_place is not None) == (redrive_at is not None)
    if redrive_at is None:
        assert trial.redrive_resumptions == 4


def test_redrive_is_not_counted_before_the_request_is_cut() -> None:
    """Pairs are a cut, and a cut of what runs after it."""

    async def redrive() -> None:
        """Do nothing."""

    _, stage = on_stage(lambda stage: stage.ask(plain_app(), ORDER, redrive=redrive))

    assert stage.trial(()).redrive_resumptions == 0


def test_the_outside_world_is_the_stages() -> None:
    """An app reaches it, and the aftermath shows it."""

    async def endpoint(_request: Any) -> Response:
        await outside_world().call("post")
        return Response(status_code=204)

    app = Starlette(routes=[Route("/", endpoint, methods=["POST"])])
    seen, stage = on_stage(lambda stage: stage.ask(app, SweptRequest.of("POST /")))

    assert seen.outside is stage.outside
    assert seen.outside.payloads("post") == [None]


def test_work_that_is_cancelled_at_the_platforms_ceiling_can_be_cut_in_its_grace() -> None:
    """The resumption that delivers the cancellation is one like any other."""
    said: list[str] = []

    async def work() -> None:
        try:
            await asyncio.sleep(100.0)
        finally:
            said.append("cleaned up")

    async def registers(scope: Any) -> None:
        lifetime_of(scope)["wait_until"](work())

    brief = replace(WORKERS, allowance_s=1.0)
    _, whole = on_stage(lambda stage: stage.ask(plain_app(registers), ORDER), profile=brief)
    last = whole.trial(()).resumptions
    seen, _ = on_stage(
        lambda stage: stage.ask(plain_app(registers), ORDER), Cuts(request_at=last), profile=brief
    )

    assert said == ["cleaned up"]
    assert seen.cut is not None
    assert seen.cut.function == "work"
