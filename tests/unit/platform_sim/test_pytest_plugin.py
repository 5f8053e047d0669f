"""The pytest plugin, in projects of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

APP = """
import asyncio
import pytest
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.responses import JSONResponse
from starlette.routing import Route
from platform_sim.lab.sweep.outside import outside_world

async def send(order_id):
    await outside_world().call("connect")
    await outside_world().call("receipts", order_id)

async def lossy(request):
    order = await request.json()
    return JSONResponse({}, 202, background=BackgroundTask(send, order["id"]))

async def careful(request):
    order = await request.json()
    await send(order["id"])
    return JSONResponse({}, 202)

def make(endpoint):
    return Starlette(routes=[Route("/orders", endpoint, methods=["POST"])])

async def order_from(cut_request, endpoint):
    seen = await cut_request(make(endpoint), "POST /orders", json={"id": "o-1"})
    if seen.acknowledged:
        assert seen.outside.payloads("receipts") == ["o-1"]
"""


def run_tests(pytester: pytest.Pytester, tests: str, *options: str, ini: str = "") -> str:
    """Run tests in a new project, where every warning is an error, and return what is said."""
    pytester.makepyfile(test_it=APP + tests)
    pytester.makeini(f"[pytest]\n{ini}")
    # looptime's plugin is broken where pytest-asyncio is not installed
    result = pytester.runpytest_inprocess("-W", "error", "-p", "no:looptime_plugin", *options)
    return str(result.stdout)


MARKED = """
@pytest.mark.at_every_await
async def test_lossy(cut_request):
    await order_from(cut_request, lossy)

@pytest.mark.at_every_await(seed=3, after_s=1.0, own=("anyio",))
async def test_careful(cut_request):
    await order_from(cut_request, careful)
"""


def test_a_marked_test_fails_with_every_await_it_does_not_survive(
    pytester: pytest.Pytester,
) -> None:
    """In one message, with file and line; the other test passes."""
    text = run_tests(pytester, MARKED)

    assert "1 failed, 1 passed" in text
    assert "cut sweep of test_lossy (seed 1)" in text
    assert f"test_it.py:{line_of('connect')}" in text
    assert "Traceback" not in text


def line_of(part: str) -> int:
    """Return the line of the app in which a text stands."""
    return next(
        number for number, line in enumerate(APP.strip().splitlines(), start=1) if part in line
    )


MISUSED = """
@pytest.mark.at_every_await
def test_sync(cut_request):
    pass

@pytest.mark.at_every_await
async def test_without_a_request():
    pass

@pytest.mark.at_every_await
async def test_skipped(cut_request):
    pytest.skip("not today")

@pytest.mark.at_every_await
async def test_failing_by_itself(cut_request):
    await cut_request(make(careful), "POST /orders", json={"id": 1})
    assert 1 == 2

@pytest.mark.at_every_await
async def test_failing_by_hand(cut_request):
    seen = await cut_request(make(careful), "POST /orders", json={"id": 1})
    if seen.cut:
        pytest.fail("by hand")
"""


UNACKNOWLEDGED = """
@pytest.mark.at_every_await
async def test_mistyped(cut_request):
    seen = await cut_request(make(careful), "POST /nope", json={"id": 1})
    if seen.acknowledged:
        assert seen.outside.payloads("receipts") == [1]

@pytest.mark.at_every_await(any_answer=True)
async def test_meant(cut_request):
    seen = await cut_request(make(careful), "POST /nope", json={"id": 1})
    assert not seen.outside.payloads("receipts")

def test_swept(cut_sweep):
    cut_sweep(lambda: make(careful), "POST /nope")
"""


def test_a_request_that_is_not_acknowledged_fails_unless_that_is_meant(
    pytester: pytest.Pytester,
) -> None:
    """A mistyped path must not pass."""
    text = run_tests(pytester, UNACKNOWLEDGED)

    assert "2 failed, 1 passed" in text
    assert "test_mistyped: without a cut the answer was 404" in text
    assert "any_answer=True" in text


def test_mistakes_are_told_in_the_words_of_pytest(pytester: pytest.Pytester) -> None:
    """Also skips, and failures that no cut is to blame for."""
    text = run_tests(pytester, MISUSED)

    assert "4 failed, 1 skipped" in text
    assert "test_sync must be an async function that makes its request with" in text
    assert "test_without_a_request must be an async function" in text
    assert "assert 1 == 2" in text
    assert "by hand" in text


FIXTURES = """
def test_a_sweep(cut_sweep):
    report = cut_sweep(lambda: make(careful), "POST /orders", json={"id": "o-1"})
    assert report.resumptions > 2

def test_a_profile(outlast_profile):
    assert outlast_profile.name == "workers"

def test_a_clock(virtual_clock):
    async def main():
        await asyncio.sleep(1000.0)
        return asyncio.get_running_loop().time()
    assert virtual_clock(main) == 1000.0

def test_a_store(virtual_clock, outlast_store):
    assert virtual_clock(lambda: outlast_store.store.read("x", within_s=1.0)) is None
    assert dict(outlast_store.rows) == {}
"""


def test_every_fixture_is_there(pytester: pytest.Pytester) -> None:
    """And the profile is the one that the ini file names."""
    text = run_tests(
        pytester, FIXTURES, "--strict-markers", "--strict-config", ini="outlast_profile = workers"
    )

    assert "4 passed" in text


def test_other_peoples_tests_notice_nothing(tmp_path: Path) -> None:
    """Loading the plugin loads nothing else, and an unmarked test runs as ever."""
    tests = """
import sys

def test_it():
    loaded = [name for name in sys.modules if name.startswith("platform_sim.")]
    assert loaded == ["platform_sim.pytest_plugin"]
    assert not {"moto", "uvicorn", "boto3", "typer", "handler", "storage"} & set(sys.modules)
"""
    (tmp_path / "test_it.py").write_text(tests)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert "1 passed" in done.stdout, done.stdout + done.stderr
