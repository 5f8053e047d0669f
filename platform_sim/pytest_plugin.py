"""The pytest plugin `outlast`: does your endpoint survive a cut at every await?

Rules: loading it costs nothing and changes nothing: everything is imported when a test asks for it.
`docs/sweep.md` shows how it is used.

Not here: what a sweep is (`platform_sim.lab.sweep`).
"""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from platform_sim.lab.sweep.at_every_await import CutRequest
    from platform_sim.lab.sweep.in_tests import CutSweep
    from platform_sim.lifetime.profile import Profile
    from platform_sim.wiring.memory_store import MemoryStore

_MARKER = "at_every_await"
_INI = "outlast_profile"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the profile be set for a whole test suite."""
    parser.addini(_INI, "platform profile that cut sweeps run under", default="generic")


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line(
        "markers",
        f"{_MARKER}(pairs=False, most_pairs=1000, after_s=60.0, redrive_runs=3, seed=1, own=(), "
        "any_answer=False): "
        "run this async test once for each await of the request it makes with cut_request, "
        "killing the request there",
    )


@pytest.fixture
def outlast_profile(request: pytest.FixtureRequest) -> Profile:
    """Return the platform profile that sweeps run under; override it to choose another."""
    from platform_sim.lifetime.profile import find_profile  # noqa: PLC0415  lazy, see above

    return find_profile(str(request.config.getini(_INI)))


@pytest.fixture
def virtual_clock() -> Callable[[Callable[[], Any]], Any]:
    """Return what runs an async function to its end on virtual time: `virtual_clock(main)`."""
    from platform_sim.lab.sweep.loop import run_virtual  # noqa: PLC0415  lazy, see above

    return run_virtual


@pytest.fixture
def outlast_store() -> MemoryStore:
    """Return an empty store in memory, on the running event loop's time."""
    from platform_sim.wiring.memory_store import open_memory_store  # noqa: PLC0415  lazy, see above

    return open_memory_store()


@pytest.fixture
def cut_sweep(outlast_profile: Profile) -> CutSweep:
    """Return what cuts a request at every await: `cut_sweep(app, "POST /orders", json=...)`."""
    from platform_sim.lab.sweep.in_tests import CutSweep  # noqa: PLC0415  lazy, see above

    return CutSweep(outlast_profile)


@pytest.fixture
def cut_request(outlast_profile: Profile) -> CutRequest:
    """Return what makes the request of a test marked `at_every_await`."""
    from platform_sim.lab.sweep.at_every_await import CutRequest  # noqa: PLC0415  lazy, see above

    return CutRequest(outlast_profile)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> object | None:
    """Run a marked test once for each await of its request."""
    marker = pyfuncitem.get_closest_marker(_MARKER)
    if marker is None:
        return None
    report = _swept(pyfuncitem, marker)
    if not report.passed:
        pytest.fail(str(report), pytrace=False)
    return True


def _swept(item: pytest.Function, marker: pytest.Mark) -> Any:
    from platform_sim.lab.sweep.at_every_await import (  # noqa: PLC0415  lazy, see above
        AwaitedTest,
        CutRequest,
        sweep_test,
    )

    function = inspect.unwrap(item.obj)  # other plugins wrap async tests into sync ones
    request = item.funcargs.get("cut_request")
    if not inspect.iscoroutinefunction(function) or not isinstance(request, CutRequest):
        pytest.fail(
            f"{_MARKER}: {item.name} must be an async function that makes its request with the "
            "fixture cut_request",
            pytrace=False,
        )
    given = {name: item.funcargs[name] for name in item._fixtureinfo.argnames}
    options = dict(marker.kwargs)
    pairs = {name: options.pop(name) for name in ("pairs", "most_pairs") if name in options}
    if "own" in options:
        options["own"] = frozenset(options["own"])
    test = AwaitedTest(
        title=item.name,
        test=functools.partial(function, **given),
        cut_request=request,
        failures=(pytest.fail.Exception,),
        **options,
    )
    return sweep_test(test, **pairs)
