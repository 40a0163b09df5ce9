"""A batch of pages of an undocumented record, by column: the fast path for pages that fit the types known so far.

In: pages, the tables and the tree of types. Out: the tables of the batch, and what its values count as.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import reduce
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from orderbridge.sources.decode.column_kinds import ARROW, ColumnKind
from orderbridge.sources.decode.inferred_tables import InferredColumn, InferredTable
from orderbridge.sources.decode.json_text import (
    RawReader,
    extra_texts,
    has_odd_decimals,
    json_texts,
    parse_type,
    rounded,
)
from orderbridge.sources.decode.ndjson import (
    ColumnarFallback,
    NdjsonBatch,
    has_blank,
    items_of,
    parse,
    positions,
    text_scalar,
)
from orderbridge.sources.decode.rows import SECRETS, Decoded
from orderbridge.sources.decode.schema_inference import InferredNode, NodeBudget
from orderbridge.sources.decode.values import DECIMAL_TEXT, NUMERIC_TEXT, WHOLE_TEXT, Count


def read_columns(
    text: NdjsonBatch, table: InferredTable, root: InferredNode, key: str
) -> ColumnarBatch:
    """Reads a batch with the types of a tree. `key` is the identifier's field.

    Raises:
        ColumnarFallback, pyarrow.ArrowInvalid: a value does not fit them.
    """
    declared = parse_type(root, key)
    if has_odd_decimals(text, declared.decimals):
        raise ColumnarFallback
    reader = RawReader(root) if declared.has_raw else None
    items = reader.read(text.pages) if reader is not None else []
    parsed = parse(text, declared.type, "error" if reader is None else "ignore")
    return ColumnarBatch(table, _Items(parsed.rows, items, [], parsed.place), reader)


@dataclass(frozen=True, slots=True)
class _Items:
    """The rows, or the objects of an array, of one batch.

    Attributes:
        values: as Arrow parsed them.
        raw: the same objects as a `RawReader` read them; empty if there is none.
        places: the columns before the table's own.
        place: `_page` and `_position`.
    """

    values: pa.StructArray
    raw: list[msgspec.Struct]
    places: list[pa.Array]
    place: list[pa.Array]


class ColumnarBatch:
    """The tables of one batch. Raises ColumnarFallback or Arrow's own errors."""

    def __init__(self, table: InferredTable, items: _Items, reader: RawReader | None) -> None:
        self.decoded = Decoded({}, [], Counter())
        self._items = items
        self._reader = reader
        self._add(table, items)

    def _add(self, table: InferredTable, items: _Items) -> None:
        """Fills a table, and its child tables."""
        exact: dict[str, pa.Array] = {}
        columns = [self._column(column, items, exact) for column in table.columns]
        if not items.places and (columns[0].null_count or has_blank(columns[0])):
            raise ColumnarFallback
        extra = extra_texts(dict(sorted(exact.items())), len(items.values))
        self.decoded.tables[table.name] = pa.Table.from_arrays(
            [*items.places, *columns, extra, *items.place], schema=table.schema
        )
        for child in table.children:
            values, parents = items_of(pc.struct_field(items.values, list(child.keys)))
            places = [column.take(parents) for column in items.places or columns[:1]]
            raw = self._reader.inner(child, items.raw) if self._reader is not None else []
            place = [column.take(parents) for column in items.place]
            self._add(child, _Items(values, raw, [*places, positions(parents)], place))

    def _column(
        self, column: InferredColumn, items: _Items, exact: dict[str, pa.Array]
    ) -> pa.Array:
        """A column as its table holds it; `exact` takes the numbers that it holds rounded, by their path."""
        try:
            parsed = pc.struct_field(items.values, list(column.keys))
        except pa.ArrowInvalid:  # the parser was given no type for this place
            if self._reader is None:
                raise
            return _without_secrets(column, self._reader.column(column, items.raw))
        if column.kind != "decimal":
            return _without_secrets(column, _converted(column, parsed))
        numbers, unrounded = rounded(parsed)
        if unrounded is not None:
            exact[".".join(column.keys)] = unrounded
        return numbers

    def count(self, root: InferredNode, key: InferredNode, budget: NodeBudget) -> None:
        """Counts the values at places that are counted (`InferredNode.is_counted`)."""
        self._count(root, self._items.values, self._items.raw, key, budget)

    def _count(
        self,
        node: InferredNode,
        values: pa.StructArray,
        raw: list[Any],
        key: InferredNode | None,
        budget: NodeBudget,
    ) -> None:
        for name, inner in list(node.fields.items()):
            if inner is key:
                continue
            index = values.type.get_field_index(name)
            held = self._reader.fields(name, raw) if self._reader is not None else []
            if index < 0:
                self._widen(inner, held, budget)
                continue
            parsed = values.field(index)
            if inner.is_counted:
                inner.counts.update(self._counts(inner.kind, parsed, held))
            if inner.kind == "object":
                self._count(inner, parsed, held, None, budget)
            elif inner.kind == "table":
                items = [item for items in held for item in items]
                self._count(inner, parsed.flatten(), items, None, budget)

    def _widen(self, node: InferredNode, held: list[Any], budget: NodeBudget) -> None:
        """Takes the values of a place that Arrow was given no type for into account."""
        if node.kept is None and self._reader is not None:
            for value in held:
                node.widen(self._reader.parsed(value), budget)

    def _counts(self, kind: ColumnKind, parsed: pa.Array, held: list[Any]) -> dict[Count, int]:
        """What a parsed column counts as; `held` are its values, where a reader has them."""
        if kind != "object":
            return _counts(kind, parsed)
        filled = _filled(parsed) if self._reader is None else self._reader.filled(held)
        others = len(parsed) - parsed.null_count - filled
        return {Count.OBJECT: filled, Count.NULL_OBJECT: others}


def _counts(kind: ColumnKind, parsed: pa.Array) -> dict[Count, int]:
    """What a parsed column counts as, the same as its values one by one."""
    valid = len(parsed) - parsed.null_count
    if kind == "bigint":
        return {Count.WHOLE: valid}
    if kind == "decimal":
        return {Count.DECIMAL: valid}
    if kind == "boolean":
        true = pc.sum(parsed).as_py() or 0
        return {Count.TRUE: true, Count.FALSE: valid - true}
    if kind == "text":
        return _text_counts(parsed, valid)
    if kind in ("list", "table"):
        lengths = np.diff(np.from_dlpack(parsed.offsets))  # a list that is null has none
        empty = int(np.count_nonzero(lengths == 0)) - parsed.null_count
        single = int(np.count_nonzero(lengths == 1)) if kind == "table" else 0
        items = Count.OBJECT_ITEM if kind == "table" else Count.OTHER_ITEM
        return {
            Count.EMPTY_LIST: empty,
            Count.LIST_OF_ONE: single,
            Count.LIST: valid - empty - single,
            items: len(parsed.flatten()),
        }
    return {}


def _filled(objects: pa.StructArray) -> int:
    """How many parsed objects have a value."""
    fields = [pc.is_valid(field) for field in objects.flatten()]
    return (pc.sum(reduce(pc.or_, fields)).as_py() or 0) if fields else 0


def _text_counts(parsed: pa.Array, valid: int) -> dict[Count, int]:
    # a tenth of the time of a pattern
    before_letters = parsed.filter(pc.less(parsed, text_scalar(":")))

    def matching(pattern: str) -> int:
        return pc.sum(pc.match_substring_regex(before_letters, pattern)).as_py() or 0

    empty = valid - (pc.sum(pc.cast(pc.binary_length(parsed), pa.bool_())).as_py() or 0)
    numeric = matching(NUMERIC_TEXT)
    whole = matching(WHOLE_TEXT) if numeric else 0
    decimal = matching(DECIMAL_TEXT) if numeric else 0
    return {
        Count.EMPTY_TEXT: empty,
        Count.TEXT: valid - empty - numeric,
        Count.WHOLE_TEXT: whole,
        Count.DECIMAL_TEXT: decimal - whole,
        Count.LARGE_TEXT: numeric - decimal,
    }


def _without_secrets(column: InferredColumn, values: pa.Array) -> pa.Array:
    """A column without the passwords in it."""
    may_have = column.is_secret
    if column.kind == "json" and not may_have:
        may_have = pc.any(pc.match_substring_regex(values, SECRETS)).as_py()
    if not may_have:
        return values
    texts = [text if text is None else column.masked(text) for text in values.to_pylist()]
    return pa.array(texts, pa.string())


def _converted(column: InferredColumn, parsed: pa.Array) -> pa.Array:
    """A parsed column as its table holds it. Raises ColumnarFallback or ArrowInvalid if a value is of another kind."""
    if column.kind == "list":
        return json_texts(parsed)
    if column.kind == "empty":
        if pa.types.is_list(parsed.type) and len(parsed.flatten()):
            raise ColumnarFallback
        return pa.nulls(len(parsed), pa.string())
    return pc.cast(parsed, ARROW[column.kind])
