"""Places: the line of the user's code in which a task is suspended, however deep it hides."""

import asyncio
import importlib
from collections.abc import AsyncIterator, Callable, Generator
from pathlib import Path
from typing import Any

import anyio
import pytest
from starlette.background import BackgroundTask, BackgroundTasks
from starlette.responses import JSONResponse

from platform_sim.lab.sweep.places import Code, Place, frames_of
from platform_sim.lifetime.gate import Gate, Stepper
from tests.support.swept import place
from tests.support.virtual import run_virtual

HERE = "tests/unit/platform_sim/lab/sweep/test_places.py"


async def rests() -> None:
    """Suspend for ever."""
    await asyncio.get_running_loop().create_future()


def line_of(function: Any, text: str) -> int:
    """Return the line of a function in which a text stands."""
    code = function.__code__
    lines = Path(code.co_filename).read_text("utf-8").splitlines()
    return next(
        number
        for number, line in enumerate(lines, start=1)
        if number > code.co_firstlineno and text in line
    )


def place_in(coroutine: Any, code: Code | None = None, *, begun: bool = True) -> Place:
    """Return where a coroutine is suspended, once it has run as far as it can."""

    async def main() -> Place:
        stepper = Stepper(coroutine, Gate(), None)
        task = stepper.task = asyncio.create_task(coroutine, name="the task")
        if begun:
            await asyncio.sleep(0.01)
        found = (code or Code()).place_of(stepper)
        task.cancel()
        await asyncio.wait({task})
        return found

    return run_virtual(main)


async def through_a_generator() -> None:
    """Suspend inside an async generator."""

    async def numbers() -> AsyncIterator[int]:
        yield 1
        await asyncio.get_running_loop().create_future()
        yield 2

    async for _ in numbers():
        pass


class Awaitable:
    """Waits by its own `__await__`."""

    def __await__(self) -> Generator[Any, Any, None]:
        """Wait for ever."""
        yield from asyncio.get_running_loop().create_future()


async def through_an_awaitable() -> None:
    """Suspend inside somebody's `__await__`."""
    await Awaitable()


async def through_a_library() -> None:
    """Suspend inside a library's coroutine."""
    await anyio.sleep(1000.0)


class Wrapped:
    """Waits by the `__await__` of a coroutine."""

    def __await__(self) -> Generator[Any, Any, None]:
        """Wait for ever."""
        return rests().__await__()


async def through_a_wrapper() -> None:
    """Suspend behind a coroutine's `__await__`."""
    await Wrapped()


@pytest.mark.parametrize(
    ("waiter", "frame", "text"),
    [
        (rests, rests, "create_future"),
        (through_a_library, through_a_library, "anyio.sleep"),
        (through_a_generator, through_a_generator, "create_future"),
        (through_an_awaitable, Awaitable.__await__, "create_future"),
        (through_a_wrapper, rests, "create_future"),
    ],
)
def test_a_place_is_the_deepest_frame_of_the_users_code(
    waiter: Callable[[], Any], frame: Any, text: str
) -> None:
    """The chain of awaits is followed through coroutines, generators and awaitables."""
    found = place_in(waiter())

    assert (found.file, found.line) == (HERE, line_of(frame, text))
    assert (found.task, found.is_own, found.has_begun) == ("the task", True, True)


def test_a_task_that_has_not_begun_stands_at_its_first_line() -> None:
    """There is no await to name yet, and the code to come is the user's."""
    found = place_in(rests(), begun=False)

    assert (found.line, found.has_begun) == (rests.__code__.co_firstlineno, False)
    assert found.has_work
    assert str(found) == f"the task at {found.at}, not begun"


def test_without_a_frame_of_the_users_the_librarys_is_named() -> None:
    """It is shortened to where the library is installed, and counts as no work."""
    found = place_in(anyio.sleep(1000.0))

    assert found.file == "asyncio/tasks.py"
    assert (found.is_own, found.has_work) == (False, False)


def test_named_modules_are_the_users_wherever_they_lie() -> None:
    """An app under test may be an installed package."""
    found = place_in(anyio.sleep(1000.0), Code(own=frozenset({"anyio"})))

    assert found.file.startswith("anyio/")
    assert found.is_own


async def no_message(*_: Any) -> Any:
    """Let a send wait for ever, in code that is no user's."""
    await anyio.sleep(1000.0)


async def do_later() -> None:
    """Stand for work after an answer."""


def sending(background: Any) -> Any:
    """Return a response that is being sent by nobody's code."""
    response = JSONResponse({}, background=background)
    return response({"type": "http"}, no_message, no_message)


@pytest.mark.parametrize(
    ("background", "names"),
    [
        (BackgroundTask(do_later), "do_later"),
        (
            BackgroundTasks([BackgroundTask(do_later), BackgroundTask(do_later)]),
            "do_later, do_later",
        ),
    ],
)
def test_a_response_that_is_being_sent_tells_of_its_background_task(
    background: Any, names: str
) -> None:
    """The endpoint is gone from the stack; what it left behind is on the response."""
    code = Code()
    code._known[(__file__, __name__)] = False  # as if this were a server's file
    found = place_in(sending(background), code)

    assert found.file == "starlette/responses.py"
    assert (found.background, found.has_work) == (names, True)
    assert found.remark == f"background task {names} not done"


def test_a_chain_that_leads_nowhere_ends() -> None:
    """Not every awaitable shows what it waits for."""
    assert list(frames_of(None)) == []
    assert list(frames_of(object())) == []


def test_a_stepper_is_looked_through() -> None:
    """A task of the request may await another coroutine of it."""
    coroutine = rests()

    frames = list(frames_of(Stepper(coroutine, Gate(), None)))

    assert [frame.f_code for frame in frames] == [rests.__code__]
    coroutine.close()


def test_a_coroutine_that_has_ended_stands_nowhere() -> None:
    """There is nothing to name, and no work left in it."""

    async def ends() -> None:
        """Do nothing."""

    async def main() -> Place:
        coroutine = ends()
        stepper = Stepper(coroutine, Gate(), None)
        stepper.task = task = asyncio.create_task(coroutine, name="ended")
        await task
        return Code().place_of(stepper)

    found = run_virtual(main)

    assert (found.file, found.line, found.task) == ("?", 0, "ended")
    assert not found.has_work


def test_a_file_is_named_from_where_one_stands(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A file that lies elsewhere keeps its whole name."""
    source = tmp_path / "elsewhere.py"
    source.write_text("import asyncio\nasync def rests():\n    await asyncio.Event().wait()\n")
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("elsewhere")

    assert place_in(module.rests()).at == f"{source}:3"
    monkeypatch.chdir(tmp_path)

    assert place_in(module.rests()).at == "elsewhere.py:3"


def test_a_place_says_itself_in_a_line() -> None:
    """Task, then file and line."""
    assert str(place(3, task="send")) == "send at app.py:3"
