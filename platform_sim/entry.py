"""The console script: the command line, or one sentence about what it needs and is not there.

Rules: nothing of the command line is imported before its absence can be told.
"""

import sys
from typing import Final

__all__ = ["main"]

_CANNOT_START: Final = 2
_EXTRA: Final = frozenset({"flask", "moto", "rich", "typer", "uvicorn"})


def main() -> None:
    """Run the command line; without the sim extra, say what to install and exit with 2."""
    try:
        from platform_sim.cli import main as command_line  # noqa: PLC0415  see the module's rule
    except ModuleNotFoundError as missing:
        name = (missing.name or "").partition(".")[0]
        if name not in _EXTRA:
            raise
        print(
            f"outlast: the command line needs the sim extra (there is no {name}): install "
            "outlast[sim], in a clone with: pip install -c constraints.txt '.[sim]'",
            file=sys.stderr,
        )
        sys.exit(_CANNOT_START)
    command_line()
