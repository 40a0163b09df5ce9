"""Pagination of the legacy family: `page` and `limit`, with an end that the interface shows only in part.

In: the pages of `/customers` or `/promotions`, in order. Out: the next request, whether a page belongs to the list, how
the list ended and what speaks against its being whole (docs/completeness.md).
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from orderbridge.sources.errors import ContractBroken, HttpRejected, PlatformError
from orderbridge.sources.extract.pages import (
    ERROR_FOR_ROWS,
    NOT_ANSWERED,
    PageBody,
    PageReadings,
    Pagination,
    RepeatDetector,
    Request,
    partial_pages,
    read_empty_array,
    read_page,
)
from orderbridge.sources.extract.row_reader import RowReader
from orderbridge.sources.http.failures import BrokenBody

ASSUMED_END_STATUSES: Final = (400, 404)
WITHOUT_NEW_ID: Final = "page without a new id"
AssumedEnd = Literal["", "short", "single", "full"]
"""What came before a rejected page: a short page, a single page shorter than its limit, a full page."""


class LegacyPages:
    """Paginator of the legacy family.

    A sample response::

        {"data": [{"id": 1, ...}, ...], "pagination": {"page": 1, "pages": 7, "total": 650,
                                                       "hasPrevPage": false, "hasNextPage": true}}

    `pagination` may be missing (GET /customers). The page size is the number of rows on page 1, not the limit that
    was requested, and a short page is not the end. The list ends with an empty page, a page that repeats the one
    before, or `hasNextPage` false. A page repeats the one before if it has the same ids; one that has no new id
    otherwise ends the list too, and proves nothing. After the first page a 404, a 400, or a page with an error and no
    rows is an assumed end (`assumed_end`). A page with an error beside its rows proves nothing: others may be missing.
    A page 0 that can neither be read nor is rejected (status 500, or a body that is no page) proves nothing without a
    `total`. Nor does one that is rejected where page 1 is empty: it may be the only page, and was perhaps rejected by
    mistake.

    Args:
        limit: rows to request per page.
        key: the field of a row's id.
        first_page: number of the first page, if an earlier sweep found it; None: 1, unless page 0 has other rows.
        rows_field: the member with the rows.
        readings: what a person has answered about pages that the interface does not describe.

    Attributes:
        readings, undecided: see Paginator.
        is_page_0_larger: page 0 has rows of page 1, and others: it is still not known whether the list has a page 0.
        pages_listed: number of pages with rows of the list.
        is_page_0_unknown: page 0 failed, or was rejected while page 1 is empty, and no `total` shows the list whole.
    """

    def __init__(
        self,
        limit: int,
        key: str = "id",
        first_page: int | None = None,
        rows_field: str = "data",
        readings: PageReadings = NOT_ANSWERED,
    ) -> None:
        self.readings = readings
        self.undecided: set[tuple[str, str]] = set()
        self.limit = limit
        self.first_page = 1 if first_page is None else first_page
        self.size: int | None = None
        self.total: int | None = None
        self.rows = 0
        self.assumed_end: AssumedEnd = ""
        self.reader = RowReader(key)
        self._rows_field = rows_field
        self._ended_by = ""
        self._next_page = self.first_page
        self._probe: Literal["open", "due", "sent", "done"] = (
            "open" if first_page is None else "done"
        )
        self._page_1_ids: frozenset[bytes] = frozenset()
        self.is_page_0_larger = False
        self.is_page_0_unknown = False
        self.pages_listed = 0
        self._partial_pages = 0
        self._pages_reported = 0
        self._last_pages_reported = 0
        self._largest = 0
        self._is_continued = False
        self._last_count = 0
        self._repeats = RepeatDetector()
        self._totals: set[int] = set()

    @property
    def ended_by(self) -> str:
        """How the list ended; empty while it goes on, or while page 0 has not been looked for."""
        return self._ended_by if self._probe == "done" else ""

    def next_request(self) -> Request | None:
        """The next page. Nothing is requested in advance until page 1 has shown the page size."""
        if self._probe == "due":
            self._probe = "sent"
            return Request({"page": 0, "limit": self.limit}, probe=True)
        if self._ended_by or (self.size is None and self._next_page > self.first_page):
            return None
        request = Request({"page": self._next_page, "limit": self.limit})
        self._next_page += 1
        return request

    def parse(self, body: bytes) -> PageBody:
        """See Paginator."""
        empty = read_empty_array(body, self)
        if empty is not None:
            return empty
        page, members = read_page(
            body, self._rows_field, "pagination", reader=self.reader, may_be_object=True
        )
        if page.has_error and not page.count and self.size is None:
            raise BrokenBody(ERROR_FOR_ROWS)
        page.pagination = _pagination(members["pagination"])
        return page

    def accept(self, request: Request, page: PageBody) -> bool:
        """See Paginator."""
        self._partial_pages += page.has_error and page.count > 0
        if request.probe:
            return self._accept_probe(page)
        pagination = page.pagination
        if pagination is not None:
            self._note(pagination)
        if self._probe == "open":
            # Pages may be numbered from 0 (gap `legacy_first_page`): `hasPrevPage` shows it, or page 0 is requested.
            is_first = pagination is not None and pagination.has_prev_page is False
            self._probe = "done" if is_first else "due"
            self._page_1_ids = page.ids
        if self.size is None:
            self.size = page.count
        if page.count == 0:
            if page.has_error:
                self._assume_end("an error in place of rows", self.size)
            else:
                self._ended_by = "empty page"
            return False
        repeat = self._repeats.check(page)
        if repeat != "new":
            self._ended_by = "repeated page" if repeat == "repeated" else WITHOUT_NEW_ID
            return False
        if pagination is not None:
            _check_number(request, pagination)
            if pagination.has_next_page is False:
                self._ended_by = "hasNextPage false"
        self._last_count = page.count
        self._count(page)
        return True

    def _note(self, pagination: Pagination) -> None:
        """Takes what a pagination object reports of the whole list."""
        if pagination.total is not None:
            self.total = pagination.total
            self._totals.add(pagination.total)
        self._last_pages_reported = pagination.pages or 0
        self._pages_reported = max(self._pages_reported, self._last_pages_reported)
        self._is_continued = pagination.has_next_page is True

    def _count(self, page: PageBody) -> None:
        """Counts a page with rows of the list."""
        self.pages_listed += 1
        self.rows += page.count
        self._largest = max(self._largest, page.count)

    def _accept_probe(self, page: PageBody) -> bool:
        """Page 0 belongs to the list if it has rows and shares none with page 1."""
        self._probe = "done"
        if page.count == 0 or page.ids & self._page_1_ids:
            self.is_page_0_larger = not page.ids <= self._page_1_ids
            return False
        self.first_page = 0
        self.size = page.count
        self._count(page)
        return True

    def reject(self, request: Request, error: PlatformError) -> None:
        """See Paginator."""
        if request.probe:
            self._probe = "done"
            is_absent = isinstance(error, HttpRejected) and bool(self.size)
            self.is_page_0_unknown = self.total is None and not is_absent
            return
        if self.size is None or error.status not in ASSUMED_END_STATUSES:
            raise error
        self._assume_end(f"status {error.status}", self.size)

    def _assume_end(self, reason: str, size: int) -> None:
        """Ends the list after pages of this size, without an answer that says so."""
        self._ended_by = f"assumed: {reason}"
        if self.total == self.rows or self._last_count < size:
            self.assumed_end = "short"
        elif self.pages_listed == 1 and size < self.limit:
            self.assumed_end = "single"
        else:
            self.assumed_end = "full"

    @property
    def gap(self) -> int:
        """How many rows more than were read `total` counts; 0 where there is none, or it changed."""
        if self.total is None or len(self._totals) > 1:
            return 0
        return self.total - self.rows

    @property
    def totals(self) -> frozenset[int]:
        """Every `total` that was reported."""
        return frozenset(self._totals)

    @property
    def pages_announced(self) -> int:
        """Number of pages, as the last response reports it, or else as `total` implies; 0 without either."""
        if self._last_pages_reported or not self._totals or not self._largest:
            return self._last_pages_reported
        return -(-min(self._totals) // self._largest)

    def issues(self) -> list[str]:
        """See Paginator. Whether a `gap` is one is not known here."""
        issues = partial_pages(self._partial_pages)
        if len(self._totals) > 1:
            issues.append(f"total changed between {min(self._totals)} and {max(self._totals)}")
        elif self.total is None and (
            self._is_continued or self._pages_reported > max(self.pages_listed, 1)
        ):
            issues.append(f"the pagination announces further rows after {self.pages_listed} pages")
        if self.is_page_0_unknown:
            issues.append("page 0 could not be read, and nothing shows whether the list has one")
        if self.is_page_0_larger:
            issues.append("page 0 has rows of page 1, and others")
        if self._ended_by == WITHOUT_NEW_ID:
            issues.append("a page had no new id")
        if self.size is not None and self.size > self.limit:
            issues.append(
                f"page 1 has {self.size} rows for a limit of {self.limit}: the platform ignores `limit`"
            )
        return issues


def _check_number(request: Request, pagination: Pagination) -> None:
    """Raises ContractBroken if the page is another one than was requested."""
    number = request.params["page"]
    if pagination.page is not None and pagination.page != number:
        raise ContractBroken(
            f"requested page {number}, received page {pagination.page}",
            "The platform does not paginate as its interface describes.",
        )


def _pagination(data: bytes) -> Pagination | None:
    """The pagination object; None where there is none. Raises ContractBroken if a field has another type."""
    if not data.startswith(b"{"):
        return None
    try:
        return msgspec.json.decode(data, type=Pagination)
    except (msgspec.MsgspecError, RecursionError):
        raise ContractBroken(
            "the pagination object is not as the interface describes it",
            "page, pages and total must be 64-bit integers, the flags booleans. The platform may have changed.",
        ) from None
