"""Requests and responses as data, and the error bodies of both families.

In: the result of an operation. Out: status, headers and body, or a page whose rows faults may alter before it is
encoded. The error codes of family A are made up: the interface does not show them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Final
from urllib.parse import parse_qsl

from orderbridge.sandbox.validation import Problem
from orderbridge.sources.contract import Operation

Headers = tuple[tuple[bytes, bytes], ...]
JSON: Final[Headers] = ((b"content-type", b"application/json"),)

CODES: Final = {
    "required": 1001, "type": 1002, "min_length": 1003, "min_items": 1004, "max_items": 1005, "minimum": 1006,
    "decimals": 1007, "range": 1008, "body": 1009, "path": 1010, "query": 1011, "unauthorized": 1401,
    "not_found": 1404, "verb": 1405, "rate": 1429, "internal": 1500,
}  # fmt: skip
_requests: Final = count(1)


@dataclass(frozen=True, slots=True)
class SandboxResponse:
    """A complete response."""

    status: int
    body: bytes = b""
    headers: Headers = JSON

    def with_header(self, name: bytes, value: bytes) -> SandboxResponse:
        """The response with one more header."""
        return replace(self, headers=(*self.headers, (name, value)))


@dataclass(slots=True)
class Page:
    """A page that faults may still alter: `write` builds the body from rows and envelope.

    `before` is the last row of the previous page, `given_cursor` the cursor of the request; empty if there is none.
    """

    rows: list[bytes]
    envelope: dict[str, Any]
    write: Callable[[list[bytes], dict[str, Any]], bytes]
    before: bytes = b""
    given_cursor: str = ""

    def answer(self) -> SandboxResponse:
        """The page as a response."""
        return SandboxResponse(200, self.write(self.rows, self.envelope))


def encoded(value: object) -> bytes:
    """JSON without spaces."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=float).encode()


def joined(member: str, rows: list[bytes], envelope: dict[str, Any]) -> bytes:
    """`{"<member>": [rows], …envelope}`."""
    tail = encoded(envelope)
    rest = b"," + tail[1:] if envelope else b"}"
    return b'{"%s":[%s]%s' % (member.encode(), b",".join(rows), rest)


def legacy_errors(status: int, problems: list[Problem], code: str) -> SandboxResponse:
    """Family A's `errors` array; `code` is the JSON type of its codes, text if the interface shows none."""
    errors = [
        {
            "message": problem.message,
            "code": CODES[problem.kind] if code == "integer" else problem.kind.upper(),
        }
        for problem in problems
    ]
    return SandboxResponse(status, encoded({"errors": errors}))


def v1_error(status: int, code: str, message: str) -> SandboxResponse:
    """Family B's `error` object, with a new request id."""
    error = {"code": code, "message": message, "requestId": f"req_{next(_requests):012x}"}
    return SandboxResponse(status, encoded({"error": error}))


def family_error(family: str, status: int, kind: str, words: str, code: str) -> SandboxResponse:
    """An error in the error shape of a family."""
    if family == "public_v1":
        return v1_error(status, kind.upper(), words)
    return legacy_errors(status, [Problem(kind, words)], code)


@dataclass(frozen=True, slots=True)
class Call:
    """A request to an operation. Header names are lower case; of a repeated query parameter the last value counts."""

    operation: Operation
    path: str
    query_text: str
    headers: Mapping[bytes, bytes]
    parts: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    faults: frozenset[str] = frozenset()
    """The alterations drawn for this request (`sandbox.faults`)."""

    @property
    def query(self) -> dict[str, str]:
        """The query, decoded."""
        return dict(parse_qsl(self.query_text, keep_blank_values=True))

    @property
    def cursor(self) -> str:
        """The cursor of a list that is paged by one; empty for the first page."""
        return self.query.get("startingAfter", "") if self.operation.paging == "cursor" else ""

    def error(self, status: int, kind: str, message: str) -> SandboxResponse:
        """An error in the shape of the operation's family."""
        return family_error(self.operation.family, status, kind, message, self.operation.error_code)
