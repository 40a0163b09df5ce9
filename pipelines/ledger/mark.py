"""The mark of a ledger: a file beside it with the number of its last commit.

In: the ledger's salt and its commits. Out: whether a ledger is an older copy, lacks the end of its log, or is another
one. What it lacks would be sent again, and a value that went back since would not be sent at all.

The mark is written after each commit and not synced: it survives a killed process, and after a power failure it may be
older than the ledger, never newer. Without a mark, a ledger is taken as it is.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import Final, Literal

from orderbridge.sources.disk import open_private

_CONTENT: Final = re.compile(r"([0-9a-f]{16}) ([0-9]{20})\n")
_ID_LENGTH: Final = 16


class Mark:
    """The mark of a ledger, which is open. Used by one thread.

    Args:
        ledger: its path.
        salt: of the ledger, which its copies have in common.
    """

    def __init__(self, ledger: Path, salt: bytes) -> None:
        self._path = ledger.with_name(f".{ledger.name}.mark")
        self._identity = hashlib.sha256(salt).hexdigest()[:_ID_LENGTH]
        self._file: int | None = None

    def compare(self, commits: int) -> Literal["newest", "older", "another"]:
        """What a ledger with so many commits is. A mark that cannot be understood says nothing. Raises OSError."""
        if not self._path.exists():
            return "newest"
        match = _CONTENT.fullmatch(self._path.read_text("ascii", "replace"))
        if match is None:
            return "newest"
        if match[1] != self._identity:
            return "another"
        return "older" if int(match[2]) > commits else "newest"

    def write(self, commits: int) -> None:
        """Writes the number of the last commit. Raises OSError."""
        if self._file is None:
            self._file = open_private(self._path)
        os.pwrite(self._file, f"{self._identity} {commits:020}\n".encode(), 0)

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
