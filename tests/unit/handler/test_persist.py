"""Insisting on a store call: what is safe to repeat, inside one deadline."""

import anyio
import pytest

from handler.budget import Deadline
from handler.persist import insist
from storage.errors import (
    BrokenMarker,
    StoreError,
    StoreMisconfigured,
    StoreThrottled,
    StoreUnavailable,
)
from tests.support.clock import LoopClock
from tests.support.virtual import run_virtual


class Call:
    """A store call that fails as told, then succeeds; remembers when and how long it might take."""

    def __init__(self, *errors: Exception, takes_s: float = 0.0) -> None:
        self._errors = list(errors)
        self._takes_s = takes_s
        self.at_s = list[float]()
        self.within_s = list[float]()

    async def __call__(self, within_s: float) -> str:
        """Do what is told."""
        self.at_s.append(round(anyio.current_time(), 3))
        self.within_s.append(round(within_s, 3))
        await anyio.sleep(self._takes_s)
        if self._errors:
            raise self._errors.pop(0)
        return "done"


def run(
    call: Call, *, budget_s: float = 10.0, limit_s: float = 2.0, tries: int | None = None
) -> str:
    """Insist on a call on virtual time."""

    async def main() -> str:
        deadline = Deadline.after(budget_s, clock=LoopClock())
        return await insist(call, deadline=deadline, limit_s=limit_s, tries=tries)

    return run_virtual(main)


def lost(*, may_have_written: bool = False) -> StoreUnavailable:
    """Return a failure that may be repeated."""
    return StoreUnavailable("reset", may_have_written=may_have_written)


def test_an_available_store_is_called_once() -> None:
    """No second call, and none longer than the limit."""
    call = Call()

    assert run(call) == "done"
    assert call.within_s == [2.0]


def test_pauses_double_up_to_a_second() -> None:
    """The pauses are 0.05, 0.1, 0.2, 0.4, 0.8, then 1 s each."""
    call = Call(*[lost() for _ in range(7)])

    assert run(call) == "done"
    assert call.at_s == [0.0, 0.05, 0.15, 0.35, 0.75, 1.55, 2.55, 3.55]


def test_throttling_is_repeated() -> None:
    """A store that refuses for its rate has written nothing and may be asked again."""
    call = Call(StoreThrottled("slow down"))

    assert run(call) == "done"


def test_a_call_gets_no_more_than_what_is_left() -> None:
    """The deadline caps each call below the limit."""
    call = Call(lost(), lost(), takes_s=1.0)

    assert run(call, budget_s=3.0, limit_s=2.0) == "done"
    assert call.within_s == [2.0, 1.95, 0.85]


def test_it_ends_when_no_further_call_fits() -> None:
    """A pause that would reach the deadline is not begun: nothing sleeps into the limit."""
    call = Call(*[lost() for _ in range(20)])

    with pytest.raises(StoreUnavailable):
        run(call, budget_s=0.3)

    assert call.at_s == [0.0, 0.05, 0.15]


def test_it_ends_after_the_tries_it_was_given() -> None:
    """An accept asks once more, not for ever."""
    call = Call(lost(), lost(), lost())

    with pytest.raises(StoreUnavailable):
        run(call, tries=2)

    assert len(call.at_s) == 2


@pytest.mark.parametrize("error", [StoreMisconfigured("no table"), BrokenMarker("row")])
def test_what_is_wrong_for_good_is_not_repeated(error: StoreError) -> None:
    """Repeating a call that can never work only spends the budget."""
    call = Call(error)

    with pytest.raises(type(error)):
        run(call)

    assert len(call.at_s) == 1


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [(False, False, False), (False, True, True), (True, False, True), (True, True, True)],
)
def test_an_earlier_call_may_have_landed(*, first: bool, second: bool, expected: bool) -> None:
    """The failure tells of all calls together, not of the last one alone."""
    call = Call(lost(may_have_written=first), lost(may_have_written=second))

    with pytest.raises(StoreUnavailable) as caught:
        run(call, tries=2)

    assert expected is caught.value.may_have_written
