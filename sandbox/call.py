"""A request as operations receive it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

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
