"""One run at a time on one warehouse: a lock file beside it, held by the kernel, naming its holder.

The lock goes with the process, however that ends; the file is removed by a holder that ends well, and reused after
one that was killed.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from sources.disk import open_private
from sources.errors import LockedError


@contextmanager
def locked(path: Path, command: str) -> Iterator[None]:
    """Holds the lock at `path` while the block runs.

    Raises:
        LockedError: another process holds it; the message names that process.
    """
    descriptor = _acquire(path)
    try:
        os.ftruncate(descriptor, 0)
        holder = {"pid": os.getpid(), "command": command, "since": datetime.now(UTC).isoformat(timespec="seconds")}
        os.pwrite(descriptor, json.dumps(holder).encode(), 0)
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


def _acquire(path: Path) -> int:
    while True:
        descriptor = open_private(path, create=True)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            told = os.pread(descriptor, 1000, 0)
            os.close(descriptor)
            raise LockedError(
                f"another run holds the lock: {_describe(told)}", "Wait for it to end, or end that process."
            ) from None
        # A holder that ended between our open and our lock has removed the file: ours would guard nothing.
        try:
            current = path.stat().st_ino
        except FileNotFoundError:
            current = -1
        if os.fstat(descriptor).st_ino == current:
            return descriptor
        os.close(descriptor)


def _describe(told: bytes) -> str:
    try:
        holder = json.loads(told)
        return f"process {holder['pid']} ({holder['command']}, since {holder['since']})"
    except (ValueError, KeyError, TypeError):
        return "a process that is just starting"
