"""What faults do to replicas, receivers, passes and rows."""

import gc

import pytest

from handler.service import Service
from platform_sim.lab.scenario.played import Played
from tests.support.scenarios import ONE, play_text, seen_in

SLOW = ONE.replace("status = 204", "delay_s = 20.0, status = 204")
LEFT = "[platform]\nallowance_s = 0.0\n"


def fault(**keys: object) -> str:
    """Return a fault's text."""
    lines = (
        f"{name} = {value!r}" if isinstance(value, str) else f"{name} = {value}"
        for name, value in keys.items()
    )
    return "\n".join(["[[faults]]", *lines, ""])


def told(played: Played, *kinds: str) -> list[tuple[float, str]]:
    """Return when and where events of these kinds were told."""
    return [(round(event.at_s, 3), event.source) for event in played.story.of(*kinds)]


def states(played: Played) -> list[tuple[float, str]]:
    """Return the history of the operation `a`."""
    return [(state.at_s, state.state) for state in seen_in(played)["a"].history]


def test_a_killed_web_replica_refuses_until_it_is_replaced() -> None:
    """Its connection to the receiver closes; the receiver's work goes on."""
    repeats = SLOW + "repeats_at_s = [6.0, 8.0]\n"
    played = play_text(
        repeats + fault(do="kill", at_s=5.0, replica="web-1", back_after_s=2.0), run_for_s=30.0
    )
    seen = seen_in(played)["a"]

    assert seen.answers == (202, None, 202)
    assert [attempt.end_s for attempt in seen.attempts] == [None]
    assert seen.effects == 1


@pytest.mark.parametrize(
    ("faults", "shutdowns"),
    [
        ([], 1),
        ([{"do": "kill"}], 0),
        ([{"do": "kill", "back_after_s": 2.0}], 1),
        ([{"do": "freeze"}], 0),
        ([{"do": "term"}], 1),
        ([{"do": "term", "back_after_s": 2.0}], 2),
        ([{"do": "term", "back_after_s": 2.0, "grace_s": 40.0}], 2),
    ],
)
def test_a_kill_runs_nothing_of_the_apps_shutdown_and_term_does(
    faults: list[dict[str, object]], shutdowns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not when it is replaced, not when it is collected, not when the world ends."""
    closed: list[object] = []
    monkeypatch.setattr(Service, "aclose", lambda self: _note(closed, self))
    text = "".join(fault(at_s=5.0, replica="web-1", **keys) for keys in faults)
    play_text(SLOW + text, run_for_s=30.0)
    gc.collect()

    assert len(closed) == shutdowns


def test_a_kill_in_the_grace_after_a_cancellation_lets_no_line_run() -> None:
    """Neither when a thaw would have let it hear of the cancellation."""
    cut = "[platform]\nallowance_s = 3.0\ncut = 'cancel'\ncancel_grace_s = 2.0\n"
    frozen = fault(do="freeze", at_s=1.0, replica="web-1")
    killed = fault(do="kill", at_s=3.1, replica="web-1")
    thawed = fault(do="thaw", at_s=3.2, replica="web-1")
    off = "[redrive]\nreplicas = 0\n"

    assert told(play_text(cut + off + SLOW + frozen + thawed), "pass_cut") == [(3.2, "web-1")]
    assert told(play_text(cut + off + SLOW + frozen + killed + thawed), "pass_cut") == []


@pytest.mark.parametrize("at", ["accepted", "attempt_started", "byte_left", "write", "run_started"])
@pytest.mark.parametrize("end", ["kill", "the world's"])
def test_what_was_frozen_anywhere_ends_at_the_kill(at: str, end: str) -> None:
    """Also what was about to be stepped just then."""
    replica = "redrive-1" if at == "run_started" else "web-1"
    faults = fault(do="freeze", at=at, replica=replica)
    if end == "kill":
        faults += fault(do="kill", at_s=70.0, replica=replica)
    played = play_text(SLOW + faults, run_for_s=80.0)

    assert not [e for e in played.story.events if e.source == replica and 71 < e.at_s < 80]


async def _note(closed: list[object], service: object) -> None:
    closed.append(service)


def test_a_frozen_web_replica_keeps_requests_waiting_until_the_thaw() -> None:
    """And its clock stands still meanwhile."""
    late = ONE.replace('key = "a"', 'key = "a"\nat_s = 5.0')
    faults = fault(do="freeze", at_s=1.0, replica="web-1") + fault(
        do="thaw", at_s=9.0, replica="web-1"
    )

    assert states(play_text(late + faults)) == [(9.0, "claimed"), (9.0, "delivered")]


def test_what_waits_at_a_frozen_replica_is_dropped_when_it_is_killed() -> None:
    """Nobody is left to answer."""
    late = ONE.replace('key = "a"', 'key = "a"\nat_s = 5.0')
    faults = fault(do="freeze", at_s=1.0, replica="web-1") + fault(
        do="kill", at_s=9.0, replica="web-1"
    )
    seen = seen_in(play_text(late + faults))["a"]

    assert (seen.answers, seen.state) == ((None,), "absent")


def test_term_without_a_grace_of_its_own_gives_the_platforms() -> None:
    """What still runs after it is cut, and settles what it knows."""
    platform = "[platform]\nshutdown_grace_s = 3.0\n"
    played = play_text(
        platform + SLOW + fault(do="term", at_s=5.0, replica="web-1"), run_for_s=50.0
    )

    assert states(played) == [(0.0, "claimed"), (7.9, "uncertain")]


def test_a_stopped_web_replica_may_come_back() -> None:
    """As in a rolling deployment."""
    again = ONE + "repeats_at_s = [8.0]\n"
    played = play_text(
        again + fault(do="term", at_s=5.0, replica="web-1", grace_s=1.0, back_after_s=2.0),
        run_for_s=20.0,
    )

    assert seen_in(played)["a"].answers == (202, 202)


def test_a_killed_run_leaves_its_claim_to_the_next() -> None:
    """The next tick is a new process."""
    played = play_text(
        LEFT + SLOW + fault(do="kill", at_s=65.0, replica="redrive-1"), run_for_s=200.0
    )

    assert states(played) == [
        (0.0, "undelivered"),
        (60.0, "claimed"),
        (120.0, "claimed"),
        (120.0, "delivered"),
    ]


def test_term_cancels_a_run_which_gives_back_what_it_holds() -> None:
    """Inside its grace."""
    played = play_text(
        LEFT + SLOW + fault(do="term", at_s=65.0, replica="redrive-1", grace_s=2.0), run_for_s=100.0
    )

    assert states(played) == [(0.0, "undelivered"), (60.0, "claimed"), (65.0, "uncertain")]
    assert told(played, "pass_cut") == [(65.0, "redrive-1")]


def test_term_of_an_idle_redrive_replica_changes_nothing() -> None:
    """There is no run to stop."""
    played = play_text(LEFT + ONE + fault(do="term", at_s=5.0, replica="redrive-1"), run_for_s=70.0)

    assert states(played)[-1] == (60.0, "delivered")


def test_a_frozen_run_goes_on_at_the_thaw_and_ticks_meanwhile_are_skipped() -> None:
    """The replica is one process, and suspended."""
    faults = fault(do="freeze", at_s=65.0, replica="redrive-1") + fault(
        do="thaw", at_s=150.0, replica="redrive-1"
    )
    played = play_text(LEFT + SLOW + faults, run_for_s=170.0)

    assert told(played, "run_skipped") == [(120.0, "redrive-1")]
    assert states(played)[-1] == (150.0, "delivered")


@pytest.mark.parametrize("do", ["thaw", "kill"])
def test_a_replica_frozen_while_idle_skips_its_ticks(do: str) -> None:
    """Until it thaws, or is a new one."""
    faults = fault(do="freeze", at_s=10.0, replica="redrive-1") + fault(
        do=do, at_s=100.0, replica="redrive-1"
    )
    played = play_text(LEFT + ONE + faults, run_for_s=130.0)

    assert told(played, "run_skipped") == [(60.0, "redrive-1")]
    assert states(played)[-1] == (120.0, "delivered")


def test_a_run_is_cut_at_the_end_of_its_life() -> None:
    """The schedule's limit: it is cancelled, and gives back."""
    played = play_text(LEFT + SLOW + "[redrive]\nlife_s = 5.0\n", run_for_s=100.0)

    assert told(played, "run_cut") == [(65.0, "redrive-1")]
    assert states(played)[-1] == (65.0, "uncertain")


def test_a_receiver_goes_down_and_comes_up() -> None:
    """By itself at `until_s`, or by another fault."""
    quick = "[handler]\nbackoff_base_s = 1.0\nbackoff_cap_s = 1.0\nbackoff_jitter = 0.0\n"
    by_itself = fault(do="down", at_s=0.0, receiver="r", until_s=2.5)
    by_fault = fault(do="down", at_s=0.0, receiver="r") + fault(do="up", at_s=4.5, receiver="r")

    assert states(play_text(quick + ONE + by_itself))[-1] == (3.0, "delivered")
    assert states(play_text(quick + ONE + by_fault))[-1] == (5.0, "delivered")


@pytest.mark.parametrize(
    "keys",
    [
        {"do": "cancel"},
        {"do": "break_row", "attributes": "{ claim_id = '' }"},
    ],
)
def test_a_fault_on_an_operation_that_is_not_there_yet_passes(keys: dict[str, str]) -> None:
    """There is nothing to strike."""
    nameless = ONE.replace('key = "a"', 'name = "a"\nat_s = 5.0')
    text = "\n".join(
        ["[[faults]]", "at_s = 1.0", "operation = 'a'"]
        + [f"{k} = {v if v.startswith('{') else repr(v)}" for k, v in keys.items()]
    )

    assert states(play_text(nameless + text))[-1] == (5.0, "delivered")


def test_a_point_is_waited_for_the_nth_time_and_for_its_operation() -> None:
    """A fault strikes once."""
    two = ONE + '[[requests]]\nkey = "b"\ndestination = "r"\n'
    twice = fault(do="down", receiver="r", at="attempt_started", nth=2)
    other = fault(do="down", receiver="r", at="accepted", operation="b")
    narrow = fault(do="down", receiver="r", at="write", calls=["confirm"])

    assert len(told(play_text(two + twice, run_for_s=1.0), "fault")) == 1
    assert told(play_text(two + other, run_for_s=1.0), "fault") == [(0.0, "world")]
    assert told(play_text(two + narrow, run_for_s=1.0), "fault") == [(0.0, "world")]


def test_a_skew_is_seen_in_what_the_replica_writes() -> None:
    """True time is the world's."""
    played = play_text(ONE + fault(do="skew", at_s=0.0, replica="web-1", by_s=-10.0), run_for_s=5.0)
    (row,) = played.end.rows.values()

    assert row["created_at_ms"] == 1_767_225_600_000 - 10_000
