"""The one rule for whose folder it is: settings and private files lie in folders that nobody else can write to.

In: a folder or file. Out: nothing, or a UsageError that says what to do. Who can write to a folder can plant what
SQLite, DuckDB and the commands open next to their files: journals, locks, links. So the folder is checked before
anything is opened, and what is opened in it needs no check of its own.
"""

from __future__ import annotations

import os
import shlex
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

from orderbridge.sources.errors import UsageError

CHECKOUT: Final = Path(__file__).absolute().parents[4]
SHARED_FOLDER: Final = "FILES__SHARED_FOLDER"
_EXCEPTION: Final = f"If all who can write there are trusted, or it shows no owners: set {SHARED_FOLDER} to the folder."


def check_private(path: Path, shared: Path | None = None) -> None:
    """Checks that a folder or file is this user's or root's, and that no other user can write to it.

    A sticky bit does not help: others could create files. The user's private group is the user. What belongs to the
    checkout may belong to the owner of its code. One that does not exist is fine.

    Args:
        path: a link and what it points to are both checked.
        shared: the folder in which others may write; None: that of the environment, if set.

    Raises:
        UsageError: its owner is neither this user nor root, or others have write permission.
    """
    if _is_excepted(path, shared):
        return
    check_owner(path, shared)
    with suppress(OSError):
        facts = path.stat()
        mode = stat.S_IMODE(facts.st_mode)
        if mode & stat.S_IWOTH or (mode & stat.S_IWGRP and not _is_private_group(facts)):
            hint = f"Use a folder of your own, or run: chmod go-w {shlex.quote(str(path))}\n  {_EXCEPTION}"
            raise UsageError(f"{path} can be written by other users (mode {mode:04o})", hint)


def check_owner(path: Path, shared: Path | None = None) -> None:
    """The half of `check_private` about owners. Raises UsageError."""
    trusted = {0, os.geteuid()} | ({_code_owner()} if path.is_relative_to(CHECKOUT) else set())
    for status in (path.lstat, path.stat):
        with suppress(OSError):
            owner = status().st_uid
            if owner not in trusted and not _is_excepted(path, shared):
                hint = f"Use a copy of it, or a folder of your own.\n  {_EXCEPTION}"
                raise UsageError(f"{path} belongs to another user (uid {owner})", hint)


def _is_excepted(path: Path, shared: Path | None) -> bool:
    folder = str(shared or os.environ.get(SHARED_FOLDER, ""))
    return folder != "" and Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def _code_owner() -> int:
    return Path(__file__).stat().st_uid


def _is_private_group(facts: os.stat_result) -> bool:
    """Whether the group is that of the owner or this user alone, as many systems make one for each user."""
    import grp
    import pwd

    try:
        group, owners = (
            grp.getgrgid(facts.st_gid),
            [pwd.getpwuid(uid) for uid in {facts.st_uid, os.geteuid()}],
        )
    except KeyError:
        return False
    return any(
        group.gr_gid == owner.pw_gid
        and group.gr_name == owner.pw_name
        and set(group.gr_mem) <= {owner.pw_name}
        for owner in owners
    )
