"""Who may read and change the private files of a project: settings, warehouse, ledger, plans, and files next to them.

In: the project's root and its settings. Out: one warning per file or folder that other users own, can read or can
change, with the command that fixes it. Nothing is changed.
"""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pipelines.ledger.store import Ledger
from sources.errors import BridgeError
from sources.settings import ledger_path, warehouse_path


def permission_warnings(root: Path) -> Iterator[str]:
    """The warnings for every private file that exists.

    Args:
        root: of the project, with `.dlt` in it.
    """
    warehouse = _warehouse()
    seen = set()
    for path in _private_paths(root, warehouse):
        if path in seen:
            continue
        seen.add(path)
        with suppress(FileNotFoundError):
            yield from _warnings(path, path.lstat(), is_shared=path == warehouse)


def _private_paths(root: Path, warehouse: Path | None) -> Iterator[Path]:
    yield from sorted((root / ".dlt").glob("secrets.toml*"))
    if warehouse is not None:
        yield warehouse
        yield from sorted(warehouse.parent.glob(f"{warehouse.name}.*"))
        yield warehouse.parent / f".build-{warehouse.name}"
    plans = {*Path.cwd().glob("plan-*/plan.json")}
    with suppress(BridgeError):
        ledger = ledger_path()
        # looked at before it is opened, which makes it private
        yield from (ledger.with_name(f"{ledger.name}{suffix}") for suffix in ("", "-wal", "-shm"))
        yield ledger.with_name(f".{ledger.name}.walk")
        with Ledger.open(ledger, readonly=True) as opened:
            plans |= {Path(plan.folder) / "plan.json" for plan in opened.open_plans()}
    for plan in sorted(plans):
        yield plan.parent
        yield from sorted(file for file in plan.parent.rglob("*") if file.name != ".gitignore")


def _warehouse() -> Path | None:
    with suppress(BridgeError):
        return warehouse_path()
    return None


def _warnings(path: Path, status: os.stat_result, *, is_shared: bool) -> Iterator[str]:
    """What is wrong with a path.

    Args:
        path: of the file or folder.
        status: its own, not that of a link's target.
        is_shared: whether a group may read it, as analysts read a warehouse.
    """
    name = shlex.quote(str(path))
    if stat.S_ISLNK(status.st_mode):
        yield f"{path} is a symbolic link, which is not followed. Run: rm {name}"
        return
    if status.st_uid not in (0, os.geteuid()):
        yield f"{path} belongs to another user (uid {status.st_uid}). Run: chown {os.geteuid()} {name}"
    mode = stat.S_IMODE(status.st_mode)
    if mode & (0o027 if is_shared else 0o077):
        fix = "go-w,o-rwx" if is_shared else "go-rwx"
        yield f"{path} can be read or changed by other users (mode {mode:04o}). Run: chmod {fix} {name}"
