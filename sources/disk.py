"""Files and folders on disk: replaced atomically, private to their owner, synced; disk errors with reason and hint.

In: paths and bytes. Out: files that exist whole or not at all, open files that only their owner can read, and
`UsageError` where the disk fails. Every other module writes through this one: these rules exist once. Whose folder it
is was checked before (`sources.settings.own_path`).
"""

from __future__ import annotations

import errno
import glob
import itertools
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

from orderbridge.sources.command_line import run_again
from orderbridge.sources.errors import UsageError, causes

PRIVATE_FILE: Final = 0o600
PRIVATE_FOLDER: Final = 0o700
_DISK_FULL_ERRNOS: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_DISK_FULL_TEXTS: Final = ("no space left", "file too large", "disk quota exceeded")
"""The system's texts for a full disk, as libraries repeat them in errors of their own."""
_LOCATION_ERRNOS: Final = (
    errno.ENOENT,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.EEXIST,
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.ENAMETOOLONG,
)
_TEMPORARY_SUFFIX: Final = ".new"
_WORKING: Final = ".orderbridge-writing-"
"""Begins the names of folders with the parts of a file that is being written."""
_ABANDONED_S: Final = 3600.0
"""Age of what a killed command left beside its file, from which it is removed: another one may be writing there."""
_SUFFIX_CHARACTERS: Final = 32
"""What the name of a lock or a note next to a file has more than the file's own, at most."""


@contextmanager
def disk_errors(subject: str | Path, hint: str, location_hint: str = "") -> Iterator[None]:
    """Turns an OSError of the block into a UsageError, "<subject>: <reason>". A broken pipe is left as it is.

    Args:
        subject: what was read or written.
        hint: what to do, such as freeing space.
        location_hint: what to do where the path itself cannot be used (missing, not a folder, no permission).
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as raised:
        error = _first_cause(raised)
        if error.errno == errno.EFBIG:
            words = "a limit on the size of files is reached (ulimit -f)"
            raise UsageError(
                f"{subject}: {words}", f"Raise the limit, then {run_again()}"
            ) from None
        is_location = error.errno in _LOCATION_ERRNOS
        reason = error.strerror or type(error).__name__
        if error.errno in _DISK_FULL_ERRNOS:
            reason = os.strerror(error.errno)  # Arrow's text repeats it in a sentence of its own
        raise UsageError(
            f"{subject}: {reason}", location_hint if location_hint and is_location else hint
        ) from None


def _first_cause(error: OSError) -> OSError:
    """The full disk behind an error, where there is one.

    While dlt handles a full disk, it fails once more, for the lack of a file that it could not write.
    """
    for cause in causes(error):
        if isinstance(cause, OSError) and cause.errno in _DISK_FULL_ERRNOS:
            return cause
    return error


def unreadable(path: Path, error: OSError) -> UsageError:
    """The error for a file of the project that the system does not let this user read."""
    return UsageError(
        f"{path} cannot be read: {error.strerror}",
        f"Make it a file that this user can read, then {run_again()}",
    )


def is_disk_full(error: BaseException) -> bool:
    """Whether an error, or one of its causes, is a full disk, an exceeded quota or a file size limit."""
    return any(
        (isinstance(cause, OSError) and cause.errno in _DISK_FULL_ERRNOS)
        or any(text in str(cause).lower() for text in _DISK_FULL_TEXTS)
        for cause in causes(error)
    )


def usable_path(path: Path) -> Path:
    """The path itself.

    Raises:
        UsageError: a name in it is not UTF-8, so that Arrow and DuckDB could not open it, or it is too long for the
            names of the files next to it.
    """
    try:
        str(path).encode()
        path.with_name("." * _SUFFIX_CHARACTERS + path.name).lstat()
    except UnicodeEncodeError:
        raise UsageError(
            f"{path}: a name in this path is not UTF-8", "Rename it, or use another folder."
        ) from None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise UsageError(f"{path}: {error.strerror}", "Use a shorter name.") from None
    return path


def sync(path: Path) -> None:
    """Flushes a file's content, or a folder's entries, to the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def create_private(path: Path) -> BinaryIO:
    """Creates a file of mode 0600 for writing. Raises FileExistsError, also where a link is in its place."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, PRIVATE_FILE), "wb")


def open_private(path: Path) -> int:
    """Opens a file for reading and writing, created with mode 0600 where there is none; returns its descriptor."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE)


def append_private(path: Path) -> int:
    """Opens a file to add to its end, created with mode 0600 where there is none; returns its descriptor.

    An access control list of the folder would give a new file other permissions, whatever the mask of the process.
    """
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE)


def private_folder(path: Path) -> None:
    """Creates a folder of mode 0700 with its parents, or makes an existing one private. Raises OSError."""
    path.mkdir(PRIVATE_FOLDER, parents=True, exist_ok=True)
    path.chmod(PRIVATE_FOLDER)


@contextmanager
def replace_file(
    target: Path, mode: int = PRIVATE_FILE, *, is_only_writer: bool = False, is_durable: bool = True
) -> Iterator[BinaryIO]:
    """A file to write, which replaces `target` once the block ends: readers see the old or the new content.

    Where the block raises, `target` is unchanged and nothing is left. A link at `target` is replaced, not followed.

    Args:
        target: the file to replace or create.
        mode: of the new file.
        is_only_writer: whether the caller holds a lock, so that what a killed writer left can be removed at once.
        is_durable: whether content and name must be on disk when the block ends.
    """
    prefix = f".{target.name[:100]}."
    pattern = f"{glob.escape(prefix)}*{_TEMPORARY_SUFFIX}"
    _remove_abandoned(target.parent, pattern, 0.0 if is_only_writer else _ABANDONED_S)
    descriptor, name = tempfile.mkstemp(_TEMPORARY_SUFFIX, prefix, target.parent)
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
        temporary.chmod(mode)
        if is_durable:
            move_file(temporary, target)
        else:
            temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def working_folder(parent: Path) -> Iterator[str]:
    """A private folder for the parts of a file that is written in `parent`, removed at the end."""
    _remove_abandoned(parent, f"{_WORKING}*", _ABANDONED_S)
    with tempfile.TemporaryDirectory(dir=parent, prefix=_WORKING) as folder:
        yield folder


def _remove_abandoned(folder: Path, pattern: str, age_s: float) -> None:
    """Removes what killed commands left in a folder, once it is so old."""
    for path in folder.glob(pattern):
        with suppress(OSError):  # what is written now does not need it gone
            if time.time() - path.lstat().st_mtime < age_s:
                continue
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()


def write_private(path: Path, content: bytes, *, is_only_writer: bool = False) -> None:
    """Replaces a file by one of mode 0600 with this content, which is on disk when this returns."""
    with replace_file(path, is_only_writer=is_only_writer) as file:
        file.write(content)


def file_version(path: Path) -> tuple[int, ...]:
    """Changes whenever a file is written or replaced; empty if there is none."""
    try:
        status = path.stat()
    except OSError:
        return ()
    return (status.st_ino, status.st_size, status.st_mtime_ns)


def first_free(
    folder: Path, name: str, may_replace: Callable[[Path], bool] = lambda path: False
) -> Path:
    """The first path of a folder that is free or may be replaced, such as `result.xlsx`, `result-2.xlsx`, and so on."""
    path = folder / name
    for number in itertools.count(2):
        if not os.path.lexists(path) or may_replace(path):
            break
        path = folder / f"{Path(name).stem}-{number}{Path(name).suffix}"
    return path


def exclude_from_git(folder: Path) -> None:
    """Adds a `.gitignore` that excludes the whole folder, unless there is one."""
    with suppress(FileExistsError), create_private(folder / ".gitignore") as file:
        file.write(b"*\n")


def copy_access(source: Path, target: Path) -> None:
    """Gives a new file the group and mode of the one that it replaces, never permissions for all users.

    It stays private where the other belongs to another user, who would choose the readers, or the group cannot be kept.
    """
    status = source.stat()
    mode = PRIVATE_FILE
    if status.st_uid == os.geteuid():
        with suppress(PermissionError):
            os.chown(target, -1, status.st_gid)
            mode = stat.S_IMODE(status.st_mode) & 0o770
    target.chmod(mode)


def move_file(source: Path, target: Path) -> None:
    """Renames a file over another in the same file system; content and name are on disk when this returns."""
    sync(source)
    source.replace(target)
    sync(target.parent)
