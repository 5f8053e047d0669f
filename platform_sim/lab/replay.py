"""`outlast replay`: a recording as a text timeline.

Exit codes: 0 shown, 2 the file is no recording or has no such request.
"""

import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from platform_sim.host.errors import LaunchError, OptionError
from platform_sim.view.recording import NotARecording, read_recording
from platform_sim.view.timeline import as_text, chapters, concerning

__all__ = ["replay"]

_MOST_NAMED: Final = 20


def replay(
    *,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="What --record of another command has written.")
    ],
    request: Annotated[
        str | None,
        typer.Option(
            "--request",
            metavar="ID",
            help="Show this request only, and what was done for its operations later.",
            show_default="all",
        ),
    ] = None,
) -> None:
    """Show a recording as a timeline: requests, allowances, work, cuts, scheduled runs."""
    try:
        reading = read_recording(file)
    except NotARecording as error:
        raise LaunchError(str(error)) from error
    for note in reading.notes:
        print(f"note: {note}", file=sys.stderr)
    told = chapters(reading.lines)
    idle = [chapter for chapter in told if chapter.idle]
    if request is not None:
        known = [chapter.invocation_id for chapter in told if chapter.invocation_id]
        told = concerning(told, request)
        if not told:
            shown = ", ".join(known[:_MOST_NAMED]) + (", ..." if known[_MOST_NAMED:] else "")
            remedy = f"It has: {shown}" if shown else "It has none"
            raise OptionError("--request", f"{file} has no request {request!r}", remedy)
    for line in as_text(chapter for chapter in told if not chapter.idle):
        print(line)
    if idle and request is None:
        print(f"{len(idle)} scheduled runs found nothing to do")
    if not told:
        print(f"{file} is a recording in which nothing has happened yet")
