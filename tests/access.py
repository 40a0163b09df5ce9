"""Access control lists for tests: the owner of a file may set them, without tools and without root."""

from __future__ import annotations

import errno
import os
import struct
from pathlib import Path
from typing import Final

import pytest

_NO_ID: Final = 0xFFFFFFFF
_TAGS: Final = {"user": 0x02, "group": 0x08}


def set_acl(path: Path, *entries: str, group: int = 0, mask: int = 7) -> None:
    """Gives a path the entries, such as `user:54321:rwx`, beside its owner's; skips the test where there are no ACLs.

    Args:
        path: a folder or file of this user.
        entries: kind, number and permissions.
        group: permissions of the owning group.
        mask: most that entries and the owning group are granted.
    """
    named = []
    for entry in entries:
        kind, number, letters = entry.split(":")
        bits = sum(bit for letter, bit in (("r", 4), ("w", 2), ("x", 1)) if letter in letters)
        named.append((_TAGS[kind], bits, int(number)))
    own = [(0x01, 7, _NO_ID), (0x04, group, _NO_ID), (0x10, mask, _NO_ID), (0x20, 0, _NO_ID)]
    packed = b"".join(struct.pack("<HHI", *entry) for entry in sorted(own + named))
    if not hasattr(os, "setxattr"):
        pytest.skip("this system has no POSIX ACLs")
    try:
        os.setxattr(path, "system.posix_acl_access", struct.pack("<I", 2) + packed)
    except OSError as error:
        if error.errno == errno.ENOTSUP:
            pytest.skip("this file system has no POSIX ACLs")
        raise
