"""The story as text: one line an event, with what a reader needs and no noise."""

from platform_sim.lab.scenario.verdict import timeline
from tests.support.scenarios import ONE, play_text

STORE = """
[[faults]]
do = "store"
how = "slow"
by_s = 0.25
calls = ["accept", "claim"]
count = 2
at_s = 0.0
until_s = 7.0
[[faults]]
do = "term"
replica = "web-1"
at = "accepted"
grace_s = 0.5
back_after_s = 2.0
"""


def lines_of(*parts: str, kind: str) -> list[str]:
    """Return the lines about events of one kind, without the time."""
    lines = [line.split(maxsplit=2) for line in timeline(play_text(*parts))]
    return [line[2] for line in lines if line[2].startswith(kind)]


def test_a_fault_is_told_with_what_it_says_of_itself() -> None:
    """How, how long and for how many calls."""
    told = [" ".join(line.split()) for line in lines_of(ONE + STORE, kind="fault")]

    assert told == [
        "fault do=store how=slow by_s=0.25 calls=accept, claim count=2 until_s=7.0",
        "fault do=term to=web-1 at=accepted grace_s=0.5 back_after_s=2.0",
    ]


def test_numbers_are_told_to_the_millisecond() -> None:
    """Sums of decimal seconds have long tails, also inside lists and tables."""
    late = ONE + 'at_s = 0.1234567\n[[faults]]\ndo = "skew"\nreplica = "web-1"\n'
    (fault,) = lines_of(late + "at_s = 0.0\nby_s = 0.3000000001\n", kind="fault")
    everything = " ".join(timeline(play_text(ONE.replace("204", "503"))))

    assert fault.endswith("by_s=0.3")
    assert [
        word
        for word in everything.split()
        if len(word.rpartition(".")[2]) > 3 and word.rpartition(".")[2].isdigit()
    ] == []
