"""The kinds of places in undocumented records: what a column holds, and what is known before and after a walk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple

import msgspec
import pyarrow as pa

from orderbridge.sources.decode.table_schema import DECIMAL

ColumnKind = Literal[
    "text", "bigint", "decimal", "boolean", "json", "list", "object", "table", "empty"
]
"""How the values of a place are held. `json` holds any value, `list` lists without objects; both are JSON text. Nothing
was seen of an `empty` place but null, `[]` and `{}`."""
ARROW: Final = {
    "key": pa.string(),
    "text": pa.string(),
    "bigint": pa.int64(),
    "decimal": DECIMAL,
    "boolean": pa.bool_(),
    "json": pa.string(),
    "list": pa.string(),
    "empty": pa.string(),
}


class KeptKind(NamedTuple):
    """What is known of a place before a walk.

    Attributes:
        kind: as earlier walks decided it, or as a person declared it.
        values: the most that decided it in a walk; None where it is declared.
        name: that a person declared for its column or table.
        objects: the most plain objects in a walk; 0 also where version 0.3.0 decided, which did not count them.
    """

    kind: ColumnKind
    values: int | None = None
    name: str | None = None
    objects: int = 0


KeptKinds = Mapping[str, KeptKind]
"""What is known of places, by their path (`path_text`)."""


class DecidedKind(NamedTuple):
    """The kind of a place after a walk, for later ones.

    Attributes:
        path: of the place (`path_text`).
        kind: of its values.
        values: how many were counted.
        objects: how many of them are plain objects with a value.
        arrays: how many of them are arrays.
    """

    path: str
    kind: ColumnKind
    values: int
    objects: int
    arrays: int


def path_text(keys: Sequence[str | int]) -> str:
    """The names that lead to a value as a JSON array: a name may contain any separator."""
    return msgspec.json.encode(keys).decode()
