"""What a swept app prints is heard once."""

import io
import logging
import sys

from platform_sim.lab.sweep.hearing import FirstRunHeard, hearing
from platform_sim.lab.sweep.sweep import sweep
from platform_sim.lab.sweep.trial import Cuts, Finding
from tests.support.swept import ScriptedSubject


def test_the_first_run_is_heard_and_no_other() -> None:
    """Also through a stream that was kept from before, as a log handler keeps it."""
    to = io.StringIO()

    def prints(cuts: Cuts) -> tuple[Finding, ...]:
        print("run", cuts.request_at)
        handler.emit(logging.makeLogRecord({"msg": "kept"}))
        return ()

    with hearing(to) as heard:
        print("loaded")
        handler = logging.StreamHandler(sys.stdout)
        sweep(FirstRunHeard(ScriptedSubject(prints), heard))
        print("unheard")

    assert to.getvalue() == "loaded\nrun None\nkept\n"


def test_bytes_are_heard_too() -> None:
    """What is no UTF-8 is replaced."""
    to = io.StringIO()

    with hearing(to):
        sys.stdout.buffer.write(b"gr\xc3\xbc\xc3\x9fe\xff")

    assert to.getvalue() == "grüße\ufffd"


def test_the_subject_is_the_same_otherwise() -> None:
    """Its report is the one it would have had."""
    subject = ScriptedSubject(lambda cuts: (Finding(text="x"),) if cuts.request_at == 2 else ())
    with hearing(io.StringIO()) as heard:
        through = sweep(FirstRunHeard(subject, heard), most_pairs=3)

    assert through == sweep(subject, most_pairs=3)
