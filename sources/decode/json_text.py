"""Values of undocumented fields that no single Arrow type parses: JSON text, and fields of several types.

In: the types seen and pages. Out: the type to declare to the parser, the columns that it leaves out,
read by msgspec with every field named, so that an unknown one is noticed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import UNSET, Raw, UnsetType

from sources.decode import rows
from sources.decode.ndjson import ColumnarFallback, NdjsonBatch
from sources.decode.rows import Number, Page, RowRefused
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

# Numbers of more than 15 digits with a point, or with an exponent, may not survive as doubles. The first pattern is
# quick and finds too many; pages in which it finds any are gone over with the second.
_DOUBTFUL: Final = r"[0-9]{7}\.[0-9]|\.[0-9]{9}|[:\[,]\s*-?[0-9.]+[eE]"
_FRACTION: Final = re.compile(rb"[:\[,]\s*(-?[0-9]+(?:\.[0-9]+(?:[eE][-+]?[0-9]+)?|[eE][-+]?[0-9]+))")
_CACHE_MAX: Final = 100_000


class Misfit(Exception):
    """A value is not of the kind that its column was given."""


@dataclass(frozen=True, slots=True)
class Declared:
    """The type to parse rows with; whether it has doubles, and whether fields are left out of it."""

    type: pa.StructType
    has_double: bool
    has_raw: bool


def parse_type(node: InferredNode, key: str) -> Declared:
    """The type to parse rows with."""
    types = {name: _type(inner, name == key) for name, inner in node.fields.items()}
    flat = list(_flat(types))
    has_double = pa.float64() in flat or pa.list_(pa.float64()) in flat
    return Declared(_struct_type(types), has_double, None in flat)


_Tree = Any
"""A pa.DataType, None for a field that is left out, a dict for an object, a list of one dict for an array of them."""


def _type(node: InferredNode, is_key: bool = False) -> _Tree:
    seen, kind = node.seen, node.kind
    if is_key:
        return pa.string() if seen == Seen.TEXT else pa.int64() if seen and not seen & ~WHOLE else None
    if kind == "object":
        return {name: _type(inner) for name, inner in node.fields.items()}
    if kind == "table" and node.items is not None:
        return [{name: _type(inner) for name, inner in node.items.fields.items()}]
    if kind == "json":
        if seen == Seen.OBJECT:
            return None if node.fields else pa.struct([])
        items = node.items.seen if node.items is not None else Seen.NOTHING
        if seen != Seen.ARRAY:
            return None
        if not items:
            return pa.list_(pa.null())
        if items == Seen.TEXT:
            return pa.list_(pa.string())
        if not items & ~WHOLE:
            return pa.list_(pa.int64())
        return pa.list_(pa.float64()) if not items & ~(Seen.INTEGER | Seen.POINT | Seen.FRACTION) else None
    if kind == "bigint" and Seen.POINT in seen:
        return None if Seen.WIDE in seen else pa.float64()
    if kind == "text":
        # Always null: the parser is to refuse anything else, so that it is seen.
        return pa.string() if seen == Seen.TEXT else None if seen else pa.null()
    return ARROW[kind]


def _flat(tree: _Tree) -> list[pa.DataType | None]:
    if isinstance(tree, dict):
        return [leaf for inner in tree.values() for leaf in _flat(inner)]
    return _flat(tree[0]) if isinstance(tree, list) else [tree]


def _struct_type(tree: dict[str, _Tree]) -> pa.StructType:
    return pa.struct([(name, _arrow(inner)) for name, inner in tree.items() if inner is not None])


def _arrow(tree: _Tree) -> pa.DataType:
    if isinstance(tree, dict):
        return _struct_type(tree)
    return pa.list_(_struct_type(tree[0])) if isinstance(tree, list) else tree


def number_texts_survive(text: NdjsonBatch) -> bool:
    """Whether doubles give back all numbers that are written with a point or an exponent."""
    if not _is_doubtful(text.as_value(pa.large_binary())):
        return True
    return all(
        survives(number.decode())
        for page in text.pages
        if _is_doubtful(pa.array([page.rows], pa.large_binary()))
        for number in set(_FRACTION.findall(page.rows))
    )


def _is_doubtful(text: pa.Array) -> bool:
    return bool(pc.any(pc.match_substring_regex(text, _DOUBTFUL)).as_py())


def coerce(kind: ColumnKind, value: object) -> object:
    """A parsed value as its column holds it.

    Raises:
        Misfit: it is of another kind.
    """
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
    raise Misfit


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Number):
        return rows.canonical(value) or str(value)
    if isinstance(value, str):
        return value
    raise Misfit


def dump(value: object) -> str:
    """Compact JSON text, numbers in their plain form."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{dump(name)}:{dump(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(dump(inner) for inner in value) + "]"
    if isinstance(value, Number):
        return rows.canonical(value) or str(value)
    return msgspec.json.encode(value).decode()


_NAMEABLE: Final = re.compile(r'[^"\\\x00-\x1f]*')
"""Names that msgspec takes for a field of a struct."""


class Reader:
    """Reads whole rows with every field named, values left as bytes."""

    def __init__(self, node: InferredNode) -> None:
        self._attributes: dict[str, str] = {}
        self._decoder = msgspec.json.Decoder(list[self._struct(node)])  # type: ignore[misc]
        self._texts: dict[tuple[ColumnKind, bytes], object] = {}

    def _struct(self, node: InferredNode) -> type[msgspec.Struct]:
        members: list[tuple[str, Any, Any]] = []
        renamed = {}
        for name, inner in node.fields.items():
            if not _NAMEABLE.fullmatch(name):
                raise ColumnarFallback
            attribute = self._attributes.setdefault(name, f"f{len(self._attributes)}")
            renamed[attribute] = name
            members.append((attribute, self._member(inner), UNSET))
        return msgspec.defstruct("Item", members, rename=renamed, forbid_unknown_fields=True)

    def _member(self, node: InferredNode) -> Any:  # noqa: ANN401 — a type expression
        if node.kind == "object" or (node.seen == Seen.OBJECT and not node.fields):
            return self._struct(node) | None | UnsetType  # an object that was always empty is to stay so
        if node.kind == "table" and node.items is not None:
            return list[self._struct(node.items)] | None | UnsetType  # type: ignore[misc]
        return Raw | UnsetType

    def read(self, pages: Sequence[Page]) -> list[msgspec.Struct]:
        """All rows.

        Raises:
            Refused: a name comes twice in an object. Neither this reader nor the parser notices that in a field that
                the parser leaves out; but then the rows, written again, are shorter than they came.
            msgspec.MsgspecError: a field is not known, or is no object or array as the others were.
        """
        items: list[msgspec.Struct] = []
        for page in pages:
            read: list[msgspec.Struct] = self._decoder.decode(page.rows)
            compact = msgspec.json.format(page.rows, indent=-1)
            if len(msgspec.json.format(msgspec.json.encode(read), indent=-1)) != len(compact):
                raise ColumnarFallback
            items += read
        return items

    def inner(self, table: InferredTable, items: Sequence[msgspec.Struct]) -> list[msgspec.Struct]:
        """The objects of an array, over all items."""
        return [below for item in items for below in self._at(item, table.keys) or ()]

    def column(self, column: InferredColumn, items: Sequence[msgspec.Struct]) -> pa.Array:
        """A column of values left as bytes. Raises Misfit, or Refused for what the row path has to look at."""
        raw = [self._at(item, column.keys) for item in items]
        return pa.array(
            [None if value is None else self._held(column.kind, bytes(value)) for value in raw], ARROW[column.kind]
        )

    def _at(self, item: msgspec.Struct, keys: tuple[str, ...]) -> Any:  # noqa: ANN401 — Raw, Struct, list or None
        value: Any = item
        for name in keys:
            value = getattr(value, self._attributes[name])
            if value is None or value is UNSET:
                return None
        return value

    def _held(self, kind: ColumnKind, data: bytes) -> object:
        known = (kind, data)
        if known not in self._texts:
            if len(self._texts) > _CACHE_MAX:
                self._texts.clear()
            try:
                # The row reader takes objects; a value is one as the only field of one.
                value = rows.parse(b'{"":' + data + b"}")[""]
            except RowRefused:
                raise ColumnarFallback from None
            if kind == "key" and (isinstance(value, bool) or (isinstance(value, Number) and not rows.canonical(value))):
                raise ColumnarFallback
            self._texts[known] = coerce(kind, value)
        return self._texts[known]
