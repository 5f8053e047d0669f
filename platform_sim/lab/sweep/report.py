"""What a sweep found: data, grouped by the line that was cut, as JSON and as text.

Pure. Three verdicts: every cut survived, some did not, or the subject does not repeat itself and
nothing can be said.

Not here: running anything (`sweep`).
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from platform_sim.lab.sweep.acknowledgement import answers_text
from platform_sim.lab.sweep.asking import Answer
from platform_sim.lab.sweep.places import Place
from platform_sim.lab.sweep.trial import Finding, Kind

__all__ = ["Failure", "Line", "Pairs", "SweepReport"]

_VERBS: Mapping[Kind, tuple[str, str]] = {
    Kind.LOST: ("loses work", "lose work"),
    Kind.DOUBLED: ("doubles work", "double work"),
    Kind.BROKEN: ("breaks another promise", "break another promise"),
}
_MOST_TEXTS = 1
_MOST_PAIR_LINES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A cut after which something is wrong.

    Attributes:
        point: The resumption of the request that was cut.
        place: Where that was.
        findings: What is wrong; at least one.
        redrive_point, redrive_place: The same for redrive, in a pair.
    """

    point: int
    place: Place
    findings: tuple[Finding, ...]
    redrive_point: int | None = None
    redrive_place: Place | None = None

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """What sorts of things are wrong, worst first."""
        found = {finding.kind for finding in self.findings}
        return tuple(kind for kind in Kind if kind in found)

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON-able data."""
        pair = {}
        if self.redrive_place is not None:
            pair = {
                "redrive_point": self.redrive_point,
                "redrive_place": _place_dict(self.redrive_place),
            }
        return {
            "point": self.point,
            "place": _place_dict(self.place),
            **pair,
            "findings": [
                {"kind": finding.kind.value, "text": finding.text} for finding in self.findings
            ],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """All failures whose cut fell on one line, in one task.

    Attributes:
        place: The line.
        points: The resumptions.
        kinds: What sorts of things are wrong.
        texts: What is wrong, each thing once.
    """

    place: Place
    points: tuple[int, ...]
    kinds: tuple[Kind, ...]
    texts: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON-able data."""
        return {
            **_place_dict(self.place),
            "points": list(self.points),
            "kinds": [kind.value for kind in self.kinds],
            "texts": list(self.texts),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """What became of the cuts of request and redrive together.

    Attributes:
        space: How many pairs there are.
        run: How many were run.
        failures: Those after which something is wrong.
    """

    space: int
    run: int
    failures: tuple[Failure, ...]

    @property
    def is_exhaustive(self) -> bool:
        """Whether every pair was run."""
        return self.run == self.space

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON-able data."""
        return {
            "space": self.space,
            "run": self.run,
            "exhaustive": self.is_exhaustive,
            "failed": len(self.failures),
            "failures": [failure.as_dict() for failure in self.failures],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepReport:
    """What a sweep found.

    Attributes:
        title: What was swept.
        seed: What every random choice came from.
        resumptions: How often the request's coroutines were resumed without a cut.
        uncut: What is wrong even then.
        uncut_answers: What the clients got then, in order.
        failures: The cuts after which something is wrong.
        pairs: The cuts of request and redrive, if they were asked for.
        unrepeatable: Why nothing can be said, or None.
    """

    title: str
    seed: int
    resumptions: int
    uncut: tuple[Finding, ...] = ()
    uncut_answers: tuple[Answer, ...] = ()
    failures: tuple[Failure, ...] = ()
    pairs: Pairs | None = None
    unrepeatable: str | None = None

    def judged(self, failures: tuple[Failure, ...], pairs: Pairs | None) -> Self:
        """Return this report with what was found."""
        return replace(self, failures=failures, pairs=pairs)

    def unrepeatable_because(self, how: str) -> Self:
        """Return this report for a subject that does not do the same twice."""
        return replace(self, unrepeatable=how)

    @property
    def passed(self) -> bool:
        """Whether every cut survived, and the uncut run too."""
        return not (self.unrepeatable or self.uncut or self.failures or self._pair_failures)

    @property
    def _pair_failures(self) -> tuple[Failure, ...]:
        return () if self.pairs is None else self.pairs.failures

    @property
    def counts(self) -> Mapping[Kind, int]:
        """How many cuts of the request lead to each kind of fault; one may lead to several."""
        found = Counter(kind for failure in self.failures for kind in failure.kinds)
        return {kind: found[kind] for kind in Kind}

    @property
    def lines(self) -> tuple[Line, ...]:
        """The failures by the line that was cut, in the order they were reached."""
        return tuple(_by_line(self.failures))

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON-able data."""
        return {
            "title": self.title,
            "seed": self.seed,
            "passed": self.passed,
            "unrepeatable": self.unrepeatable,
            "resumptions": self.resumptions,
            "failed": len(self.failures),
            "counts": {kind.value: count for kind, count in self.counts.items()},
            "uncut_answers": [
                {"status": each.status, "raised": each.raised} for each in self.uncut_answers
            ],
            "uncut": [{"kind": each.kind.value, "text": each.text} for each in self.uncut],
            "lines": [line.as_dict() for line in self.lines],
            "failures": [failure.as_dict() for failure in self.failures],
            "pairs": None if self.pairs is None else self.pairs.as_dict(),
        }

    def __str__(self) -> str:
        return "\n".join(self._text())

    def _text(self) -> Iterator[str]:
        yield f"cut sweep of {self.title} (seed {self.seed})"
        if self.uncut_answers:
            yield f"without a cut {answers_text(self.uncut_answers)}"
        if self.unrepeatable is not None:
            yield f"not repeatable, so nothing is reported: {self.unrepeatable}"
            return
        yield self._summary()
        for finding in self.uncut:
            yield f"without any cut: {finding.kind}: {finding.text}"
        if self.failures:
            yield ""
            yield from _table(self.lines)
        if self.pairs is not None:
            yield from _pairs_text(self.pairs, self.seed)
        yield ""
        yield "PASSED" if self.passed else "FAILED"

    def _summary(self) -> str:
        counts = {kind: count for kind, count in self.counts.items() if count}
        told = ", ".join(f"{count} {_VERBS[kind][count > 1]}" for kind, count in counts.items())
        safe = self.resumptions - len(self.failures)
        head = f"{_count(self.resumptions, 'resumption')}, killed at each in turn"
        return f"{head}: {told + ', ' if told else ''}{safe} of {self.resumptions} survive"


def _place_dict(place: Place) -> dict[str, Any]:
    return {
        "file": place.file,
        "line": place.line,
        "function": place.function,
        "task": place.task,
        "own": place.is_own,
        "begun": place.has_begun,
    }


def _by_line(failures: Iterable[Failure]) -> Iterator[Line]:
    groups: dict[tuple[str, str], list[Failure]] = defaultdict(list)
    for failure in failures:
        groups[failure.place.at, failure.place.task].append(failure)
    for group in groups.values():
        kinds = {kind for failure in group for kind in failure.kinds}
        texts = dict.fromkeys(each.text for failure in group for each in failure.findings)
        yield Line(
            place=group[0].place,
            points=tuple(dict.fromkeys(failure.point for failure in group)),
            kinds=tuple(kind for kind in Kind if kind in kinds),
            texts=tuple(texts),
        )


def _table(lines: Sequence[Line]) -> Iterator[str]:
    rows = [("cut at", "points", "task", "then")]
    rows += [
        (line.place.at, _ranges(line.points), line.place.task, "+".join(line.kinds))
        for line in lines
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    for place, row in enumerate(rows):
        yield "  ".join(
            f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)
        ).rstrip()
        if place:
            line = lines[place - 1]
            for text in line.texts[:_MOST_TEXTS]:
                yield f"    {text}"
            if len(line.texts) > _MOST_TEXTS:
                yield f"    and {len(line.texts) - _MOST_TEXTS} more like it (--json has all)"


def _pairs_text(pairs: Pairs, seed: int) -> Iterator[str]:
    how = "all" if pairs.is_exhaustive else f"{pairs.run} drawn with seed {seed}"
    yield ""
    yield (
        f"{_count(pairs.space, 'pair')} of a cut and a cut of the redrive after it, {how} run: "
        f"{len(pairs.failures)} of {pairs.run} fail"
    )
    for failure in pairs.failures[:_MOST_PAIR_LINES]:
        yield f"  {failure.place.at} (point {failure.point}), then {_redrive(failure)}"
        yield f"    {failure.findings[0].kind}: {failure.findings[0].text}"
    if len(pairs.failures) > _MOST_PAIR_LINES:
        yield f"  and {len(pairs.failures) - _MOST_PAIR_LINES} more (--json has all)"


def _redrive(failure: Failure) -> str:
    assert failure.redrive_place is not None
    return f"redrive at {failure.redrive_place.at} (point {failure.redrive_point})"


def _ranges(points: Sequence[int]) -> str:
    """Shorten 1, 2, 3, 7 to `1-3, 7`."""
    found: list[list[int]] = []
    for point in points:
        if found and point == found[-1][-1] + 1:
            found[-1].append(point)
        else:
            found.append([point])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in found)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
