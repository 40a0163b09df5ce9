"""Which files with keys or personal data other users can read: settings, warehouse, ledger, plans.

In: the project's root and its settings. Out: one warning per file or folder, with the command that fixes it. Nothing is
changed. Who may write there is checked by each command (`sources.settings.ownership`).
"""

from __future__ import annotations

import glob
import shlex
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from sources.errors import BridgeError
from sources.settings import ledger_path, warehouse_path


def permission_warnings(root: Path) -> Iterator[str]:
    """The warnings for every private file that exists; a group may read the warehouse, as analysts do.

    Args:
        root: of the project, with `.dlt` in it.
    """
    paths, warehouse = [*(root / ".dlt").glob("secrets.toml*"), *root.glob("plan-*")], None
    with suppress(BridgeError):  # reported as that of a setting
        warehouse = warehouse_path()
        for file in (warehouse, ledger_path()):
            paths += file.parent.glob(f"*{glob.escape(file.name)}*")
    for path in sorted(set(paths)):
        with suppress(FileNotFoundError):
            mode = stat.S_IMODE(path.stat().st_mode)
            if mode & (0o027 if path == warehouse else 0o077):
                fix = "go-w,o-rwx" if path == warehouse else "go-rwx"
                yield f"{path} can be read by other users (mode {mode:04o}). Run: chmod {fix} {shlex.quote(str(path))}"
