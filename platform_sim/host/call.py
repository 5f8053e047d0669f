"""Call: one function, called once by import string, in a process of its own.

For steps that belong to no server: preparing a store that is not ours. The function takes no
arguments; its failure is one line on stderr and exit code 1.
"""

import sys
from collections.abc import Sequence

from platform_sim.host.imports import load
from platform_sim.host.lifeline import watch_lifeline

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Call the function that the only argument names, `module:function`."""
    (target,) = sys.argv[1:] if arguments is None else arguments
    watch_lifeline()
    try:
        load(target)()
    except Exception as failure:  # noqa: BLE001  whatever it is, people are told in one line
        print(f"{target}: {failure}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
