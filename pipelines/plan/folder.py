"""The plan folder: written hidden next to its final path, synced, then renamed, so that it exists whole or not at all.

In: a target path, and code that writes the files. Out: the folder; if the identical plan exists already, that folder
unchanged, also if its rejects were corrected. A folder with other content is never written to. The next plan removes
what a killed one left.
"""

from __future__ import annotations

import filecmp
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final

from filelock import lock_descriptor

from orderbridge.pipelines.plan.model import REJECTS_FILE
from orderbridge.sources.command_line import run_again
from orderbridge.sources.disk import disk_errors, exclude_from_git, sync
from orderbridge.sources.errors import UsageError

HIDDEN: Final = ".orderbridge-plan-"


@contextmanager
def hidden_folder(parent: Path) -> Iterator[Path]:
    """A folder of mode 0700 in `parent` to write a plan in; removed at the end unless renamed. Raises UsageError."""
    with plan_disk_errors(parent):
        for left in parent.glob(f"{HIDDEN}*"):
            _remove_unowned(left)
        folder = Path(tempfile.mkdtemp(prefix=HIDDEN, dir=parent))
    owner = os.open(folder, os.O_RDONLY)
    try:
        lock_descriptor(owner)
        with plan_disk_errors(parent):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(owner)


def has_plan(target: Path, folder: Path) -> bool:
    """Whether a folder has the plan of a hidden one. Its rejects may be others: a person corrects them there."""
    fixed = sorted(path.name for path in folder.iterdir() if path.name != REJECTS_FILE)
    return target.is_dir() and filecmp.cmpfiles(folder, target, fixed, shallow=False)[0] == fixed


def publish_folder(folder: Path, target: Path) -> bool:
    """Renames a hidden folder to its final path.

    Returns:
        Whether it is new; False if the identical plan exists already.

    Raises:
        UsageError: the path exists with other content.
    """
    if target.exists() or target.is_symlink():
        if has_plan(target, folder):
            return False
        # not to move it away: it may be the folder of the project
        hint = "Nothing was written. Name one that does not exist yet with --out."
        raise UsageError(f"{target} exists already, with other content", hint)
    exclude_from_git(folder)
    for path in folder.iterdir():
        sync(path)
    sync(folder)
    folder.rename(target)
    sync(target.parent)
    return True


def plan_disk_errors(folder: Path) -> AbstractContextManager[None]:
    """Turns errors of the disk into UsageError, while a plan is written in this folder."""
    return disk_errors(
        f"no plan can be written in {folder}",
        f"Nothing was left there. Free space or name another folder with --out, then {run_again()}",
        "Nothing was left there. Name a folder with --out whose parent exists and is writable.",
    )


def _remove_unowned(folder: Path) -> None:
    """Removes the folder of a killed plan, whose lock ended with its process."""
    try:
        owner = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return  # just removed or renamed by its owner, or not a folder of a plan
    try:
        is_abandoned = lock_descriptor(owner, blocking=False)
        if is_abandoned and any(folder.iterdir()):  # a new one that is not locked yet is empty
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(owner)
