"""Watch: the files of the user's code, and which of them changed.

Rules: polled with the standard library. A change has to be seen, not soon but surely: that needs no
notification service of the operating system and no compiled dependency, and works on network and
container file systems, where notifications often do not arrive. Stating the 1,000 files of a large
app takes about 3 ms. Hidden folders and those of packages and caches are not looked into.

Not here: what is done about a change (`front`).
"""

import asyncio
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

__all__ = ["Snapshot", "changes", "snapshot", "watch"]

Snapshot = dict[str, tuple[int, int]]
"""Modification time in nanoseconds and size, by path."""

_SUFFIXES: Final = (".py", ".toml", ".env")
_NOT_LOOKED_INTO: Final = frozenset({"__pycache__", "node_modules", "site-packages", "venv"})
_EVERY_S: Final = 0.5


def snapshot(root: Path) -> Snapshot:
    """Return the state of all watched files below a folder."""
    return dict(_states(str(root)))


def _states(root: str) -> Iterator[tuple[str, tuple[int, int]]]:
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name[0] != "." and name not in _NOT_LOOKED_INTO]
        for name in names:
            if name.endswith(_SUFFIXES):
                path = f"{folder}/{name}"
                try:
                    state = os.stat(path)  # noqa: PTH116  called for every file twice a second
                except OSError:
                    continue  # it was there a moment ago
                yield path, (state.st_mtime_ns, state.st_size)


def changes(before: Snapshot, after: Snapshot) -> list[str]:
    """Return the paths of files that are new, gone or different."""
    return sorted(
        path for path in before.keys() | after.keys() if before.get(path) != after.get(path)
    )


async def watch(
    root: Path, changed: Callable[[list[str]], None], *, every_s: float = _EVERY_S
) -> None:
    """Call back with what changed, whenever something has; never returns."""
    before = await asyncio.to_thread(snapshot, root)
    while True:
        await asyncio.sleep(every_s)
        after = await asyncio.to_thread(snapshot, root)
        if paths := changes(before, after):
            changed(paths)
        before = after
