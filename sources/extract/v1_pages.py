"""Pagination of the public v1 family: a cursor for orders, a single response for price lists.

In: the pages of a list, in order. Out: the next request and the end of the list. Guards break the walk where dlt's own
paginators end with success on a missing cursor and loop on a repeated one (docs/completeness.md).

A later walk can continue near the end of an earlier one (its tail). The interface does not show whether a cursor can be
used again, so such a walk reads the last rows once more: the same ids in the same order come first, and only what
follows them is new. That also shows a row that is committed late and listed a few places before the end.
"""

from __future__ import annotations

import hashlib
from collections import deque
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from orderbridge.sources.errors import ContractBroken, PlatformError
from orderbridge.sources.extract.pages import (
    CURSOR_AFTER_END,
    ERROR_FOR_ROWS,
    NOT_ANSWERED,
    PageBody,
    PageReadings,
    RepeatDetector,
    Request,
    kind_of,
    partial_pages,
    read_empty_array,
    read_page,
)
from orderbridge.sources.extract.row_reader import RowReader
from orderbridge.sources.http.failures import BrokenBody

CURSOR_LENGTH_MAX: Final = 2048
"""A longer cursor is not saved: it would have to fit into a URL."""
EMPTY_PAGES_MAX: Final = 3
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


class CursorExpired(Exception):
    """The platform rejects a cursor that it issued: the walk starts again from the first page."""


class V1Cursor:
    """Paginator with `limit` and `startingAfter`.

    A sample response::

        {"data": [{...}, ...], "hasMore": true, "nextCursor": "b2Zmc2V0OjIw"}

    These break the contract, since each would lose rows or never end: `hasMore` true without a cursor or false with
    one, a cursor that was issued before, a page without a new id, a `hasMore` that is not a boolean, three empty pages
    in a row.

    Args:
        limit: rows to request per page, 1 to 100. The cursor is bound to it: it is the same for the whole walk.
        key: the field of a row's id.
        rows_field: the member with the rows.
        start: where an earlier walk ended, to continue there with its limit; None: from the first page.
        readings: what a person has answered about such pages.

    Attributes:
        readings, undecided: see Paginator.
        position: where a later walk can start, once the list has ended; None where no cursor can be saved.
    """

    def __init__(
        self,
        limit: int,
        key: str = "id",
        rows_field: str = "data",
        start: CursorPosition | None = None,
        readings: PageReadings = NOT_ANSWERED,
    ) -> None:
        self.readings = readings
        self.undecided: set[tuple[str, str]] = set()
        self.limit = limit if start is None else start.limit
        self.reader = RowReader(key)
        self._rows_field = rows_field
        self._start = start
        self._repeated: list[bytes] = []
        self._last: deque[tuple[Request, PageBody]] = deque(maxlen=2)
        self.position: CursorPosition | None = None
        self.size: int | None = None
        self.ended_by = ""
        self.total: int | None = None
        self._cursor = None if start is None else start.cursor
        self._is_waiting = False
        self._cursors: set[str | None] = {self._cursor} - {None}
        self._empty_pages = 0
        self._partial_pages = 0
        self._repeats = RepeatDetector()

    def next_request(self) -> Request | None:
        """The next page, once the one before has given its cursor."""
        if self._is_waiting or self.ended_by:
            return None
        self._is_waiting = True
        after: dict[str, str | int] = {} if self._cursor is None else {_CURSOR: self._cursor}
        is_saved = self._start is not None and self._cursor == self._start.cursor
        return Request({"limit": self.limit, **after}, probe=is_saved)

    def parse(self, body: bytes) -> PageBody:
        """See Paginator."""
        empty = read_empty_array(body, self)
        if empty is not None:
            return empty
        page, members = read_page(
            body, self._rows_field, "hasMore", "nextCursor", reader=self.reader
        )
        if page.has_error and not page.count:
            raise BrokenBody(ERROR_FOR_ROWS)
        self._read_paging(page, members["hasMore"], members["nextCursor"])
        return page

    def _read_paging(self, page: PageBody, has_more: bytes, cursor: bytes) -> None:
        if has_more not in (b"true", b"false"):
            raise ContractBroken(f"`hasMore` is {kind_of(has_more)}, not a boolean")
        page.has_more = has_more == b"true"
        page.cursor = _cursor(cursor)

    def accept(self, request: Request, page: PageBody) -> bool:
        """See Paginator. Raises TailMismatch where the list does not continue at `start`."""
        self._is_waiting = False
        self._partial_pages += page.has_error
        if self.size is None:
            self.size = page.count
        self._empty_pages = 0 if page.count else self._empty_pages + 1
        if page.has_more and not page.cursor:
            raise ContractBroken(
                "`hasMore` is true without a cursor", "There are rows that cannot be requested."
            )
        if not page.has_more and page.cursor:
            page = self._after_end(page)
        if page.cursor in self._cursors:
            raise ContractBroken("a cursor was issued twice", "The list would never end.")
        if page.count and self._repeats.check(page) != "new":
            raise ContractBroken("a page has no new id", "The list would never end, or lose rows.")
        self._compare(page)
        if page.count:
            self._last.append((request, page))
        if not page.cursor:
            self.position = self._end()
            self.ended_by = "hasMore false"
            return True
        if self._empty_pages >= EMPTY_PAGES_MAX:
            raise ContractBroken(f"{EMPTY_PAGES_MAX} empty pages in a row with `hasMore` true")
        self._cursors.add(page.cursor)
        self._cursor = page.cursor
        return True

    def _after_end(self, page: PageBody) -> PageBody:
        """A page with `hasMore` false and a cursor, as a person has answered it.

        Raises:
            ContractBroken: nobody has.
        """
        reading = self.readings.cursor_after_end
        if reading == "end" or (reading == "more" and not page.count):
            return replace(page, cursor=None)
        if reading == "more":
            return replace(page, has_more=True)
        seen = f"on a page with {page.count} rows of at most {self.limit}"
        self.undecided.add((CURSOR_AFTER_END, seen))
        raise ContractBroken(
            "`hasMore` is false although there is a cursor",
            "There may be further rows. If there are none: orderbridge answer sources.http.cursor_after_end end",
        )

    def _compare(self, page: PageBody) -> None:
        """Compares the first rows with those of the earlier walk, until all of them have come."""
        if self._start is None or len(self._repeated) >= self._start.rows:
            return
        missing = self._start.rows - len(self._repeated)
        self._repeated += self.reader.ids(page.rows)[:missing]
        if len(self._repeated) < self._start.rows:
            return
        if _digest(self._repeated) != self._start.digest:
            raise TailMismatch(
                "the saved cursor leads to other rows than before", "leads to other rows"
            )

    def _end(self) -> CursorPosition | None:
        """Where a later walk can start. Raises TailMismatch where the rows of the earlier walk did not come."""
        if self._start is not None and len(self._repeated) < self._start.rows:
            raise TailMismatch(
                "the saved cursor leads to fewer rows than before", "leads to other rows"
            )
        if not self._last:
            return None
        pages = list(self._last)
        _, last_page = pages[-1]
        if last_page.count >= self.limit:
            pages = pages[-1:]
        first_request, _ = pages[0]
        cursor = first_request.params.get(_CURSOR)
        if not isinstance(cursor, str) or not _can_be_saved(cursor):
            return None
        ids: list[bytes] = []
        for _, page in pages:
            ids += self.reader.ids(page.rows)
        return CursorPosition(cursor, self.limit, len(ids), _digest(ids))

    def reject(self, request: Request, error: PlatformError) -> None:
        """A 400 for a cursor means that it has expired; every other rejection is raised."""
        if error.status == 400 and _CURSOR in request.params:
            raise CursorExpired from None
        raise error

    def issues(self) -> list[str]:
        """See Paginator."""
        return partial_pages(self._partial_pages)


def _digest(ids: list[bytes]) -> str:
    digest = hashlib.sha256()
    for one in ids:
        digest.update(len(one).to_bytes(8, "big") + one)
    return digest.hexdigest()


def _cursor(data: bytes) -> str | None:
    if not data or data == b"null":
        return None
    try:
        return msgspec.json.decode(data, type=str)
    except (msgspec.MsgspecError, RecursionError):
        raise ContractBroken("`nextCursor` is neither a string nor null") from None


def _can_be_saved(cursor: str) -> bool:
    return cursor.isprintable() and 0 < len(cursor) <= CURSOR_LENGTH_MAX


class SinglePage(V1Cursor):
    """Paginator of a list in one response, without parameters.

    A sample response::

        {"priceLists": [{"id": "a", ...}, ...]}

    Args:
        key: the field of a row's id.
        rows_field: the member with the rows, `priceLists` above.
    """

    def __init__(self, key: str, rows_field: str, readings: PageReadings = NOT_ANSWERED) -> None:
        super().__init__(0, key, rows_field, readings=readings)
        self._has_more = False

    def next_request(self) -> Request:
        """The only request."""
        return Request({})

    def _read_paging(self, page: PageBody, has_more: bytes, cursor: bytes) -> None:
        # The interface shows neither here: any value that is not that of a last page is a hint at further rows.
        is_last = has_more in (b"", b"null", b"false") and cursor in (b"", b"null", b'""')
        page.has_more = not is_last

    def accept(self, request: Request, page: PageBody) -> bool:
        """See Paginator."""
        self._partial_pages += page.has_error
        self.size = page.count
        self._has_more = page.has_more
        self.ended_by = "single response"
        return True

    def issues(self) -> list[str]:
        """See Paginator."""
        issues = super().issues()
        if self._has_more:
            issues.append("the response announces further rows, which the interface cannot request")
        return issues
