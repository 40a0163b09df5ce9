"""The tail of a list that is read by a cursor: where a walk ended, and whether a later one can continue there.

In: the pages of a walk, in order. Out: a position at least a full page before its end. The interface does not show
whether a cursor can be used again. So a walk that starts at a position has to read the rows from there on once more:
the same ids in the same order come first, and only what follows them is new. That also shows a row that is committed
late and listed a few places before the end.
"""

from __future__ import annotations

import hashlib
from collections import deque
from dataclasses import dataclass
from typing import Final

from sources.extract.pages import PageBody, Request
from sources.extract.row_reader import RowReader

CURSOR_LENGTH_MAX: Final = 2048
"""A longer cursor is not saved: it would have to fit into a URL."""
_CURSOR: Final = "startingAfter"


class TailMismatch(Exception):
    """The list does not continue at the position: it has to be read whole.

    Attributes:
        observed: what the platform did with the cursor, for `ops.observations`.
    """

    def __init__(self, message: str, observed: str) -> None:
        super().__init__(message)
        self.observed = observed


@dataclass(frozen=True, slots=True)
class CursorPosition:
    """Near the end of a walk by cursor: the last page with rows, or the one before it where the last one is not full.

    Attributes:
        cursor: that the page was requested with.
        limit: rows per page; the cursor is bound to it.
        rows: number of rows from there to the end.
        digest: SHA-256 of their ids in order.
    """

    cursor: str
    limit: int
    rows: int
    digest: str


class CursorTrail:
    """Follows a walk by cursor to its last page, and compares its first rows with those of an earlier walk.

    Args:
        key: the field of a row's id.
        start: where the walk starts; None: at the first page.
    """

    def __init__(self, key: str, start: CursorPosition | None = None) -> None:
        self._reader, self._start = RowReader(key), start
        self._last: deque[tuple[Request, PageBody]] = deque(maxlen=2)
        self._repeated: list[bytes] = []

    def add(self, request: Request, page: PageBody) -> None:
        """Takes the next page. Raises TailMismatch where its rows are not those of the earlier walk."""
        if page.count:
            self._last.append((request, page))
        if self._start is not None and len(self._repeated) < self._start.rows:
            self._repeated += self._reader.ids(page.rows)[: self._start.rows - len(self._repeated)]
            if len(self._repeated) == self._start.rows and _digest(self._repeated) != self._start.digest:
                raise TailMismatch("the saved cursor leads to other rows than before", "leads to other rows")

    def finish(self) -> CursorPosition | None:
        """The position where a later walk can start; None where there is no cursor that can be saved.

        Raises:
            TailMismatch: the list ended before the rows of the earlier walk were there.
        """
        if self._start is not None and len(self._repeated) < self._start.rows:
            raise TailMismatch("the saved cursor leads to fewer rows than before", "leads to other rows")
        if not self._last:
            return None
        request, page = self._last[-1]
        limit = int(request.params.get("limit", 0))
        pages = [self._last[-1]] if page.count >= limit else [*self._last]
        cursor = pages[0][0].params.get(_CURSOR)
        if not isinstance(cursor, str) or not cursor.isprintable() or not 0 < len(cursor) <= CURSOR_LENGTH_MAX:
            return None
        ids = [one for _, page in pages for one in self._reader.ids(page.rows)]
        return CursorPosition(cursor, limit, len(ids), _digest(ids))


def _digest(ids: list[bytes]) -> str:
    digest = hashlib.sha256()
    for one in ids:
        digest.update(len(one).to_bytes(8, "big") + one)
    return digest.hexdigest()
