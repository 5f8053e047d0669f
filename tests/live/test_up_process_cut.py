"""`outlast up --cut process`: the same promises when the ceiling takes the whole process along."""

from pathlib import Path

import pytest

from platform_sim.view.event import EventKind
from platform_sim.view.recording import read_recording
from platform_sim.view.timeline import as_text, chapters, concerning
from tests.support.local_platform import local_platform
from tests.support.processes import poll

pytestmark = pytest.mark.live

APP = "tests.support.careless:app()"
OPTIONS = ("--ceiling-s", "1", "--budget-s", "2", "--redrive-every-s", "0.5", "--cut", "process")
HANGING = {"receiver": [{"then": "hang", "commit": "before"}, {}]}


def test_what_was_acknowledged_outlives_its_process_and_the_record_tells_how(
    tmp_path: Path,
) -> None:
    """Accepted, cut with SIGKILL, taken over by redrive, delivered: one effect each."""
    record = tmp_path / "run.jsonl"
    with local_platform(*OPTIONS, "--app", APP, "--record", str(record)) as platform:
        answers = [platform.post({"n": n, **HANGING}, key=f"cut-{n}") for n in range(3)]
        ids = {content["id"] for _, content in answers}

        def settled() -> bool:
            states = platform.states()
            return all(states.get(operation_id) == "delivered" for operation_id in ids)

        poll(settled, within_s=40, what="the deliveries")
        effects = platform.ledger()["effects"]
        status, _ = platform.post({"n": 9}, key="after")
        output = platform.stop()

    assert [status for status, _ in answers] == [202] * 3
    assert {operation_id: effects[operation_id] for operation_id in ids} == dict.fromkeys(ids, 1)
    assert status == 202
    assert "was killed by SIGKILL; another takes over" in output
    lines = read_recording(record).lines
    killed = [line for line in lines if line.kind == EventKind.PROCESS_KILLED]
    assert killed
    text = "\n".join(as_text(concerning(chapters(lines), killed[0].invocation_id)))
    told = ["POST /operations", "app: accepted", "app: attempt_started", "CUT process at "]
    told += ["app: taken_over", "app: attempt_ended", "app: settled"]
    places = [text.index(each) for each in told]
    assert places == sorted(places)
