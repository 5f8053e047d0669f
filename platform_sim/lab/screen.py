"""Screen: how a demo looks while it runs and when it is over.

Progress goes to stderr: on a terminal as lines above a spinner, elsewhere as plain lines. The
result goes to stdout.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

from platform_sim.lab.demo import Tell
from platform_sim.lab.demo_report import LEGEND, DemoReport

__all__ = ["progress", "show"]

_MIN_TABLE_WIDTH = 100


@contextmanager
def progress() -> Iterator[Tell]:
    """Show lines of progress, each with the seconds since the start."""
    console = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
    started = time.monotonic()

    def tell(line: str) -> None:
        console.print(f"{time.monotonic() - started:5.1f} s  {line}")

    if not console.is_terminal:
        yield tell
        return
    with console.status("the demo takes 8 to 20 s"):
        yield tell


def show(report: DemoReport) -> None:
    """Print the table, what it does not show, and the verdict."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, _MIN_TABLE_WIDTH)
    console.print(report.table())
    console.print(LEGEND, style="dim", markup=False)
    for note in report.notes():
        console.print(note, style="bold red", markup=False)
    console.print(report.line(), style="bold green" if report.good else "bold red", markup=False)
