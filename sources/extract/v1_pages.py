"""Pagination of the public v1 family: a cursor for orders, a single response for price lists.

In: the pages of a list, in order. Out: the next request and the end of the list. Guards break the walk where dlt's own
paginators end with success on a missing cursor and loop on a repeated one (design §7).
"""

from __future__ import annotations

from typing import Final

import msgspec

from sources.errors import ContractBroken, HttpRejected
from sources.extract.pages import PageBody, Request, broken_body, kind_of, page_of_array

EMPTY_PAGES_MAX: Final = 3


class CursorExpired(Exception):
    """The platform rejects a cursor that it issued: the walk starts again from the first page."""


class _CursorEnvelope(msgspec.Struct, rename="camel"):
    data: msgspec.Raw = msgspec.Raw(b"")
    has_more: msgspec.Raw = msgspec.Raw(b"")
    next_cursor: msgspec.Raw = msgspec.Raw(b"")


class _PriceListsEnvelope(msgspec.Struct, rename="camel"):
    price_lists: msgspec.Raw = msgspec.Raw(b"")


_cursor_decoder: Final = msgspec.json.Decoder(_CursorEnvelope)
_price_lists_decoder: Final = msgspec.json.Decoder(_PriceListsEnvelope)


class V1Cursor:
    """Paginator with `limit` and `startingAfter`.

    A sample response::

        {"data": [{...}, ...], "hasMore": true, "nextCursor": "b2Zmc2V0OjIw"}

    These break the contract, since each would lose rows or never end: `hasMore` true without a cursor, a cursor that
    was issued before, a `hasMore` that is not a boolean, three empty pages in a row.

    Args:
        limit: rows to request per page, 1 to 100. The cursor is bound to it: it is the same for the whole walk.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.size: int | None = None
        self.ended_by = ""
        self.total: int | None = None
        self._cursor: str | None = None
        self._is_waiting = False
        self._cursors: set[str] = set()
        self._empty_pages = 0

    def next_request(self) -> Request | None:
        """The next page, once the one before has given its cursor."""
        if self._is_waiting or self.ended_by:
            return None
        self._is_waiting = True
        after: dict[str, str | int] = {} if self._cursor is None else {"startingAfter": self._cursor}
        return Request({"limit": self.limit, **after})

    def parse(self, body: bytes) -> PageBody:
        """See Paginator."""
        try:
            envelope = _cursor_decoder.decode(body)
            page = page_of_array(envelope.data, "data")
            has_more = bytes(envelope.has_more).strip()
            cursor = msgspec.json.decode(envelope.next_cursor) if bytes(envelope.next_cursor) else None
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise broken_body() from None
        if has_more not in (b"true", b"false"):
            raise ContractBroken(f"`hasMore` is {kind_of(has_more)}, not a boolean")
        if cursor is not None and not isinstance(cursor, str):
            raise ContractBroken("`nextCursor` is neither a string nor null")
        return PageBody(page.rows, page.count, has_more=has_more == b"true", cursor=cursor)

    def accept(self, request: Request, page: PageBody) -> bool:
        """See Paginator."""
        self._is_waiting = False
        self.size = page.count if self.size is None else self.size
        self._empty_pages = 0 if page.count else self._empty_pages + 1
        if not page.has_more:
            self.ended_by = "hasMore false"
            return True
        if not page.cursor:
            raise ContractBroken("`hasMore` is true without a cursor", "There are rows that cannot be requested.")
        if page.cursor in self._cursors:
            raise ContractBroken("a cursor was issued twice", "The list would never end.")
        if self._empty_pages >= EMPTY_PAGES_MAX:
            raise ContractBroken(f"{EMPTY_PAGES_MAX} empty pages in a row with `hasMore` true")
        self._cursors.add(page.cursor)
        self._cursor = page.cursor
        return True

    def reject(self, request: Request, error: HttpRejected) -> None:
        """A 400 for a cursor means that it has expired; every other rejection is raised."""
        if error.status == 400 and "startingAfter" in request.params:
            raise CursorExpired from None
        raise error

    def issues(self) -> list[str]:
        """See Paginator."""
        return []


class SinglePage:
    """Paginator of GET /prices/lists: no parameters, one response.

    A sample response::

        {"priceLists": [{"id": "a", ...}, ...]}
    """

    def __init__(self) -> None:
        self.size: int | None = None
        self.ended_by = ""
        self.total: int | None = None
        self._is_sent = False

    def next_request(self) -> Request | None:
        """The only request."""
        if self._is_sent:
            return None
        self._is_sent = True
        return Request({})

    def parse(self, body: bytes) -> PageBody:
        """See Paginator."""
        try:
            return page_of_array(_price_lists_decoder.decode(body).price_lists, "priceLists")
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise broken_body() from None

    def accept(self, request: Request, page: PageBody) -> bool:
        """See Paginator."""
        self.size = page.count
        self.ended_by = "single response"
        return True

    def reject(self, request: Request, error: HttpRejected) -> None:
        """See Paginator."""
        raise error

    def issues(self) -> list[str]:
        """See Paginator."""
        return []
