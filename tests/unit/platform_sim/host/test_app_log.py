"""What an app logs as JSON is heard, under the request it is about, and still logged."""

import io
import json
import sys
from contextlib import redirect_stderr
from typing import Any

from platform_sim.host.app_log import AppLog, hear_app
from platform_sim.view.event import EventKind
from tests.support.asgi import answer, call
from tests.support.stage import Stage
from tests.support.virtual import run_virtual


def test_only_json_lines_with_an_action_are_heard() -> None:
    """Whatever they are cut into; all text goes where it went."""
    stream = io.StringIO()
    heard: list[Any] = []
    log = AppLog(stream)
    log.heard = heard.append
    text = (
        "hello\n"
        '{"action": "accepted", "operation_id": "a", "level": "info", "timestamp": "t"}\n'
        '{"action": 1}\n{"event": "x"}\n{broken\n'
        '{"action": "unfinished"'
    )

    for start in range(0, len(text), 7):
        log.write(text[start : start + 7])
    log.flush()

    assert stream.getvalue() == text
    assert heard == [{"action": "accepted", "operation_id": "a"}]


def test_nobody_need_listen() -> None:
    """A log stands in before there is anybody to tell."""
    stream = io.StringIO()

    AppLog(stream).write('{"action": "early"}\n')

    assert stream.getvalue() == '{"action": "early"}\n'


def test_it_passes_for_the_stream_it_stands_for() -> None:
    """Loggers ask."""
    with open("/dev/null", "w", encoding="latin-1") as stream:  # noqa: PTH123  a real one
        log = AppLog(stream)

        assert log.fileno() == stream.fileno()
        assert (log.isatty(), log.writable(), log.encoding) == (False, True, "latin-1")


def test_a_line_belongs_to_the_request_in_whose_context_it_was_written() -> None:
    """And to none outside of one."""

    async def main() -> Stage:
        stage: Stage

        async def handler(scope: Any) -> None:
            del scope
            print(json.dumps({"action": "inside"}), file=sys.stderr)

        stage = Stage(lambda _: answer(handler))
        log = AppLog(io.StringIO())
        log.heard = lambda fields: hear_app(stage.emulator, fields)
        with redirect_stderr(log):
            print(json.dumps({"action": "before"}), file=sys.stderr)
            await call(stage.emulator)
        return stage

    actions = run_virtual(main).events(EventKind.ACTION)

    assert [(event.invocation_id, event.fields) for event in actions] == [
        ("", {"action": "before"}),
        ("1", {"action": "inside"}),
    ]
