"""The report: as data, and as text."""

import json
from dataclasses import replace

from platform_sim.lab.sweep.asking import Answer
from platform_sim.lab.sweep.report import Failure, Pairs, SweepReport
from platform_sim.lab.sweep.trial import Finding, Kind
from tests.support.swept import place

LOST = Finding(text="no receipt")
TWICE = Finding(kind=Kind.DOUBLED, text="two receipts")
BROKEN = Finding(kind=Kind.BROKEN, text="promise 7 no flicker: it flickered")


def failure(point: int, line: int, *findings: Finding, task: str = "send") -> Failure:
    """Return a failure at a line."""
    return Failure(point=point, place=place(line, task=task), findings=findings or (LOST,))


def pair(point: int) -> Failure:
    """Return a failure of a pair."""
    return Failure(
        point=point,
        place=place(3),
        findings=(LOST,),
        redrive_point=4,
        redrive_place=place(9, file="redrive.py", task="the redrive run"),
    )


REPORT = SweepReport(
    title="POST /orders of app",
    seed=7,
    resumptions=9,
    failures=(
        failure(3, 10),
        failure(4, 10),
        failure(5, 10, TWICE, LOST),
        failure(7, 10),
        failure(8, 20, BROKEN, task="the app call"),
    ),
)


SUMMARY = (
    "9 resumptions, killed at each in turn: 4 lose work, 1 doubles work, 1 breaks another promise, "
    "4 of 9 survive"
)


def test_the_text_groups_points_by_the_line_that_was_cut() -> None:
    """A line is named once for each task, with all its points."""
    assert str(REPORT).splitlines() == [
        "cut sweep of POST /orders of app (seed 7)",
        SUMMARY,
        "",
        "cut at     points  task          then",
        "app.py:10  3-5, 7  send          lost+doubled",
        "    no receipt",
        "    and 1 more like it (--json has all)",
        "app.py:20  8       the app call  broken",
        "    promise 7 no flicker: it flickered",
        "",
        "FAILED",
    ]


def test_a_sweep_that_every_cut_survives_is_short() -> None:
    """And one resumption is one resumption."""
    report = SweepReport(title="app", seed=1, resumptions=1)

    assert str(report).splitlines() == [
        "cut sweep of app (seed 1)",
        "1 resumption, killed at each in turn: 1 of 1 survive",
        "",
        "PASSED",
    ]
    assert report.passed


def test_the_answers_without_a_cut_are_told() -> None:
    """In words and as data; many that are the same are counted."""
    one = replace(REPORT, uncut_answers=(Answer(status=404),))
    many = replace(
        REPORT,
        uncut_answers=(
            *(Answer(status=202) for _ in range(3)),
            Answer(status=None),
            Answer(status=500, raised="KeyError('id')"),
        ),
    )

    assert str(one).splitlines()[1:3] == ["without a cut the answer was 404", SUMMARY]
    assert str(many).splitlines()[1] == (
        "without a cut the answers were 202 (3 times), no answer, "
        "500 (the app raised KeyError('id'))"
    )
    assert many.as_dict()["uncut_answers"][3:] == [
        {"status": None, "raised": None},
        {"status": 500, "raised": "KeyError('id')"},
    ]


def test_what_fails_without_a_cut_is_told_first() -> None:
    """It is no cut's fault."""
    report = SweepReport(title="app", seed=1, resumptions=2, uncut=(LOST,))

    assert str(report).splitlines()[2] == "without any cut: lost: no receipt"
    assert not report.passed


def test_pairs_are_told_with_both_places_and_how_many_there_are() -> None:
    """The first ten in full."""
    drawn = Pairs(space=500, run=100, failures=tuple(pair(point) for point in range(1, 13)))
    whole = Pairs(space=1, run=1, failures=())
    lines = str(SweepReport(title="app", seed=7, resumptions=2, pairs=drawn)).splitlines()
    short = str(SweepReport(title="app", seed=7, resumptions=2, pairs=whole)).splitlines()

    assert lines[3] == (
        "500 pairs of a cut and a cut of the redrive after it, 100 drawn with seed 7 run:"
        " 12 of 100 fail"
    )
    assert lines[4:6] == [
        "  app.py:3 (point 1), then redrive at redrive.py:9 (point 4)",
        "    lost: no receipt",
    ]
    assert lines[-3:] == ["  and 2 more (--json has all)", "", "FAILED"]
    assert short[3:] == [
        "1 pair of a cut and a cut of the redrive after it, all run: 0 of 1 fail",
        "",
        "PASSED",
    ]


def test_the_data_says_all_of_it() -> None:
    """And can be sent anywhere."""
    pairs = Pairs(space=1, run=1, failures=(pair(2),))
    data = json.loads(json.dumps(REPORT.judged(REPORT.failures, pairs).as_dict()))

    assert data["resumptions"] == 9
    assert data["failed"] == 5
    assert data["counts"] == {"lost": 4, "doubled": 1, "broken": 1}
    assert data["lines"][0] == {
        "file": "app.py",
        "line": 10,
        "function": "f",
        "task": "send",
        "own": True,
        "begun": True,
        "points": [3, 4, 5, 7],
        "kinds": ["lost", "doubled"],
        "texts": ["no receipt", "two receipts"],
    }
    assert data["failures"][2]["findings"] == [
        {"kind": "doubled", "text": "two receipts"},
        {"kind": "lost", "text": "no receipt"},
    ]
    assert data["pairs"]["failures"][0]["redrive_point"] == 4
    assert data["pairs"]["failures"][0]["redrive_place"]["file"] == "redrive.py"
    assert (data["pairs"]["exhaustive"], data["pairs"]["failed"]) == (True, 1)
    assert (data["passed"], data["unrepeatable"], data["uncut"]) == (False, None, [])
