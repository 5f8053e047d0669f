"""Stop signals: always heard, except a hangup that `nohup` has switched off."""

import asyncio
import signal

import pytest

from platform_sim.host.signals import Stopped, stop_requests


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("inherited", [signal.SIG_DFL, signal.SIG_IGN])
def test_a_signal_asks_to_stop_unless_it_is_a_hangup_under_nohup(
    number: signal.Signals, inherited: signal.Handlers
) -> None:
    """A shell's background job has SIGINT ignored and must still be stoppable by it."""

    async def main() -> str | None:
        with stop_requests() as stop:
            signal.raise_signal(number)
            for _ in range(5):  # the loop hears of a signal in one round and calls in the next
                await asyncio.sleep(0)
            return stop.name

    before = signal.signal(number, inherited)
    try:
        if (number, inherited) == (signal.SIGHUP, signal.SIG_DFL):
            expected: str | None = "SIGHUP"
        else:
            expected = None if number is signal.SIGHUP else number.name
        assert asyncio.run(main()) == expected
    finally:
        signal.signal(number, before)


def test_the_second_request_is_told_from_the_first() -> None:
    """Whoever asks twice does not want to wait; the first name is kept."""

    async def main() -> tuple[bool, str]:
        with stop_requests() as stop:
            again = asyncio.ensure_future(stop.wait_again())
            stop.request("SIGTERM")
            await asyncio.sleep(0)
            early = again.done()
            stop.request("SIGINT")
            await again
            return early, await stop.wait()

    assert asyncio.run(main()) == (False, "SIGTERM")


def test_work_that_ends_first_gives_its_result() -> None:
    """Nothing is left waiting for a signal that never comes."""

    async def work() -> int:
        return 7

    async def main() -> tuple[int, int]:
        with stop_requests() as stop:
            result = await stop.unless(work())
            return result, len(asyncio.all_tasks())

    assert asyncio.run(main()) == (7, 1)


def test_a_request_that_comes_first_ends_the_work() -> None:
    """The work may clean up; the caller learns which signal it was."""
    cleaned: list[bool] = []

    async def work() -> None:
        try:
            await asyncio.sleep(600)
        finally:
            cleaned.append(True)

    async def main() -> None:
        with stop_requests() as stop:
            asyncio.get_running_loop().call_soon(stop.request, "SIGTERM")
            await stop.unless(work())

    with pytest.raises(Stopped, match="SIGTERM"):
        asyncio.run(main())

    assert cleaned == [True]
