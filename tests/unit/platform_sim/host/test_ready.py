"""The ready line: what one side prints the other understands, and nothing else."""

import io
import os

import pytest

from platform_sim.host.ready import Ready, announce, parse_ready


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", None])
def test_what_is_announced_is_understood(url: str | None) -> None:
    """One line of JSON, with the address only where there is one."""
    stream = io.StringIO()
    announce("web", url, stream=stream)
    line = stream.getvalue()

    assert parse_ready(line.encode()) == Ready(ready="web", url=url, pid=os.getpid())
    assert line.count("\n") == 1
    assert ("url" in line) == (url is not None)


@pytest.mark.parametrize("line", [b"", b"hello\n", b"{}", b'{"ready": 1}', b'"ready"', b"\xff"])
def test_any_other_line_is_none(line: bytes) -> None:
    """A child may chat on stdout before it is ready."""
    assert parse_ready(line) is None
