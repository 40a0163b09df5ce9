"""A request as operations receive it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

from sandbox.replies import SandboxResponse, family_error
from sources.contract import Operation


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
