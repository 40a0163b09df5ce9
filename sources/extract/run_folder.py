"""The folder of a walk in the working folder of a user's pipeline: removed with its run, taken over after a kill.

In: the pipeline's working folder and the name of a list. Out: a private folder that is locked as long as it is used.
A folder without a lock is that of a run that was killed or failed: the next run of its list goes on with the pages that
it had read, and removes it. Of a list that is not read any more, any run removes it once its pages are out of date.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
import weakref
from pathlib import Path
from typing import Final

from filelock import lock_descriptor

from sources.disk import open_private
from sources.extract.spool import RESUME_WITHIN_S

_HELD: Final = -1


class RunFolder:
    """A folder for one walk over a list.

    Args:
        parent: holds the folders of all runs.
        name: of the list.

    Attributes:
        path: of the folder.
        spool: of the pages in it.
    """

    def __init__(self, parent: Path, name: str) -> None:
        parent.mkdir(parents=True, exist_ok=True)
        self.path = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=parent))
        self.spool = self.path / "spool"
        self._unlock = weakref.finalize(self, os.close, _lock(self.path))
        self._remove = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)
        for other in (file.parent for file in parent.glob("*/lock") if file.parent != self.path):
            if (lock := _lock(other)) == _HELD:
                continue
            is_same_list = other.name.rpartition("-")[0] == name
            if is_same_list and (other / "spool").exists() and not self.spool.exists():
                (other / "spool").rename(self.spool)
            if is_same_list or time.time() - max(path.stat().st_mtime for path in other.rglob("*")) > RESUME_WITHIN_S:
                shutil.rmtree(other, ignore_errors=True)
            os.close(lock)

    def leave(self) -> None:
        """Leaves the folder to the next run: the walk failed."""
        self._remove.detach()
        self._unlock()


def _lock(folder: Path) -> int:
    """The descriptor of the folder's lock; `_HELD` if a run holds it."""
    descriptor = open_private(folder / "lock")
    if lock_descriptor(descriptor, blocking=False):
        return descriptor
    os.close(descriptor)
    return _HELD
