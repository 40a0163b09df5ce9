"""Paginators: which request comes next, when a list has ended, and on what evidence.

In: the bodies of a list's pages, in order. Out: the next request, the rows of each page as a JSON array (untouched
bytes), and how the list ended. A paginator does no I/O; `walk` fetches. The rules are those of design §7:
dlt's own paginators end with success on a missing cursor, loop on a repeated one, and take a short page for the end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, Protocol

import msgspec

from sources.errors import ContractBroken, HttpRejected
from sources.http.retries import BrokenBody

Params = Mapping[str, str | int]
EMPTY_PAGES_MAX: Final = 3
ASSUMED_END_STATUSES: Final = (400, 404)
NOT_JSON: Final = "it is not the whole JSON object that it should be"


@dataclass(frozen=True, slots=True)
class Request:
    """One request of a walk. `probe` asks whether there is a page where none should be; a refusal is its answer."""

    params: Params
    probe: bool = False


@dataclass(frozen=True, slots=True)
class Body:
    """One page as it came: `rows` is a JSON array, `count` its length, `form` how `data` held it."""

    rows: bytes
    count: int
    form: str = "array"
    pagination: Pagination | None = None
    has_more: bool = False
    cursor: str | None = None


class Pagination(msgspec.Struct, frozen=True, rename="camel"):
    """Family A's pagination object; a field that is absent or of another type than the interface's is None."""

    page: int | None = None
    pages: int | None = None
    total: int | None = None
    has_prev_page: bool | None = None
    has_next_page: bool | None = None


class Paginator(Protocol):
    """What a walk asks of a paginator."""

    size: int | None
    total: int | None

    @property
    def ended_by(self) -> str:
        """How the list ended; empty while it goes on."""

    def ask(self) -> Request | None:
        """The next request, or None while it hangs on a page not yet taken."""

    def parse(self, body: bytes) -> Body:
        """Opens a body. Raises BrokenBody (worth another try) or ContractBroken."""

    def take(self, request: Request, body: Body) -> bool:
        """Takes a page, in order of asking; True where its rows belong to the list. Raises ContractBroken."""

    def refused(self, request: Request, error: HttpRejected) -> None:
        """Takes a refusal for an end where it can be one; raises it where it cannot."""

    def issues(self) -> list[str]:
        """What makes this sweep unclean, in words."""


class _LegacyEnvelope(msgspec.Struct):
    data: msgspec.Raw = msgspec.Raw(b"")
    pagination: msgspec.Raw = msgspec.Raw(b"")


class _CursorEnvelope(msgspec.Struct, rename="camel"):
    data: msgspec.Raw = msgspec.Raw(b"")
    has_more: msgspec.Raw = msgspec.Raw(b"")
    next_cursor: msgspec.Raw = msgspec.Raw(b"")


class _ListsEnvelope(msgspec.Struct, rename="camel"):
    price_lists: msgspec.Raw = msgspec.Raw(b"")


_legacy_envelope: Final = msgspec.json.Decoder(_LegacyEnvelope)
_cursor_envelope: Final = msgspec.json.Decoder(_CursorEnvelope)
_lists_envelope: Final = msgspec.json.Decoder(_ListsEnvelope)
_raw_list: Final = msgspec.json.Decoder(list[msgspec.Raw])
_raw_object: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


def _rows(raw: msgspec.Raw, field: str) -> Body:
    """Rows out of an array. Raises ContractBroken where the field is absent or none."""
    data = bytes(raw).strip()
    if not data.startswith(b"["):
        raise ContractBroken(f"`{field}` is {_kind(data)}, not an array")
    return Body(data, len(_raw_list.decode(data)))


def _kind(data: bytes) -> str:
    kinds = {b"{": "an object", b"[": "an array", b'"': "a text", b"t": "a boolean", b"f": "a boolean", b"n": "null"}
    return kinds.get(data[:1], "a number") if data else "absent"


def _rows_of_object(raw: msgspec.Raw) -> Body:
    """Rows out of a `data` that is an object (gap `promotions_data`)."""
    members = _raw_object.decode(raw)
    values = {name: bytes(value).strip() for name, value in members.items()}
    arrays = [value for value in values.values() if value.startswith(b"[")]
    if "id" in values:
        return Body(b"[" + bytes(raw) + b"]", 1, "object_single")
    if len(arrays) == 1:
        return Body(arrays[0], len(_raw_list.decode(arrays[0])), "object_wrapped")
    if all(value.startswith(b"{") for value in values.values()):
        return Body(b"[" + b",".join(values.values()) + b"]", len(values), "object_by_id")
    raise ContractBroken("`data` is an object of no known form", "The platform may have changed; ask its makers.")


def _ids(rows: bytes) -> set[bytes]:
    """The ids of a page, as written. A row that is no object has none."""
    objects = [bytes(row) for row in _raw_list.decode(rows) if bytes(row).startswith(b"{")]
    return {bytes(_raw_object.decode(row).get("id", b"")) for row in objects}


class LegacyPages:
    """Family A: `page` and `limit`; an end that is only partly shown.

    A sample answer::

        {"data": [{"id": 1, ...}, ...], "pagination": {"page": 1, "pages": 7, "total": 650,
                                                       "hasPrevPage": false, "hasNextPage": true}}

    `pagination` may be missing (GET /customers). The page size is what page 1 held, never what was asked; a short
    page is not the end. The end is an empty page, a page that repeats the last, or `hasNextPage` false; a 404 or 400
    past the first page is an assumed one, and a doubt where the page before it could have had a next.

    Args:
        limit: items asked for per page.
        first_page: number of the first page, where an earlier sweep found it; None: 1, and find out.
    """

    def __init__(self, limit: int, first_page: int | None = None) -> None:
        self.limit = limit
        self.first_page = 1 if first_page is None else first_page
        self.size: int | None = None
        self.total: int | None = None
        self.rows = 0
        self._ended = ""
        self._asked = self.first_page
        self._probe: Literal["open", "due", "asked", "done"] = "open" if first_page is None else "done"
        self._page_1_ids: set[bytes] = set()
        self._previous: bytes | None = None
        self._previous_count = 0
        self._totals: set[int] = set()
        self._end_is_a_doubt = False

    @property
    def ended_by(self) -> str:
        """How the list ended; empty while it goes on, or while a page before page 1 is to be looked for."""
        return self._ended if self._probe == "done" else ""

    def ask(self) -> Request | None:
        """The next page. Nothing is asked ahead before page 1 has told the size, nor beside the probe."""
        if self._probe == "due":
            self._probe = "asked"
            return Request({"page": 0, "limit": self.limit}, probe=True)
        if self._ended or (self.size is None and self._asked > self.first_page):
            return None
        request = Request({"page": self._asked, "limit": self.limit})
        self._asked += 1
        return request

    def parse(self, body: bytes) -> Body:
        """See Paginator."""
        try:
            envelope = _legacy_envelope.decode(body)
            data = bytes(envelope.data).strip()
            opened = _rows_of_object(envelope.data) if data.startswith(b"{") else _rows(envelope.data, "data")
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise BrokenBody(NOT_JSON) from None
        return Body(opened.rows, opened.count, opened.form, _pagination(envelope.pagination))

    def take(self, request: Request, body: Body) -> bool:
        """See Paginator."""
        if request.probe:
            return self._take_probe(body)
        if self._ended:
            return False
        page = body.pagination
        if page is not None and page.total is not None:
            self.total = page.total
            self._totals.add(page.total)
        if self._probe == "open":
            # Pages may be numbered from 0 (gap `legacy_first_page`): `hasPrevPage` tells, else page 0 is looked at.
            told = page.has_prev_page if page is not None else None
            self._probe = "done" if told is False else "due"
            self._page_1_ids = _ids(body.rows)
        if self.size is None:
            self.size = body.count
        if body.count == 0:
            self._ended = "empty page"
            return False
        if body.rows == self._previous:
            self._ended = "repeated page"
            return False
        if page is not None and page.page is not None and page.page != request.params["page"]:
            raise ContractBroken(
                f"page {request.params['page']} was asked for, page {page.page} came",
                "The platform pages in another way than its interface says.",
            )
        self._previous, self._previous_count = body.rows, body.count
        self.rows += body.count
        if page is not None and page.has_next_page is False:
            self._ended = "hasNextPage false"
        return True

    def _take_probe(self, body: Body) -> bool:
        """A page 0 whose rows are all others than page 1's is a page of its own."""
        self._probe = "done"
        if body.count == 0 or _ids(body.rows) & self._page_1_ids:
            return False
        self.first_page = 0
        self.size = body.count
        self.rows += body.count
        return True

    def refused(self, request: Request, error: HttpRejected) -> None:
        """See Paginator."""
        if request.probe:
            self._probe = "done"
            return
        if self._ended:
            return
        if self.size is None or error.status not in ASSUMED_END_STATUSES:
            raise error
        self._end_is_a_doubt = self._previous_count >= self.size and self.total != self.rows
        self._ended = f"assumed: status {error.status}"

    def issues(self) -> list[str]:
        """See Paginator."""
        found = []
        if len(self._totals) > 1:
            found.append(f"total moved between {min(self._totals)} and {max(self._totals)}")
        elif self.total is not None and self.total != self.rows:
            found.append(f"total said {self.total}, {self.rows} rows came")
        if self._end_is_a_doubt:
            found.append("the end is assumed: a full page came before it")
        return found


def _pagination(raw: msgspec.Raw) -> Pagination | None:
    """The pagination object; None where there is none. Raises ContractBroken where its flags are no booleans."""
    if not bytes(raw).strip().startswith(b"{"):
        return None
    try:
        return msgspec.json.decode(raw, type=Pagination)
    except msgspec.ValidationError:
        raise ContractBroken(
            "the pagination object does not hold what the interface says",
            "Its page, pages and total are integers, its flags booleans; the platform may have changed.",
        ) from None


class V1Cursor:
    """Family B: `limit` and `startingAfter`.

    A sample answer::

        {"data": [{...}, ...], "hasMore": true, "nextCursor": "b2Zmc2V0OjIw"}

    `hasMore` true without a cursor, a cursor seen before, a `hasMore` that is no boolean, and three empty pages in a
    row break the contract: each would lose rows or never end.

    Args:
        limit: items asked for per page, 1 to 100. It stays the same for the whole walk: the cursor is bound to it.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.size: int | None = None
        self.ended_by = ""
        self.total: int | None = None
        self._cursor: str | None = None
        self._waiting = False
        self._seen: set[str] = set()
        self._empty = 0

    def ask(self) -> Request | None:
        """The next page, once the last one has told its cursor."""
        if self._waiting or self.ended_by:
            return None
        self._waiting = True
        after: dict[str, str | int] = {} if self._cursor is None else {"startingAfter": self._cursor}
        return Request({"limit": self.limit, **after})

    def parse(self, body: bytes) -> Body:
        """See Paginator."""
        try:
            envelope = _cursor_envelope.decode(body)
            opened = _rows(envelope.data, "data")
            has_more = bytes(envelope.has_more).strip()
            cursor = msgspec.json.decode(envelope.next_cursor) if bytes(envelope.next_cursor) else None
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise BrokenBody(NOT_JSON) from None
        if has_more not in (b"true", b"false"):
            raise ContractBroken(f"`hasMore` is {_kind(has_more)}, not a boolean")
        if cursor is not None and not isinstance(cursor, str):
            raise ContractBroken("`nextCursor` is neither a text nor null")
        return Body(opened.rows, opened.count, has_more=has_more == b"true", cursor=cursor)

    def take(self, request: Request, body: Body) -> bool:
        """See Paginator."""
        self._waiting = False
        self.size = body.count if self.size is None else self.size
        self._empty = 0 if body.count else self._empty + 1
        if not body.has_more:
            self.ended_by = "hasMore false"
            return True
        if not body.cursor:
            raise ContractBroken(
                "`hasMore` is true and there is no cursor", "More rows exist that cannot be asked for."
            )
        if body.cursor in self._seen:
            raise ContractBroken("a cursor came a second time", "The list would never end.")
        if self._empty >= EMPTY_PAGES_MAX:
            raise ContractBroken(f"{EMPTY_PAGES_MAX} empty pages in a row, and `hasMore` true")
        self._seen.add(body.cursor)
        self._cursor = body.cursor
        return True

    def refused(self, request: Request, error: HttpRejected) -> None:
        """A 400 on a cursor means that it is no longer valid: the walk begins again."""
        if error.status == 400 and "startingAfter" in request.params:
            raise CursorExpired from None
        raise error

    def issues(self) -> list[str]:
        """See Paginator."""
        return []


class CursorExpired(Exception):
    """A cursor that the platform gave is refused: the walk starts again from its first page."""


class OnePage:
    """GET /prices/lists: no parameters, one answer, `{"priceLists": [...]}`."""

    def __init__(self) -> None:
        self.size: int | None = None
        self.ended_by = ""
        self.total: int | None = None
        self._asked = False

    def ask(self) -> Request | None:
        """The one request."""
        if self._asked:
            return None
        self._asked = True
        return Request({})

    def parse(self, body: bytes) -> Body:
        """See Paginator."""
        try:
            return _rows(_lists_envelope.decode(body).price_lists, "priceLists")
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise BrokenBody(NOT_JSON) from None

    def take(self, request: Request, body: Body) -> bool:
        """See Paginator."""
        self.size = body.count
        self.ended_by = "one answer"
        return True

    def refused(self, request: Request, error: HttpRejected) -> None:
        """See Paginator."""
        raise error

    def issues(self) -> list[str]:
        """See Paginator."""
        return []
