"""The rows of a sweep as one stream of bytes: shows whether a sweep with other page sizes reads the same rows.

In: the row arrays of the pages, in order. Out: whether they are, joined, the bytes that an earlier sweep read. Equal
bytes are equal rows in equal order, which need not be decoded again. Digests of the stream are kept at marks, so that a
difference is known soon after it occurs, in memory that does not grow with the rows.
"""

from __future__ import annotations

import re
from collections import deque
from hashlib import sha256
from typing import Final

_SEPARATOR: Final = re.compile(rb"}(\s*,\s*){")


class RowStream:
    """The rows of one sweep, compared with those of an earlier one.

    Args:
        earlier: the complete stream of that sweep; None: this one equals none.

    Attributes:
        is_equal: no difference was found so far.
    """

    def __init__(self, earlier: RowStream | None = None) -> None:
        self.is_equal = earlier is not None
        self._ahead = deque(earlier._marks if earlier is not None else ())
        self._marks: list[tuple[int, bytes]] = []
        self._digest, self._size, self._separator = sha256(), 0, b""

    @property
    def is_complete(self) -> bool:
        """Whether all rows of the earlier sweep have come, and no others."""
        return self.is_equal and not self._ahead

    def add(self, rows: bytes) -> None:
        """Takes the rows of the next page: a JSON array that is not empty."""
        if not self._separator:  # as the platform writes it: pages end elsewhere in the other sweep
            self._separator = match[1] if (match := _SEPARATOR.search(rows)) else b","
        data = memoryview((self._separator if self._size else b"") + rows[1:-1])
        while self._ahead and (length := self._ahead[0][0] - self._size) <= len(data):
            self._update(data[:length])
            data = data[length:]
            self.is_equal &= self._ahead.popleft()[1] == self._digest.digest()
        self.is_equal &= bool(self._ahead or not data)
        self._update(data)

    def _update(self, data: memoryview) -> None:
        self._digest.update(data)
        self._size += len(data)

    def mark(self) -> None:
        """Keeps the digest of what was added so far; to be called at the end, too."""
        self._marks.append((self._size, self._digest.digest()))
