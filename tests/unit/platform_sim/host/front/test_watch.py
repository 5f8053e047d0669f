"""Which files of the user's code have changed."""

import asyncio
from pathlib import Path

from platform_sim.host.front.watch import changes, snapshot, watch
from tests.support.processes import until


def test_code_and_settings_are_looked_at_and_nothing_else(tmp_path: Path) -> None:
    """Not hidden folders, caches and installed packages."""
    for name in ("a.py", "b.toml", "c.txt", ".git/d.py", "__pycache__/e.py", "deep/er/f.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    (tmp_path / "gone.py").symlink_to(tmp_path / "nowhere")

    seen = {Path(path).relative_to(tmp_path).as_posix() for path in snapshot(tmp_path)}

    assert seen == {"a.py", "b.toml", "deep/er/f.py"}


def test_new_gone_and_different_files_have_changed() -> None:
    """Size counts too: clocks of file systems are coarse."""
    before = {"same": (1, 1), "gone": (1, 1), "touched": (1, 1), "grown": (1, 1)}
    after = {"same": (1, 1), "new": (1, 1), "touched": (2, 1), "grown": (1, 2)}

    assert changes(before, after) == ["gone", "grown", "new", "touched"]


def test_a_change_is_told_once(tmp_path: Path) -> None:
    """Each time with the paths."""
    told: list[list[str]] = []
    path = tmp_path / "app.py"
    path.write_text("one")

    async def main() -> None:
        watching = asyncio.create_task(watch(tmp_path, told.append, every_s=0.01))
        await asyncio.sleep(0.05)
        path.write_text("another")
        await until(lambda: told, what="the change")
        await asyncio.sleep(0.05)
        watching.cancel()

    asyncio.run(main())

    assert told == [[str(path)]]
