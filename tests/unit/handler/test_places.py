"""Places: a bounded number of inline passes, taken at accept, never lost for good."""

from handler.budget import Deadline
from handler.places import Places
from tests.support.clock import HandClock


def test_no_more_places_are_taken_than_there_are() -> None:
    """The bound holds from the accept on; one given back can be taken again."""
    deadline = Deadline.after(25.0, clock=HandClock())
    places = Places(2)
    taken = [places.take(claim_id, deadline) for claim_id in ("a", "b", "c")]
    places.give_back("a")
    places.give_back("never taken")

    assert taken == [True, True, False]
    assert (places.taken(), places.take("c", deadline)) == (1, True)


def test_a_killed_pass_frees_its_place_when_its_deadline_is_over() -> None:
    """A kill runs no `finally`, so nothing is given back; the deadline does it."""
    clock = HandClock()
    places = Places(1)
    places.take("a", Deadline.after(25.0, clock=clock))
    clock.advance(24.9)
    before = places.taken()
    clock.advance(0.1)

    assert (before, places.taken()) == (1, 0)
