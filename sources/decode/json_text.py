"""Values of undocumented fields that no single Arrow type parses: JSON text, and fields of several types.

In: the types seen, and pages. Out: the type to declare to the parser, and the columns that it leaves out, read by
msgspec with every field named, so that an unknown one is noticed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import UNSET, Raw, UnsetType

from sources.decode import rows
from sources.decode.ndjson import ColumnarFallback, NdjsonBatch
from sources.decode.rows import InvalidRow, Number, Page
from sources.decode.schema_inference import (
    ARROW,
    WHOLE,
    ColumnKind,
    InferredColumn,
    InferredNode,
    InferredTable,
    Seen,
    survives,
)

# A double may not keep more than 15 digits with a point, nor an exponent. The first pattern is fast and matches too
# much; the numbers of pages that it matches are checked one by one.
_INEXACT: Final = r"[0-9]{7}\.[0-9]|\.[0-9]{9}|[:\[,]\s*-?[0-9.]+[eE]"
_FRACTION: Final = re.compile(rb"[:\[,]\s*(-?[0-9]+(?:\.[0-9]+(?:[eE][-+]?[0-9]+)?|[eE][-+]?[0-9]+))")
_compact: Final = partial(msgspec.json.format, indent=-1)
_CACHE_MAX: Final = 100_000


class KindMismatch(Exception):
    """A value is not of its column's kind."""


@dataclass(frozen=True, slots=True)
class DeclaredType:
    """The type to parse rows with; whether it has doubles, and whether fields are left out of it."""

    type: pa.StructType
    has_double: bool
    has_raw: bool


def parse_type(root: InferredNode, key: str) -> DeclaredType:
    """The type to parse rows with; `key` is the field of their identifier."""
    leaves: list[pa.DataType | None] = []
    declared = _struct(root, leaves, key)
    return DeclaredType(declared, pa.float64() in leaves or pa.list_(pa.float64()) in leaves, None in leaves)


def _struct(node: InferredNode, leaves: list[pa.DataType | None], key: str | None = None) -> pa.StructType:
    """The type of an object without the fields that are left out; adds the types of its fields to `leaves`."""
    types = {name: _type(inner, leaves, name == key) for name, inner in node.fields.items()}
    return pa.struct([(name, kind) for name, kind in types.items() if kind is not None])


def _type(node: InferredNode, leaves: list[pa.DataType | None], is_key: bool) -> pa.DataType | None:
    if node.kind == "object" and not is_key:
        return _struct(node, leaves)
    if node.kind == "table" and node.items is not None and not is_key:
        return pa.list_(_struct(node.items, leaves))
    leaves.append(_leaf(node, is_key))
    return leaves[-1]


def _leaf(node: InferredNode, is_key: bool) -> pa.DataType | None:
    """The type of a field; None for one that is left out."""
    seen, kind = node.seen, node.kind
    if is_key:
        return pa.string() if seen == Seen.TEXT else pa.int64() if seen and not seen & ~WHOLE else None
    if kind == "json":
        return _json_type(node)
    if kind == "bigint" and Seen.POINT in seen:
        return None if Seen.WIDE in seen else pa.float64()
    if kind == "text":
        # Always null so far: the parser is to reject anything else, so that it is noticed.
        return pa.string() if seen == Seen.TEXT else None if seen else pa.null()
    return ARROW[kind]


def _json_type(node: InferredNode) -> pa.DataType | None:
    """The type of a field that is kept as JSON text, where Arrow can parse it and write it again."""
    if node.seen == Seen.OBJECT:
        return None if node.is_wide else pa.struct([])  # always empty
    items = node.items.seen if node.items is not None else Seen.NOTHING
    if node.seen != Seen.ARRAY:
        return None
    if not items:
        return pa.list_(pa.null())
    if items == Seen.TEXT:
        return pa.list_(pa.string())
    if not items & ~WHOLE:
        return pa.list_(pa.int64())
    return pa.list_(pa.float64()) if not items & ~(Seen.INTEGER | Seen.POINT | Seen.FRACTION) else None


def numbers_survive(text: NdjsonBatch) -> bool:
    """Whether doubles keep every number that is written with a point or an exponent."""
    if not _may_be_inexact(text.as_value(pa.large_binary())):
        return True
    return all(
        survives(number.decode())
        for page in text.pages
        if _may_be_inexact(pa.array([page.rows], pa.large_binary()))
        for number in set(_FRACTION.findall(page.rows))
    )


def _may_be_inexact(text: pa.Array) -> bool:
    return bool(pc.any(pc.match_substring_regex(text, _INEXACT)).as_py())


def coerce(kind: ColumnKind, value: object) -> object:
    """A parsed value as its column holds it. Raises KindMismatch if it is of another kind."""
    if value is None:
        return None
    if kind == "json":
        return dump(value)
    if kind in ("text", "key"):
        return _plain(value)
    if kind == "boolean" and isinstance(value, bool):
        return value
    if isinstance(value, Number):
        if kind == "double":
            return float(value)
        whole = rows.integer(value)
        if kind == "bigint" and whole is not None:
            return whole
    raise KindMismatch


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Number):
        return rows.canonical(value) or str(value)
    if isinstance(value, str):
        return value
    raise KindMismatch


def dump(value: object) -> str:
    """Compact JSON text, with numbers in plain form."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{dump(name)}:{dump(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(dump(inner) for inner in value) + "]"
    if isinstance(value, Number):
        return rows.canonical(value) or str(value)
    return msgspec.json.encode(value).decode()


class RawReader:
    """Reads whole rows with every field named and its value left as bytes."""

    def __init__(self, root: InferredNode) -> None:
        self._attributes: dict[str, str] = {}
        self._decoder = msgspec.json.Decoder(list[self._struct(root)])  # type: ignore[misc]
        self._values: dict[tuple[ColumnKind, bytes], object] = {}

    def _struct(self, node: InferredNode) -> type[msgspec.Struct]:
        members: list[tuple[str, Any, Any]] = []
        names = {}
        for name, inner in node.fields.items():
            attribute = self._attributes.setdefault(name, f"f{len(self._attributes)}")
            names[attribute] = name
            members.append((attribute, self._member(inner), UNSET))
        try:
            return msgspec.defstruct("Item", members, rename=names, forbid_unknown_fields=True)
        except ValueError:  # a quote, a backslash or a control character in a name
            raise ColumnarFallback from None

    def _member(self, node: InferredNode) -> Any:  # noqa: ANN401 — a type expression
        is_empty = node.seen == Seen.OBJECT and not node.fields and not node.is_wide
        if node.kind == "object" or is_empty:  # an object that was always empty must stay so
            return self._struct(node) | None | UnsetType
        if node.kind == "table" and node.items is not None:
            return list[self._struct(node.items)] | None | UnsetType  # type: ignore[misc]
        return Raw | UnsetType

    def read(self, pages: Sequence[Page]) -> list[msgspec.Struct]:
        """All rows.

        Raises:
            ColumnarFallback: a name is repeated in an object. Neither this reader nor the parser notices that in a
                field that the parser leaves out, but the rows, encoded again, are shorter than before.
            msgspec.MsgspecError: a field is unknown, or is not the object or array that it was.
        """
        items: list[msgspec.Struct] = []
        for page in pages:
            page_items: list[msgspec.Struct] = self._decoder.decode(page.rows)
            encoded = msgspec.json.encode(page_items)
            # Most platforms write no spaces between values: then the lengths are equal at once.
            if len(encoded) != len(page.rows) and len(_compact(encoded)) != len(_compact(page.rows)):
                raise ColumnarFallback
            items += page_items
        return items

    def inner(self, table: InferredTable, items: Sequence[msgspec.Struct]) -> list[msgspec.Struct]:
        """The objects of an array, over all items."""
        return [below for item in items for below in self._at(item, table.keys) or ()]

    def column(self, column: InferredColumn, items: Sequence[msgspec.Struct]) -> pa.Array:
        """A column of values left as bytes. Raises KindMismatch, or ColumnarFallback for the row-by-row path."""
        raw = [self._at(item, column.keys) for item in items]
        return pa.array(
            [None if value is None else self._value(column.kind, bytes(value)) for value in raw], ARROW[column.kind]
        )

    def _at(self, item: msgspec.Struct, keys: tuple[str, ...]) -> Any:  # noqa: ANN401 — Raw, Struct, list or None
        value: Any = item
        for name in keys:
            value = getattr(value, self._attributes[name])
            if value is None or value is UNSET:
                return None
        return value

    def _value(self, kind: ColumnKind, data: bytes) -> object:
        known = (kind, data)
        if known not in self._values:
            if len(self._values) > _CACHE_MAX:
                self._values.clear()
            try:
                # The row parser takes objects: the value is wrapped in one.
                value = rows.parse(b'{"":' + data + b"}")[""]
            except InvalidRow:
                raise ColumnarFallback from None
            if kind == "key" and (isinstance(value, bool) or (isinstance(value, Number) and not rows.canonical(value))):
                raise ColumnarFallback
            self._values[known] = coerce(kind, value)
        return self._values[known]
