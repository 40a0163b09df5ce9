"""Values of undocumented fields that no single Arrow type parses: JSON text, and texts among which are other scalars.

In: the types seen, and pages. Out: the type to declare to the parser, and the columns that it leaves out, read by
msgspec with every field named, so that an unknown one is noticed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Final, Literal

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import UNSET, Raw, UnsetType

from orderbridge.sources.decode.column_kinds import ARROW, ColumnKind
from orderbridge.sources.decode.inferred_tables import InferredColumn, InferredTable
from orderbridge.sources.decode.json_numbers import Number, canonical
from orderbridge.sources.decode.ndjson import (
    ColumnarFallback,
    NdjsonBatch,
    int32_array,
    text_array,
    text_scalar,
)
from orderbridge.sources.decode.rows import InvalidRow, Page
from orderbridge.sources.decode.rows import parse as parse_row
from orderbridge.sources.decode.schema_inference import TEXTS, InferredNode
from orderbridge.sources.decode.table_schema import DECIMAL
from orderbridge.sources.decode.values import Count, plain_text

_compact: Final = partial(msgspec.json.format, indent=-1)
_LONG_DECIMAL: Final = pa.decimal256(76, 38)
"""Arrow reads each number of up to 38 decimals into it as it is written; `rounded` makes a column's `DECIMAL` of it."""
_WITH_DECIMALS: Final = (DECIMAL, _LONG_DECIMAL, pa.list_(DECIMAL), pa.list_(_LONG_DECIMAL))
_CACHE_MAX: Final = 100_000
_PLAIN_TEXT: Final = r'[\x00-\x1f"\\]'


@dataclass(frozen=True, slots=True)
class DeclaredType:
    """The type to parse rows with.

    Attributes:
        has_raw: whether fields are left out of it.
        decimals: the names of fields with decimals, or with lists of them.
    """

    type: pa.StructType
    has_raw: bool
    decimals: frozenset[str]


def parse_type(root: InferredNode, key: str) -> DeclaredType:
    """The type to parse rows with; `key` is the field of their identifier."""
    leaves: list[tuple[str, pa.DataType | None]] = []
    declared = _struct(root, leaves, key)
    types = [kind for _, kind in leaves]
    decimals = frozenset(name for name, kind in leaves if kind in _WITH_DECIMALS)
    return DeclaredType(declared, None in types, decimals)


def _struct(
    node: InferredNode, leaves: list[tuple[str, pa.DataType | None]], key: str | None = None
) -> pa.StructType:
    """The type of an object without the fields that are left out; adds the types of its fields to `leaves`."""
    types = {}
    for name, inner in node.fields.items():
        if name == key:
            leaves.append((name, _key_type(inner)))
        elif inner.kind in ("object", "table"):
            types[name] = _struct(inner, leaves)
            if inner.kind == "table":
                types[name] = pa.list_(types[name])
            continue
        else:
            leaves.append((name, _leaf(inner)))
        types[name] = leaves[-1][1]
    return pa.struct([(name, kind) for name, kind in types.items() if kind is not None])


def _key_type(node: InferredNode) -> pa.DataType | None:
    if node.seen and node.seen <= TEXTS:
        return pa.string()
    return pa.int64() if node.seen == {Count.WHOLE} else None


def _leaf(node: InferredNode) -> pa.DataType | None:
    """The type of a field; None for one that is left out."""
    if node.kind == "list":
        return _list_type(node)
    if node.kind == "empty":  # the parser rejects anything else, so that it is noticed
        empty = {Count.EMPTY_OBJECT: pa.struct([]), Count.EMPTY_LIST: pa.list_(pa.null())}
        return (
            empty[next(iter(node.counts))]
            if len(node.counts) == 1
            else None
            if node.counts
            else pa.null()
        )
    if node.kind == "decimal":
        return _decimal_type(node)
    if node.kind == "text" and node.seen - TEXTS:
        return None
    return None if node.kind == "json" else ARROW[node.kind]


def _decimal_type(node: InferredNode) -> pa.DataType:
    return _LONG_DECIMAL if node.has_long_decimals else DECIMAL


def _list_type(node: InferredNode) -> pa.DataType | None:
    """The type of lists, where Arrow can parse them and write them again."""
    items = node.items
    if items and items <= {Count.WHOLE, Count.DECIMAL}:
        return pa.list_(_decimal_type(node) if Count.DECIMAL in items else pa.int64())
    return pa.list_(pa.string()) if items and items <= TEXTS else None


def has_odd_decimals(text: NdjsonBatch, names: frozenset[str]) -> bool:
    """Whether Arrow would read a decimal wrongly.

    It takes texts as numbers: a code, any in a list of decimals; and a number of 30 digits, or with an exponent, that
    its type does not hold may become another one.
    """
    if not names:
        return False
    fields = "|".join(map(re.escape, sorted(msgspec.json.encode(name).decode() for name in names)))
    code = r"\"[-+]?(?:0[0-9]|[+.]|[0-9]+\.\"|[0-9]{30}|[0-9.]*[eE])"
    large, list_ = (
        r"-?(?:[0-9]{30}|[0-9.]+[eE]\+?[0-9])",
        r"\[[^\]]*(?:\"|[0-9]{30}|[0-9][eE]\+?[0-9])",
    )
    pattern = rf"(?:{fields})\s*:\s*(?:{code}|{large}|{list_})"
    return bool(pc.any(pc.match_substring_regex(text.as_value(pa.large_binary()), pattern)).as_py())


def column_value(kind: ColumnKind | Literal["key"], value: object) -> object:
    """A parsed value that fits its column (`InferredNode.fit`) as the column holds it."""
    if value is None:
        return None
    if kind in ("json", "list"):
        return dump(value)
    return plain_text(value) if kind == "key" else value


def json_texts(parsed: pa.Array) -> pa.Array:
    """Lists of texts or numbers as JSON text. Raises ColumnarFallback for others, and for texts that need an escape."""
    items = parsed.flatten()
    if items.null_count:
        raise ColumnarFallback
    quote = '"' if pa.types.is_string(items.type) else ""
    if quote and pc.any(pc.match_substring_regex(items, _PLAIN_TEXT)).as_py():
        raise ColumnarFallback
    texts = parsed
    if pa.types.is_decimal(items.type):
        texts = pa.ListArray.from_arrays(
            _offsets(parsed), _plain_decimals(items), mask=parsed.is_null()
        )
    elif not quote:
        texts = pc.cast(parsed, pa.list_(pa.string()))
    begin, between, end = map(text_scalar, (f"[{quote}", f"{quote},{quote}", f"{quote}]"))
    joined = pc.binary_join_element_wise(
        begin, pc.binary_join(texts, between), end, text_scalar("")
    )
    has_items = pc.cast(pc.list_value_length(parsed), pa.bool_())
    return pc.if_else(has_items, joined, text_scalar("[]"))


def rounded(parsed: pa.Array) -> tuple[pa.Array, pa.Array | None]:
    """Parsed decimals as their column holds them, half rounded up as databases do.

    Returns:
        The rounded numbers; and in plain form those that were changed by it, null for the others. None if none was.

    Raises:
        pyarrow.ArrowInvalid: a number is too large for the column.
    """
    try:
        return pc.cast(parsed, DECIMAL), None  # refuses to round
    except pa.ArrowInvalid:
        nearest = pc.round(parsed, DECIMAL.scale, "half_towards_infinity")
    is_changed = pc.not_equal(nearest, parsed)
    changed = pc.if_else(is_changed, parsed, pa.nulls(len(parsed), parsed.type))
    return pc.cast(nearest, DECIMAL), _plain_decimals(changed)


def _plain_decimals(numbers: pa.Array) -> pa.StringArray:
    """Parsed decimals in plain form, as `canonical` writes them."""
    texts = pc.cast(numbers, pa.string())  # each has all decimals of its type, or an exponent
    texts = pc.if_else(pc.starts_with(texts, "0E"), text_scalar("0.0"), texts)
    plain = pc.ascii_rtrim(pc.ascii_rtrim(texts, "0"), ".")
    is_small = pc.match_substring(texts, "E")  # below 0.000001
    if not pc.any(is_small).as_py():
        return plain
    small = (canonical(Number(text)) for text in texts.filter(is_small).to_pylist())
    return pc.replace_with_mask(plain, is_small, text_array([str(text).encode() for text in small]))


def extra_texts(members: Mapping[str, pa.Array], length: int) -> pa.Array:
    """The column `_extra`, of the JSON texts of its members by name; null where all of them are.

    Args:
        members: in the order in which they are written.
        length: of the column.
    """
    nothing = pa.nulls(length, pa.string())
    if not members:
        return nothing
    empty = text_scalar("")
    written = [
        pc.coalesce(
            pc.binary_join_element_wise(text_scalar(f",{dump(name)}:"), texts, empty), empty
        )
        for name, texts in members.items()
    ]
    joined = pc.utf8_slice_codeunits(pc.binary_join_element_wise(*written, empty), 1)
    extra = pc.binary_join_element_wise(text_scalar("{"), joined, text_scalar("}"), empty)
    return pc.if_else(pc.equal(joined, empty), nothing, extra)


def _offsets(lists: pa.ListArray) -> pa.Array:
    """Where the items of each list begin in all items."""
    offsets = np.from_dlpack(lists.offsets)
    return int32_array(offsets - offsets[0])


def dump(value: object) -> str:
    """Compact JSON text, with numbers in plain form."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{dump(name)}:{dump(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(dump(inner) for inner in value) + "]"
    if isinstance(value, Number):
        return canonical(value) or str(value)
    return msgspec.json.encode(value).decode()


class RawReader:
    """Reads whole rows with every field named and its value left as bytes."""

    def __init__(self, root: InferredNode) -> None:
        self._attributes: dict[str, str] = {}
        self._decoder = msgspec.json.Decoder(list[self._struct(root)])  # type: ignore[misc]
        self._parsed = lru_cache(_CACHE_MAX)(_parsed)

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
        if node.kind == "object" or (
            node.kind == "empty" and node.counts.keys() == {Count.EMPTY_OBJECT}
        ):
            # an object that was always empty must stay so
            return self._struct(node) | None | UnsetType
        if node.kind == "table":
            return list[self._struct(node)] | None | UnsetType  # type: ignore[misc]
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
            if len(encoded) != len(page.rows) and len(_compact(encoded)) != len(
                _compact(page.rows)
            ):
                raise ColumnarFallback
            items += page_items
        return items

    def inner(self, table: InferredTable, items: Sequence[msgspec.Struct]) -> list[msgspec.Struct]:
        """The objects of an array, over all items."""
        return [below for item in items for below in self._at(item, table.keys) or ()]

    def column(self, column: InferredColumn, items: Sequence[msgspec.Struct]) -> pa.Array:
        """A column of values left as bytes. Raises ColumnarFallback if one is for the row-by-row path."""
        fitted = lru_cache(_CACHE_MAX)(partial(self._fitted, column))
        raw = (self._at(item, column.keys) for item in items)
        values = [None if value is None else fitted(bytes(value)) for value in raw]
        return pa.array(values, ARROW[column.kind])

    def fields(self, name: str, items: Sequence[msgspec.Struct]) -> list[Any]:
        """The values of a field: bytes, objects, or lists of objects; nulls and absent ones are left out."""
        values = (self._at(item, (name,)) for item in items)
        return [value for value in values if value is not None]

    def filled(self, items: Sequence[msgspec.Struct]) -> int:
        """How many objects have a value other than null."""
        return sum(any(map(_is_value, msgspec.structs.astuple(item))) for item in items)

    def parsed(self, data: Raw) -> object:
        """A value left as bytes. Raises ColumnarFallback if its row is to be quarantined."""
        return self._parsed(bytes(data))

    def _at(self, item: msgspec.Struct, keys: tuple[str, ...]) -> Any:  # noqa: ANN401 — Raw, Struct, list or None
        value: Any = item
        for name in keys:
            value = getattr(value, self._attributes[name])
            if value is None or value is UNSET:
                return None
        return value

    def _fitted(self, column: InferredColumn, data: bytes) -> object:
        value = self._parsed(data)
        odd: dict[str, object] = {}
        if column.kind == "key":
            if not isinstance(value, str) or (isinstance(value, Number) and not canonical(value)):
                raise ColumnarFallback
        else:
            value = column.node.fit(value, (), odd)
        if odd:
            raise ColumnarFallback
        return column_value(column.kind, value)


def _is_value(member: object) -> bool:
    if isinstance(member, Raw):
        return bytes(member) != b"null"
    return member is not None and member is not UNSET


def _parsed(data: bytes) -> object:
    """A value. Raises ColumnarFallback if its row is to be quarantined."""
    try:
        # The row parser takes objects: the value is wrapped in one.
        return parse_row(b'{"":' + data + b"}")[""]
    except InvalidRow:
        raise ColumnarFallback from None
