"""Whether an uncut run was acknowledged, in words."""

import pytest

from platform_sim.lab.sweep.acknowledgement import answers_text, require_acknowledgement
from platform_sim.lab.sweep.asking import Answer
from platform_sim.lab.sweep.errors import BadSweep


def answers(*statuses: int | None) -> tuple[Answer, ...]:
    """Return answers of these statuses."""
    return tuple(Answer(status=status) for status in statuses)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (answers(202), "the answer was 202"),
        (answers(None), "there was no answer"),
        (answers(202, 404), "the answers were 202, 404"),
        (answers(202, None, 202), "the answers were 202 (2 times), no answer"),
    ],
)
def test_answers_are_a_clause(given: tuple[Answer, ...], text: str) -> None:
    """Counted where many are the same."""
    assert answers_text(given) == text


@pytest.mark.parametrize("status", [200, 202, 204, 299])
def test_every_2xx_acknowledges(status: int) -> None:
    """Whatever it is."""
    require_acknowledgement(answers(500), answers(status, 200), "unused")


@pytest.mark.parametrize(
    ("earlier", "now", "told"),
    [
        (answers(404), answers(404), "the answer was 404, so nothing was acknowledged; do this"),
        (answers(), answers(None), "there was no answer, so nothing was acknowledged; do this"),
        (
            answers(201, 500),
            answers(201, 500),
            "the answers were 201, 500, so not all was acknowledged; do this",
        ),
        (
            answers(201),
            answers(409),
            (
                "the answer was 201, and then 409: give what makes a new app for each cut: a "
                "factory, in an import string module:factory()"
            ),
        ),
    ],
)
def test_anything_else_is_refused_with_the_remedy(
    earlier: tuple[Answer, ...], now: tuple[Answer, ...], told: str
) -> None:
    """The answer comes first."""
    with pytest.raises(BadSweep) as refused:
        require_acknowledgement(earlier, now, "do this")

    assert str(refused.value) == f"without a cut {told}"
