"""What a walk and its paginators share: requests, page bodies, and how rows are cut out of an envelope.

In: the body of a response. Out: the rows of the page as a JSON array, in the bytes of the response, and what the
envelope says about paging. A paginator decides the next request and the end of the list; it does no I/O.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

import msgspec

from sources.errors import ContractBroken, HttpRejected
from sources.http.failures import BrokenBody

NOT_JSON: Final = "the response is not a complete JSON object"

_rows_decoder: Final = msgspec.json.Decoder(list[msgspec.Raw])
_object_decoder: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


@dataclass(frozen=True, slots=True)
class Request:
    """One request of a walk. A `probe` looks for a page before the first: a rejection is an answer to it."""

    params: Mapping[str, str | int]
    probe: bool = False

    @property
    def label(self) -> str:
        """The query, sorted: identifies the request in the spool."""
        return "&".join(f"{name}={value}" for name, value in sorted(self.params.items()))


class Pagination(msgspec.Struct, frozen=True, rename="camel"):
    """The pagination object of the legacy family; None where a field is absent or null."""

    page: int | None = None
    pages: int | None = None
    total: int | None = None
    has_prev_page: bool | None = None
    has_next_page: bool | None = None


@dataclass(frozen=True, slots=True)
class PageBody:
    """One page of a list.

    Attributes:
        rows: a JSON array, as bytes.
        count: its length.
        form: how the envelope held the rows (gap `promotions_data`).
        pagination: legacy family only.
        has_more, cursor: public v1 only.
    """

    rows: bytes
    count: int
    form: str = "array"
    pagination: Pagination | None = None
    has_more: bool = False
    cursor: str | None = None


class Paginator(Protocol):
    """Walks a list page by page: `next_request`, `parse` and `accept` in turn, until `ended_by` is set.

    Attributes:
        size: rows on the first page; None before it.
        total: rows in the list, as the platform reports it; None where it does not.
    """

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

    def reject(self, request: Request, error: HttpRejected) -> None:
        """Takes a rejected request as the end of the list where it can be one; raises it otherwise."""

    def issues(self) -> list[str]:
        """Why this sweep does not prove the list complete, in words; empty if nothing speaks against it."""


def page_of_array(raw: msgspec.Raw, field: str) -> PageBody:
    """A page from a field that must be an array. Raises ContractBroken if it is absent or of another type."""
    data = bytes(raw).strip()
    if not data.startswith(b"["):
        raise ContractBroken(f"`{field}` is {kind_of(data)}, not an array")
    return PageBody(data, len(_rows_decoder.decode(data)))


def page_of_object(raw: msgspec.Raw) -> PageBody:
    """A page from a `data` that is an object (gap `promotions_data`). Raises ContractBroken if the form is unknown."""
    values = {name: bytes(value).strip() for name, value in _object_decoder.decode(raw).items()}
    arrays = [value for value in values.values() if value.startswith(b"[")]
    if "id" in values:
        return PageBody(b"[" + bytes(raw) + b"]", 1, "object_single")
    if len(arrays) == 1:
        return PageBody(arrays[0], len(_rows_decoder.decode(arrays[0])), "object_wrapped")
    if all(value.startswith(b"{") for value in values.values()):
        return PageBody(b"[" + b",".join(values.values()) + b"]", len(values), "object_by_id")
    raise ContractBroken("`data` is an object of no known form", "The platform may have changed. Ask its operator.")


def kind_of(data: bytes) -> str:
    """The JSON type of a value, with its article; `absent` for no bytes."""
    kinds = {b"{": "an object", b"[": "an array", b'"': "a string", b"t": "a boolean", b"f": "a boolean", b"n": "null"}
    return kinds.get(data[:1], "a number") if data else "absent"


def ids_of(rows: bytes) -> set[bytes]:
    """The ids of a page's rows, as written in JSON. Rows that are not objects are skipped."""
    objects = [bytes(row) for row in _rows_decoder.decode(rows) if bytes(row).startswith(b"{")]
    return {bytes(_object_decoder.decode(row).get("id", b"")) for row in objects}


def broken_body() -> BrokenBody:
    """The error for a response that is cut off or is not JSON."""
    return BrokenBody(NOT_JSON)
