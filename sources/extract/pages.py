"""What a walk and its paginators share: requests, page bodies, and how rows are cut out of an envelope.

In: the body of a response. Out: the rows of the page as a JSON array, in the bytes of the response, and what the
envelope has about paging. A paginator decides the next request and the end of the list; it does no I/O.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Annotated, Final, Literal, Protocol

import msgspec

from orderbridge.sources.contract import INT64_MAX
from orderbridge.sources.decode.json_scan import object_members
from orderbridge.sources.errors import ContractBroken, PlatformError
from orderbridge.sources.extract.row_reader import RowReader, RowsRead
from orderbridge.sources.http.failures import BrokenBody, read_error
from orderbridge.sources.settings.sections import CursorAfterEnd, EmptyArray

NOT_JSON: Final = "the response is not a complete JSON object"
ERROR_FOR_ROWS: Final = "an error in place of the rows"
ROWS_MAX: Final = 200_000
VALUES_MAX: Final = 20 * ROWS_MAX
"""The most values of one page. A value in memory takes up to a hundred times the bytes that it has in a body."""
ERROR_FIELDS: Final = ("error", "errors", "message")
"""Members of an error body: those of the interface's shapes, and what a failing back end writes."""
_ERROR_NAME: Final = b'"error'
"""Begins the name of the member with the error, in both shapes."""
EMPTY_ARRAY: Final = "empty_array"
CURSOR_AFTER_END: Final = "cursor_after_end"
"""What pages show that nobody has answered: names of observations, and of settings of `sources.http`."""

_NOTHING: Final = (b"", b"null", b"false", b'""', b"[]", b"{}")
_TOO_LARGE: Final = "A page of that size is not read: report it to the platform."
_EMPTY_ARRAY_BYTES: Final = 16
"""A longer response is not looked at: `[]` and a line end."""
_KINDS: Final = {
    b"{": "an object",
    b"[": "an array",
    b'"': "a string",
    b"t": "a boolean",
    b"f": "a boolean",
    b"n": "null",
}
_Int64 = Annotated[int, msgspec.Meta(ge=-INT64_MAX, le=INT64_MAX)]
_object_decoder: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_compact: Final = partial(msgspec.json.format, indent=-1)


@dataclass(frozen=True, slots=True)
class Request:
    """One request of a walk. A `probe` asks for a page that may not exist: a rejection or an error answers it, too."""

    params: Mapping[str, str | int]
    probe: bool = False

    @property
    def label(self) -> str:
        """The query, sorted: identifies the request in the spool."""
        return "&".join([f"{name}={value}" for name, value in sorted(self.params.items())])


class Pagination(msgspec.Struct, frozen=True, rename="camel"):
    """The pagination object of the legacy family; None where a field is absent or null."""

    page: _Int64 | None = None
    pages: _Int64 | None = None
    total: _Int64 | None = None
    has_prev_page: bool | None = None
    has_next_page: bool | None = None


@dataclass(slots=True)
class PageBody:
    """One page of a list. `read_page` reads its rows, and its paginator adds what the envelope has about paging.

    Attributes:
        rows: a JSON array, as bytes.
        count: its length.
        ids: of the rows, as written; a row without one counts as its own.
        items: the objects in their lists, by list, as `reader` counted them; None where it did not.
        form: how the envelope held the rows (gap `promotions_data`).
        has_error: it has an error in the form of the platform's, beside its rows or in place of them.
        pagination: legacy family only.
        has_more, cursor: public v1 only.
    """

    rows: bytes
    count: int
    ids: frozenset[bytes]
    items: Counter[str] | None = None
    reader: RowReader | None = None
    form: str = "array"
    has_error: bool = False
    pagination: Pagination | None = None
    has_more: bool = False
    cursor: str | None = None


@dataclass(frozen=True, slots=True)
class PageReadings:
    """What pages mean that the interface does not describe, as a person has answered; None: nobody has.

    Attributes:
        cursor_after_end: whether a list with `hasMore` false and a cursor is at its end, or goes on.
        empty_array: whether a response `[]` is a page without rows, or broken.
    """

    cursor_after_end: CursorAfterEnd | None = None
    empty_array: EmptyArray | None = None


NOT_ANSWERED: Final = PageReadings()


class Paginator(Protocol):
    """Walks a list page by page: `next_request`, `parse` and `accept` in turn, until `ended_by` is set.

    Attributes:
        reader: of the rows; its lists may become known while pages are read.
        size: rows on the first page; None before it.
        total: rows in the list, as the platform reports it; None where it does not.
        readings: what a person has answered about pages that the interface does not describe.
        undecided: what pages showed that nobody has answered: the setting of `sources.http`, and where it was seen.
    """

    readings: PageReadings
    undecided: set[tuple[str, str]]
    reader: RowReader
    size: int | None
    total: int | None

    @property
    def ended_by(self) -> str:
        """How the list ended; empty while it goes on."""

    def next_request(self) -> Request | None:
        """The next request; None while it depends on a page that is not accepted yet."""

    def parse(self, body: bytes) -> PageBody:
        """Reads a response.

        Raises:
            BrokenBody: not a complete JSON object; another request may help.
            ContractBroken: JSON, but not what the interface describes.
        """

    def accept(self, request: Request, page: PageBody) -> bool:
        """Takes the next page, in the order of the requests. True if its rows belong to the list.

        Raises:
            ContractBroken: the list would lose rows or never end.
        """

    def reject(self, request: Request, error: PlatformError) -> None:
        """Takes a rejected request as the end of the list where it can be one; raises it otherwise.

        A probe can fail in other ways: then the answer shows nothing.
        """

    def issues(self) -> list[str]:
        """Why this sweep does not prove the list complete, in words; empty if nothing speaks against it."""


def read_page(
    body: bytes, rows_field: str, *others: str, reader: RowReader, may_be_object: bool = False
) -> tuple[PageBody, dict[str, bytes]]:
    """Reads a response. What else a row contains than its id and its lists does not matter.

    Args:
        body: the response.
        rows_field: the member with the rows.
        others: further members.
        reader: of the rows.
        may_be_object: whether the rows may be in an object in place of an array (gap `promotions_data`).

    Returns:
        The page, and the members, as bytes, empty where absent.

    Raises:
        BrokenBody: not a complete JSON object, or an error in place of the rows.
        ContractBroken: a member occurs twice, there are too many rows or values, or the rows are not in an array.
    """
    if len(body) > VALUES_MAX and body.count(b",") > VALUES_MAX:  # before anything is made of them
        raise ContractBroken(f"a page has more than {VALUES_MAX:,} values", _TOO_LARGE)
    names = (rows_field, *others)
    first_member = _first_member(rows_field).match(body)
    end = body.rfind(b"]") + 1
    if first_member and end:
        # The usual form needs one pass: what is cut out is a single array, and what is left a small object.
        start = first_member.end()
        rows = body[start:end]
        read = reader.read(rows)
        if read is not None and read.ids:
            envelope = body[:start] + b"[]" + body[end:]
            page = _page(rows, reader, read)
            page.has_error = _is_error_beside(b"[]", envelope)
            return page, _members(envelope, names)
    members = _members(body, names)
    rows = members[rows_field]
    if rows in (b"", b"null") and _has_error(body):
        raise BrokenBody(ERROR_FOR_ROWS)
    form = "array"
    if may_be_object and rows.startswith(b"{"):
        rows, form = _rows_of_object(rows, rows_field, reader.key)
    if not rows.startswith(b"["):
        raise ContractBroken(f"`{rows_field}` is {kind_of(rows)}, not an array")
    page = _page(rows, reader, reader.read(rows))
    page.form = form
    page.has_error = _is_error_beside(members[rows_field], body)
    return page, members


def _has_error(body: bytes) -> bool:
    """Whether a response says that something went wrong."""
    errors = _members(body, ERROR_FIELDS).values()
    return any(error not in _NOTHING for error in errors)


def _is_error_beside(rows: bytes, body: bytes) -> bool:
    """Whether a response has an error of one of the interface's shapes beside its rows."""
    if _ERROR_NAME not in body:
        return False
    envelope = body.replace(rows, b"[]", 1)
    return read_error("legacy", envelope).shaped or read_error("public_v1", envelope).shaped


def _page(rows: bytes, reader: RowReader, read: RowsRead | None) -> PageBody:
    """The page with these rows, and what was read of them. Raises BrokenBody, ContractBroken."""
    try:
        ids = read.ids if read is not None else reader.ids(rows)
    except ValueError:
        raise BrokenBody(NOT_JSON) from None
    if len(ids) > ROWS_MAX:
        raise ContractBroken(f"a page has {len(ids):,} rows, more than {ROWS_MAX:,}", _TOO_LARGE)
    return PageBody(rows, len(ids), frozenset(ids), read and read.items, reader)


def _rows_of_object(data: bytes, field: str, key: str) -> tuple[bytes, str]:
    """The rows in an object, and its form.

    Raises:
        ContractBroken: its form is unknown. BrokenBody: it is not JSON.
    """
    members = _named_members(data)
    arrays = [value for _, value in members if value.startswith(b"[")]
    if any(name == key for name, _ in members):
        return b"[" + data + b"]", "object_single"
    if len(arrays) == 1:
        return arrays[0], "object_wrapped"
    if all(value.startswith(b"{") for _, value in members):
        return b"[" + b",".join(value for _, value in members) + b"]", "object_by_id"
    raise ContractBroken(
        f"`{field}` is an object of no known form",
        "The platform may have changed. Ask its operator.",
    )


@lru_cache(maxsize=16)
def _first_member(name: str) -> re.Pattern[bytes]:
    """Matches an object up to the value of its first member, if that has this name and is an array."""
    return re.compile(rb'\s*\{\s*"%b"\s*:\s*(?=\[)' % re.escape(name.encode()))


def _members(body: bytes, names: tuple[str, ...]) -> dict[str, bytes]:
    """These members of an object, as bytes; empty where absent. Raises BrokenBody, ContractBroken."""
    with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        found = _object_decoder.decode(body)
        if len(_compact(msgspec.json.encode(found))) == len(_compact(body)):  # no name occurs twice
            return {name: bytes(found.get(name, b"")).strip() for name in names}
    pairs = _named_members(body)
    occurrences = Counter(name for name, _ in pairs)
    for name in names:
        if occurrences[name] > 1:
            raise ContractBroken(f"`{name}` occurs twice in the response")
    members = dict(pairs)
    return {name: members.get(name, b"") for name in names}


def _named_members(data: bytes) -> list[tuple[str, bytes]]:
    """All members of an object, as bytes, repeated names too. Raises BrokenBody."""
    try:
        return [(json.loads(name), value) for name, value in object_members(data)]
    except ValueError:
        raise BrokenBody(NOT_JSON) from None


def kind_of(data: bytes) -> str:
    """The JSON type of a value, with its article; `absent` for no bytes."""
    if not data:
        return "absent"
    return _KINDS.get(data[:1], "a number")


def read_empty_array(body: bytes, paginator: Paginator) -> PageBody | None:
    """The page without rows that a response `[]` is; None for any other response.

    Raises:
        BrokenBody: nobody has answered that it is a page, or a person that it is broken.
    """
    if len(body) > _EMPTY_ARRAY_BYTES or b"".join(body.split()) != b"[]":
        return None
    reading = paginator.readings.empty_array
    if reading == "empty_page":
        return PageBody(b"[]", 0, frozenset(), form=EMPTY_ARRAY)
    words = "`[]` in place of an object"
    if reading == "broken":
        raise BrokenBody(words)
    place = "in place of the first page" if paginator.size is None else "after other pages"
    paginator.undecided.add((EMPTY_ARRAY, place))
    command = "orderbridge answer sources.http.empty_array empty_page"
    raise BrokenBody(words, f"If it is a page without rows: {command}")


def partial_pages(number: int) -> list[str]:
    """The issue of a sweep in which so many pages had an error beside their rows: others may be missing."""
    return [f"pages with an error beside their rows: {number}"] if number else []


class RepeatDetector:
    """Notices pages without a new id, whatever their order and their other values, in constant memory.

    A page is compared with the one before it and with an earlier one, which is replaced whenever the number of pages
    has doubled: a list that goes round in a circle is noticed within three rounds (Brent's cycle detection).
    """

    def __init__(self) -> None:
        self._previous: frozenset[bytes] = frozenset()
        self._checkpoint: frozenset[bytes] = frozenset()
        self._pages = 0
        self._next_checkpoint = 1

    def check(self, page: PageBody) -> Literal["new", "repeated", "known"]:
        """Compares the next page, which has rows: `repeated` has the ids of the page before it, `known` no new one."""
        if page.ids == self._previous:
            return "repeated"
        if page.ids <= self._previous or page.ids <= self._checkpoint:
            return "known"
        self._previous = page.ids
        self._pages += 1
        if self._pages == self._next_checkpoint:
            self._checkpoint = page.ids
            self._next_checkpoint *= 2
        return "new"
