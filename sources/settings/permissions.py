"""Which other users the group's bits of a file's mode let write: its group, or the entries of its access control list.

In: a path, and its facts. Out: an entry for each group or user, with its words for a message. Where the system has no
POSIX ACLs, as macOS, the group counts alone. The modules of users and groups are imported late: Windows has none.
"""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

_ATTRIBUTE: Final = "system.posix_acl_access"
"""The attribute that holds an access control list, on Linux (acl(5))."""
_VERSION_BYTES: Final = 4
_ACL_ENTRY: Final = struct.Struct("<HHI")
"""Tag, permissions and id of an entry."""
_USER: Final = 0x02
_OWN_GROUP: Final = 0x04
_GROUP: Final = 0x08
_READ: Final = 4
_WRITE: Final = 2
_RUN: Final = 1


class Entry(NamedTuple):
    """A user or group that can write.

    Attributes:
        words: for a message.
        narrowed: the entry without the permission to write, as setfacl takes it; empty where there is no ACL.
    """

    words: str
    narrowed: str = ""


def group_entries(path: Path, facts: os.stat_result, trusted: Collection[int]) -> list[Entry]:
    """Those who can write by the group's bits of the mode, which are the mask of an ACL.

    Args:
        path: of what the facts are about.
        facts: where they lack the group's bit to write, nobody can: no ACL is read.
        trusted: users who are not reported, nor their private groups.
    """
    if not facts.st_mode & stat.S_IWGRP:
        return []
    acl = _acl(path)
    owners = {facts.st_uid, *trusted}
    if not acl:
        return [Entry(words) for words in _shared_group(facts.st_gid, owners)]
    found: list[Entry] = []
    for tag, permissions, number in acl:
        if not permissions & _WRITE:
            continue
        if tag == _USER and number not in owners:
            found.append(_acl_entry("user", user_name(number), permissions))
        elif tag == _OWN_GROUP and any(_shared_group(facts.st_gid, owners)):
            found.append(_acl_entry("group", "", permissions))
        elif tag == _GROUP and any(_shared_group(number, owners)):
            found.append(_acl_entry("group", _group_name(number), permissions))
    return found


def _acl(path: Path) -> list[tuple[int, int, int]]:
    """Tag, permissions and id of the entries of an access control list; empty where there is none."""
    if not hasattr(os, "getxattr"):
        return []
    try:
        content = os.getxattr(path, _ATTRIBUTE)
    except OSError:  # there is none, or the file system has none
        return []
    return [*_ACL_ENTRY.iter_unpack(content[_VERSION_BYTES:])]


def _acl_entry(kind: str, name: str, permissions: int) -> Entry:
    """A user or group of an access control list, as getfacl shows it, and what setfacl makes of it."""
    reads = "r" if permissions & _READ else "-"
    runs = "x" if permissions & _RUN else "-"
    words = f"ACL entry {kind}:{name}:{reads}w{runs}"
    narrowed = f"{kind[0]}:{name}:{reads}-{runs}"
    return Entry(words, narrowed)


def _shared_group(number: int, owners: Collection[int]) -> Iterator[str]:
    """Why a group is not the private one of one of these users, in words; nothing where it is."""
    if not has_name_of_user(number, owners):
        yield f"group {_group_name(number)}"
        return
    others = _primary_members(number).difference(owners)
    if others:
        yield f"group {_group_name(number)}, the primary group of {user_name(min(others))} too"


def has_name_of_user(number: int, owners: Collection[int]) -> bool:
    """Whether a group has the name of one of these users, and no other member, as many systems make one for each."""
    import grp
    import pwd

    try:
        group = grp.getgrgid(number)
    except KeyError:
        return False
    for owner in owners:
        try:
            user = pwd.getpwuid(owner)
        except KeyError:
            continue
        is_own = (group.gr_gid, group.gr_name) == (user.pw_gid, user.pw_name)
        if is_own and set(group.gr_mem) <= {user.pw_name}:
            return True
    return False


@cache
def _primary_members(number: int) -> frozenset[int]:
    """The users whose primary group this is: they are no members of it in the list of groups."""
    import pwd

    users = pwd.getpwall()
    return frozenset(user.pw_uid for user in users if user.pw_gid == number)


def user_name(number: int) -> str:
    """The name of a user, or its number where it has none."""
    import pwd

    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def _group_name(number: int) -> str:
    import grp

    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)
