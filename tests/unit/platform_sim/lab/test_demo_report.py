"""The report shows what the verdict found, also when that is bad."""

from dataclasses import replace
from typing import Any

import pytest

from platform_sim.lab.demo import Outcome
from platform_sim.lab.demo_plan import plan
from platform_sim.lab.demo_report import DemoReport
from platform_sim.lab.screen import progress, show
from platform_sim.lab.verdict import Answer, Evidence, Row


def request(key: str, at_ms: int, outcome: str, status: int | None) -> dict[str, Any]:
    """Return a request as the receiver's ledger lists it."""
    return {"key": key, "at_ms": at_ms, "outcome": outcome, "status": status}


def answer(name: str, at_ms: int = 1_000) -> Answer:
    """Return an acknowledgement of the operation whose id is its name's first letter."""
    return Answer(name=name, status=202, operation_id=name[0], ack_ms=4.5, at_ms=at_ms)


EVIDENCE = Evidence(
    answers=[answer("b slow"), answer("a fast"), answer("c killed"), answer("d refused")],
    requests=[
        request("a", 1_010, "replied", 200),
        request("b", 1_010, "left", None),
        request("b", 9_000, "replayed", 200),
        request("c", 1_010, "left", None),
        request("c", 9_000, "replied", 200),
        request("d", 1_010, "replied", 422),
    ],
    effects={"a": 1, "b": 1, "c": 1},
    rows={
        "a": Row(state="delivered", attempts=1, passes=1),
        "b": Row(state="delivered", attempts=2, passes=2),
        "c": Row(state="delivered", attempts=2, passes=2),
        "d": Row(state="rejected", attempts=1, passes=1),
    },
)
OUTCOME = Outcome(seed=7, evidence=EVIDENCE, killed_ids=frozenset({"c"}), kills=1, took_s=12.5)
LOSING = replace(
    OUTCOME,
    evidence=replace(
        EVIDENCE,
        answers=[*EVIDENCE.answers, replace(answer("e away"), status=503, operation_id=None)],
        effects={"a": 2, "b": 1},
        rows={**EVIDENCE.rows, "b": Row(state="uncertain")},
    ),
)


def report(outcome: Outcome = OUTCOME, **more: Any) -> DemoReport:
    """Return a report on passes of 2.5 s."""
    return DemoReport(outcome=outcome, budget_s=2.5, **more)


def test_the_json_has_exactly_the_promised_keys() -> None:
    """Scripts rely on names and meaning."""
    content = report().as_dict()
    operations = content.pop("operations")

    assert content == {
        "accepted": 4,
        "delivered": 3,
        "rejected": 1,
        "lost": 0,
        "duplicate_effects": 0,
        "cut": 1,
        "killed": 1,
        "redriven": 2,
        "seed": 7,
    }
    assert operations[1] == {
        "operation": "b slow",
        "id": "b",
        "ack_ms": 4.5,
        "attempts": 2,
        "passes": 2,
        "cut": "budget",
        "state": "delivered",
        "wire": 2,
        "effects": 1,
        "lost": False,
    }
    assert [one["cut"] for one in operations] == [None, "budget", "killed", None]


def test_losses_doubles_and_refusals_are_all_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """A bad verdict names each broken promise."""
    losing = report(LOSING)
    show(losing)

    assert losing.good is False
    assert losing.line() == (
        "verdict: BROKEN: accepted 4, delivered 1, rejected 1, lost 2, duplicate effects 1"
    )
    assert list(losing.notes()) == [
        "b slow: lost: still uncertain when the time was up",
        "c killed: lost: delivered, says the row; the receiver has nothing",
        "e away: not accepted, status 503",
    ]
    shown = capsys.readouterr().out
    assert all(note in shown for note in [*losing.notes(), losing.line()])


def test_an_operation_that_is_missing_from_the_store_is_shown_without_state() -> None:
    """There is nothing to say of a row that is not there."""
    evidence = replace(EVIDENCE, rows={})
    operations = report(replace(OUTCOME, evidence=evidence)).as_dict()["operations"]

    assert {(one["state"], one["lost"]) for one in operations} == {(None, True)}


def test_nothing_accepted_is_not_a_good_demo() -> None:
    """A platform that answers 503 loses nothing and shows nothing."""
    refused = replace(answer("a"), status=503, operation_id=None)
    evidence = Evidence(answers=[refused])

    assert report(replace(OUTCOME, evidence=evidence)).good is False
    assert report().good is True


def test_a_pass_that_the_platform_cut_is_told_from_one_that_ended_itself() -> None:
    """The web process's own record says which requests were cut."""
    evidence = replace(EVIDENCE, answers=[answer("a fast", 1_000), answer("b slow", 1_400)])
    events = [
        {"kind": "started", "invocation_id": "", "at_s": 0.5, "fields": {"wall_ms": 1_000}},
        {"kind": "response_end", "invocation_id": "i1", "at_s": 0.5, "fields": {}},
        {"kind": "response_end", "invocation_id": "i2", "at_s": 0.9, "fields": {}},
        {"kind": "cut", "invocation_id": "i2", "at_s": 3.9, "fields": {}},
    ]
    outcome = replace(OUTCOME, evidence=evidence)
    operations = report(outcome, events=events).as_dict()["operations"]

    assert [one["cut"] for one in operations] == [None, "ceiling"]


def test_the_table_fits_a_narrow_terminal_unbroken(capsys: pytest.CaptureFixture[str]) -> None:
    """Column names are the promised ones, names are whole, and the verdict is one line."""
    longest = max((one.name for one in plan(1)), key=len)
    evidence = Evidence(
        answers=[replace(answer("a"), name=longest, ack_ms=1234.5)],
        effects={"a": 1},
        rows={"a": Row(state="undelivered", attempts=10, passes=10)},
    )
    show(report(replace(OUTCOME, evidence=evidence)))

    lines = capsys.readouterr().out.splitlines()
    header = "operation ack ms attempts passes cut final state wire effects"
    assert " ".join(lines[1].split()) == header
    assert lines[2].split(" - ")[0].rstrip() == f"{longest} 1234.5       10     10"
    assert max(len(line.rstrip()) for line in lines[1:3]) <= 79
    assert lines[-1].startswith(
        "verdict: BROKEN: accepted 1, delivered 0, rejected 0, lost 1, dupl"
    )


def test_progress_is_plain_lines_on_stderr_without_a_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Stdout stays free for the result."""
    with progress() as tell:
        tell("3 of [4] settled")

    output = capsys.readouterr()
    assert (output.out, output.err.endswith(" s  3 of [4] settled\n")) == ("", True)


def test_progress_on_a_terminal_spins_and_keeps_its_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person sees that something is going on."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    with progress() as tell:
        tell("sending")

    assert "sending" in capsys.readouterr().err


def test_on_a_terminal_a_bad_verdict_is_red(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody should have to read the numbers to see it."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    show(report(LOSING))

    assert "\x1b[1;31mverdict: BROKEN" in capsys.readouterr().out
