"""One run at a time: a lock file that the kernel locks, naming the process that holds it.

In: the path of a lock file. Out: the lock, held while a block runs, or LockedError with the holder. The lock ends with
its process, however that ends. The file is removed at a good end and reused after a kill.

`filelock` takes the lock. Opening and removing the file stay here: its `FileLock` never removes the file, and does not
try again where the previous holder removed it.
"""

from __future__ import annotations

import fcntl
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from filelock import lock_descriptor

from orderbridge.sources.disk import disk_errors, open_private
from orderbridge.sources.errors import LockedError

_PAUSE_S: Final = 0.01
_PROCESS: Final = re.compile(r"process (\d+) ")


@contextmanager
def run_lock(
    path: Path, command: str, hint: str, location_hint: str = "", *, wait_s: float = 0.0
) -> Iterator[None]:
    """Holds the lock at `path` while the block runs.

    Args:
        path: of the lock file.
        command: named to others that want the lock.
        hint: see `disk_errors`.
        location_hint: see `disk_errors`.
        wait_s: how long to wait for another process to release it.

    Raises:
        LockedError: another process holds it, or still does after `wait_s`; the message names that process.
        UsageError: the file cannot be created.
    """
    with disk_errors(path.parent, hint, location_hint):
        descriptor = _acquire(path, time.monotonic() + wait_s)
    try:
        with disk_errors(path.parent, hint, location_hint):
            os.ftruncate(descriptor, 0)
            since = datetime.now(UTC).isoformat(timespec="seconds")
            os.pwrite(descriptor, f"process {os.getpid()} ({command}, since {since})".encode(), 0)
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


def lock_holder(path: Path) -> tuple[str, bool]:
    """The process that holds the lock at `path`, or was killed and left it, and whether it holds it; empty for none."""
    try:
        file = path.open("rb")
    except OSError:
        return "", False
    with file:
        is_held = _is_held(file.fileno())
        # a run that begins has just made it, empty; one that ended since it was opened has removed it
        is_left = is_held or (
            os.fstat(file.fileno()).st_size > 0 and _is_same_file(file.fileno(), path)
        )
        return _holder(file.fileno()) if is_left else "", is_held


def _acquire(path: Path, until: float) -> int:
    while True:
        descriptor = open_private(path)
        if lock_descriptor(descriptor, blocking=False):
            # A holder that ended between our open and our lock removed the file: a lock on it would exclude nobody.
            if _is_same_file(descriptor, path):
                return descriptor
        elif _is_held(descriptor) and time.monotonic() >= until:
            holder = _holder(descriptor)
            os.close(descriptor)
            named = _PROCESS.match(holder)
            end = f"stop it: kill {named[1]}" if named else "stop it."
            raise LockedError(
                f"another run holds the lock: {holder}", f"Wait for it to end, or {end}"
            )
        os.close(descriptor)
        # a holder is waited for; `lock_holder` of another process, which only asks, is done in a moment
        time.sleep(_PAUSE_S)


def _is_held(descriptor: int) -> bool:
    """Whether a run holds the lock; who only asks shares it with others that ask, until the descriptor is closed."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):  # some filesystems report the second one
        return True
    return False


def _is_same_file(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False


def _holder(descriptor: int) -> str:
    """What the process that holds a lock, or held it last, has written about itself."""
    return (
        os.pread(descriptor, 1000, 0).decode("utf-8", "replace")
        or "a process that is just starting"
    )
