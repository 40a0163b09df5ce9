"""The plan's folder: written hidden beside its place, on disk, then renamed: it is there whole or not at all.

In: a target, and what writes the files. Out: the folder; or, where the very same plan lies there already, that folder
untouched. A folder that holds anything else is never written to. What a killed plan left is removed by the next one.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from sources.errors import UsageError

HIDDEN: Final = ".orderbridge-plan-"
_BLOCK: Final = 1 << 20


@contextmanager
def hidden_folder(parent: Path) -> Iterator[Path]:
    """A folder of mode 0700 in which to write a plan; removed at the end, unless it was renamed.

    Args:
        parent: the folder in which the plan will lie; it must be there.

    Raises:
        UsageError: the disk refuses.
    """
    with told_of_the_disk(parent):
        for left in parent.glob(f"{HIDDEN}*"):
            _remove_unowned(left)
        folder = Path(tempfile.mkdtemp(prefix=HIDDEN, dir=parent))
    owner = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(owner, fcntl.LOCK_EX)
        with told_of_the_disk(parent):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(owner)


def publish(folder: Path, target: Path) -> bool:
    """Renames a hidden folder to its name.

    Returns:
        Whether it is new; False where the very same plan lay there.

    Raises:
        UsageError: something else lies there.
    """
    names = sorted(path.name for path in folder.iterdir())
    if target.exists() or target.is_symlink():
        if target.is_dir() and all(_same(folder / name, target / name) for name in names):
            return False
        raise UsageError(
            f"{target} is there already, and holds something else",
            "Nothing was written. Name another folder with --out, or move that one away.",
        )
    for name in names:
        _sync(folder / name)
    _sync(folder)
    folder.rename(target)
    _sync(target.parent)
    return True


def create(path: Path) -> IO[bytes]:
    """A new file for its owner alone."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb")


@contextmanager
def told_of_the_disk(folder: Path) -> Iterator[None]:
    """Says in words what the disk refused. Raises UsageError."""
    try:
        yield
    except OSError as error:
        hint = "Free space or name another folder with --out, then run again."
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.EPERM, errno.EROFS):
            hint = "Name a folder with --out whose parent is there and writable."
        why = error.strerror or type(error).__name__
        raise UsageError(f"no plan can be written in {folder}: {why}", f"Nothing was left there. {hint}") from None


def _remove_unowned(folder: Path) -> None:
    """Removes what a plan left that was killed: its owner's lock went with it."""
    try:
        owner = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return  # it was just removed or renamed by its owner, or is none of ours
    try:
        fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if any(folder.iterdir()):  # one that was made this moment, and is not locked yet, is empty
            shutil.rmtree(folder, ignore_errors=True)
    except BlockingIOError:
        return
    finally:
        os.close(owner)


def _same(one: Path, other: Path) -> bool:
    if not other.is_file() or one.stat().st_size != other.stat().st_size:
        return False
    with one.open("rb") as left, other.open("rb") as right:
        while block := left.read(_BLOCK):
            if block != right.read(_BLOCK):
                return False
    return True


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
