"""A file layer for tests that forgets what was not synced.

In: a folder, and a run that writes into it. Out: a `Point` before every write, sync, rename, removal and commit of the
run, each with the states of the folder that a kill or a power failure at that moment may leave.

A kill leaves what was written. A power failure leaves, of each file, what was synced last; of its unsynced rest, a part
at most; and of a folder, the names that it had when it was synced last, or the present ones. A commit of the ledger
counts as a sync of its files only under `synchronous = FULL`.
"""

from __future__ import annotations

import os
import shutil
import stat
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Final
from unittest import mock

from orderbridge.pipelines.ledger.store import Ledger

VARIANTS: Final = ("killed", "lost", "renamed", "torn")
"""What is left: all; what was synced under synced names; what was synced under present names; half of what was not."""
_SYNCHRONOUS_FULL: Final = 2
_DATABASE: Final = ".sqlite"
"""SQLite syncs what it writes into a database in time; what a crash may cost is in its log."""
_LOG: Final = "-wal"
_RENAMES: Final = ("replace", "rename")


@dataclass(frozen=True)
class FolderState:
    """Files by relative path, with mode and content; folders with their mode."""

    files: Mapping[str, tuple[int, bytes]]
    folders: Mapping[str, int]

    def restore(self, root: Path) -> None:
        for path in root.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        for name, mode in sorted(self.folders.items()):
            (root / name).mkdir()
            (root / name).chmod(mode)
        for name, (mode, content) in self.files.items():
            if (root / name).parent.is_dir():
                (root / name).write_bytes(content)
                (root / name).chmod(mode)

    @property
    def digest(self) -> bytes:
        parts = sha256(repr(sorted(self.folders.items())).encode())
        for name, (mode, content) in sorted(self.files.items()):
            parts.update(f"\0{name}\0{mode}\0{len(content)}\0".encode() + content)
        return parts.digest()


@dataclass(frozen=True)
class Point:
    """A moment before an operation on the disk."""

    number: int
    what: str
    states: Mapping[str, FolderState]
    world: Any


@dataclass
class Enumeration:
    """What was judged: the points of a recorded run, and the distinct states that a crash there can leave."""

    points: int
    states: int = 0
    problems: list[str] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        points: list[Point],
        key: Callable[[Point, str], object],
        judge: Callable[[Point, str], Iterable[str]],
    ) -> Enumeration:
        enumeration, judged = cls(len(points)), set[object]()
        for point in points:
            for variant in VARIANTS:
                if (state := key(point, variant)) not in judged:
                    judged.add(state)
                    place = f"point {point.number} ({point.what}), {variant}"
                    enumeration.problems += [
                        f"{place}: {problem}" for problem in judge(point, variant)
                    ]
        enumeration.states = len(judged)
        return enumeration


class Recorder:
    """Records the points of one run."""

    def __init__(
        self,
        root: Path,
        attic: Path,
        observe: Callable[[], Any] = lambda: None,
        scratch: Path | None = None,
    ) -> None:
        self.points: list[Point] = []
        self._root, self._attic, self._observe, self._scratch = root, attic, observe, scratch
        # what is on the disk for certain: contents by inode, names by folder
        self._contents: dict[int, bytes] = {}
        self._names: dict[str, dict[str, int]] = {}
        self._lock = threading.RLock()
        self._is_busy = False
        attic.mkdir()
        for folder in (root, *(path for path in root.rglob("*") if path.is_dir())):
            self._sync_names(folder)
        for path in self._files():
            self._contents[path.stat().st_ino] = path.read_bytes()

    def point(self, what: str) -> None:
        """Records a point; also for operations that the recorder cannot see."""
        with self._lock:
            self._is_busy = True
            try:
                states = {variant: self._state(variant) for variant in VARIANTS}
                self.points.append(Point(len(self.points), what, states, self._observe()))
            finally:
                self._is_busy = False

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Records the block. The last point is the one after it."""
        with ExitStack() as stack:
            for name in ("replace", "rename", "unlink", "pwrite", "ftruncate", "rmdir"):
                stack.enter_context(
                    mock.patch.object(os, name, self._before(name, getattr(os, name)))
                )
            stack.enter_context(mock.patch.object(os, "fsync", self._fsync(os.fsync)))
            stack.enter_context(
                mock.patch.object(Ledger, "transaction", self._transaction(Ledger.transaction))
            )
            stack.enter_context(mock.patch.object(Ledger, "close", self._close(Ledger.close)))
            yield
        self.point("end")

    def _before(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def recorded(*arguments: Any, **named: Any) -> Any:
            with self._lock:
                subject = arguments[1 if name in _RENAMES else 0]
                inside = "" if self._is_busy else self._inside(subject, named.get("dir_fd"))
                if inside and not self._is_scratch(self._root / inside):
                    self.point(f"{name} {inside}")
                return call(*arguments, **named)

        return recorded

    def _inside(self, target: Any, folder: int | None) -> str:
        """The relative path of a path or descriptor below the root; empty for any other."""
        if isinstance(target, int):
            path = Path(f"/proc/self/fd/{target}").readlink()
        elif folder is not None:
            path = Path(f"/proc/self/fd/{folder}").readlink() / os.fsdecode(target)
        else:
            path = Path(os.fsdecode(target)).absolute()
        return str(path.relative_to(self._root)) if path.is_relative_to(self._root) else ""

    def _fsync(self, call: Callable[[int], None]) -> Callable[[int], None]:
        def recorded(descriptor: int) -> None:
            with self._lock:
                inside = self._inside(descriptor, None)
                status = os.fstat(descriptor)
                if inside:
                    self.point(f"fsync {inside}")
                call(descriptor)
                if not inside:
                    return
                if stat.S_ISDIR(status.st_mode):
                    self._sync_names(self._root / inside)
                else:
                    path = next(
                        path for path in self._files() if path.stat().st_ino == status.st_ino
                    )
                    self._contents[status.st_ino] = path.read_bytes()

        return recorded

    def _transaction(self, call: Callable[..., Any]) -> Callable[..., Any]:
        @contextmanager
        def recorded(ledger: Ledger) -> Iterator[Any]:
            with call(ledger) as connection:
                yield connection
                self.point("commit of the ledger")
            with self._lock:
                ((level,),) = ledger.connection.execute("PRAGMA synchronous").fetchall()
                if level >= _SYNCHRONOUS_FULL:
                    self._sync_ledger(ledger)
            self.point("after a commit of the ledger")

        return recorded

    def _close(self, call: Callable[[Ledger], None]) -> Callable[[Ledger], None]:
        """SQLite moves its log into the database, syncs that, and removes the log."""

        def recorded(ledger: Ledger) -> None:
            log = _log_of(ledger)
            call(ledger)
            with self._lock:
                # that of an empty ledger, in memory, is not
                if log.is_absolute() and not log.exists():
                    self._names_of(log.parent).pop(log.name, None)

        return recorded

    def _sync_ledger(self, ledger: Ledger) -> None:
        log = _log_of(ledger)
        for path in (log.with_name(log.name.removesuffix(_LOG)), log):
            if path.exists():
                status = path.stat()
                self._contents[status.st_ino] = path.read_bytes()
                self._names_of(path.parent)[path.name] = status.st_ino

    def _files(self) -> Iterator[Path]:
        return (
            path
            for path in self._root.rglob("*")
            if path.is_file() and not path.name.endswith("-shm")
        )

    def _is_scratch(self, path: Path) -> bool:
        return self._scratch is not None and path.is_relative_to(self._scratch)

    def _names_of(self, folder: Path) -> dict[str, int]:
        return self._names.setdefault(str(folder.relative_to(self._root)), {})

    def _sync_names(self, folder: Path) -> None:
        names = self._names_of(folder)
        names.clear()
        names.update({entry.name: entry.stat().st_ino for entry in os.scandir(folder)})

    def _state(self, variant: str) -> FolderState:
        present: dict[str, tuple[int, int, bytes]] = {}
        folders: dict[str, int] = {}
        for path in self._root.rglob("*"):
            if self._is_scratch(path):
                continue
            name, status = str(path.relative_to(self._root)), path.lstat()
            if stat.S_ISDIR(status.st_mode):
                folders[name] = stat.S_IMODE(status.st_mode)
            elif stat.S_ISREG(status.st_mode) and not name.endswith("-shm"):
                present[name] = (status.st_ino, stat.S_IMODE(status.st_mode), path.read_bytes())
                kept = self._attic / str(status.st_ino)
                if not kept.exists():
                    os.link(path, kept)
        if variant == "killed":
            return FolderState(
                {name: (mode, content) for name, (_, mode, content) in present.items()}, folders
            )
        if variant == "lost":
            return self._lost(folders)
        files = {}
        for name, (inode, mode, content) in present.items():
            synced = content if name.endswith(_DATABASE) else self._contents.get(inode, b"")
            if variant == "torn" and content != synced:
                content = content[
                    : (len(content) + (len(synced) if content.startswith(synced) else 0)) // 2
                ]
            files[name] = (mode, synced if variant == "renamed" else content)
        return FolderState(files, folders)

    def _lost(self, present: Mapping[str, int]) -> FolderState:
        """What was synced, under the names that were. Folders that are there stay: an empty one harms nobody."""
        files = {}
        for folder, names in self._names.items():
            if folder != "." and folder not in present:
                continue
            for name, inode in names.items():
                path = name if folder == "." else f"{folder}/{name}"
                if self._is_scratch(self._root / path):
                    continue
                kept = self._attic / str(inode)
                if path not in present and (kept.exists() or inode in self._contents):
                    mode = stat.S_IMODE(kept.stat().st_mode) if kept.exists() else 0o600
                    content = self._contents.get(inode, b"")
                    files[path] = (mode, kept.read_bytes() if path.endswith(_DATABASE) else content)
        return FolderState(files, present)


def _log_of(ledger: Ledger) -> Path:
    (_, _, file), *_ = ledger.connection.execute("PRAGMA database_list").fetchall()
    return Path(f"{file}{_LOG}")
