"""Undocumented records: pages to Arrow tables, typed over the whole walk.

In: pages of JSON rows. Out: the tables of `schema_inference`, with types that hold everything seen so far, and the rows
that cannot be loaded. A batch is parsed as a whole with the types known (`pyarrow.json`, all declared, none guessed: a
string like a date stays text). What does not fit is read row by row, the types widen, and the batch is parsed again.
`version` counts the widenings: tables of an earlier version are decoded again from their pages, which is exact where a
cast would not be (1.50 read as a double, an object that became text).

An array of objects is a child table with the record's identifier (`order_id`) and the item's `position`, from 1; in
nested arrays the position of each holder comes before it (`orders__lines__taxes`: `order_id`, `lines_position`,
`position`). Objects are flattened (`customer__id`). Other arrays, fields that are an object in one row and something
else in another, and objects with too many fields are compact JSON text, numbers in plain form (`1.5` for 1.50).
`_extra` has the remaining fields of a record with too many.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from sources.contract import Record
from sources.decode import rows
from sources.decode.json_text import KindMismatch, RawReader, coerce, dump, numbers_survive, parse_type
from sources.decode.ndjson import ColumnarFallback, NdjsonBatch, has_empty, items_of, parse, positions, text_scalar
from sources.decode.rows import Decoded, Page
from sources.decode.schema_inference import (
    ARROW,
    DOUBLE_EXACT,
    FieldNames,
    InferredColumn,
    InferredNode,
    InferredTable,
    NodeBudget,
    inferred_table,
)
from sources.decode.table_schema import FIELD, merged, shorten, tables_from_lines

FOUND: Final = "field found, not shown by the interface"
_PLAIN_TEXT: Final = r'[\x00-\x1f"\\]'
_NOT_PLAIN: Final = "[en]|^-0$"
"""A double that Arrow writes in another form than the row-by-row path: 1e+15, inf, -0."""


class InferredSchema:
    """The types of an undocumented record (only its name and key are used), and the decoder of its pages.

    `names` are earlier names of its fields.
    """

    def __init__(self, record: Record, names: FieldNames | None = None) -> None:
        self.record, self._names = record, names
        self.version = 0
        self._root, self._budget = InferredNode(), NodeBudget()
        self._table = inferred_table(record, self._root, names)
        self._columns: set[str] = set()

    def schema_of(self) -> dict[str, pa.Schema]:
        """The tables and columns known so far."""
        return {table.name: table.schema for table in self._table.all()}

    def holders(self) -> dict[str, str]:
        """The table whose rows hold the items of a child table, by child table."""
        return {child.name: table.name for table in self._table.all() for child in table.children}

    def fields(self) -> list[tuple[str, str]]:
        """Observations of the path of the field in each column and child table."""
        return [(f"{name}: {FIELD}", path) for name, path in self._table.paths()]

    def decode(self, pages: Sequence[Page]) -> Decoded:
        """Decodes pages, with types that hold them and all pages before.

        Raises:
            ContractBroken: a page is not a JSON array.
        """
        observations: Counter[tuple[str, str]] = Counter()
        if not self._root.fields and pages:
            self._widen(pages[:1], observations)
        while (whole := self._columnar(pages)) is None:
            parts = [(page, self._columnar([page]) if len(pages) > 1 else None) for page in pages]
            before = self.version, parse_type(self._root, self.record.key)
            self._widen([page for page, part in parts if part is None], observations)
            if (self.version, parse_type(self._root, self.record.key)) == before:
                return merged(self._with_exact(parts), self.schema_of(), observations)
        return merged([whole], self.schema_of(), observations)

    def _with_exact(self, parts: list[tuple[Page, Decoded | None]]) -> list[Decoded]:
        """The parts in order, pages without one read row by row: neighbours together, since each table has a cost."""
        result: list[Decoded] = []
        for is_missing, group in groupby(parts, lambda part: part[1] is None):
            pages, decoded = zip(*group, strict=True)
            result += [self._by_rows(pages)] if is_missing else decoded
        return result

    def _widen(self, pages: Sequence[Page], observations: Counter[tuple[str, str]]) -> None:
        """Widens the types by the rows of pages; counts a new version if that changes a table."""

        def take(row: dict[str, object], data: bytes, key: str, place: tuple[int, int]) -> None:
            if b"\\u0000" in data:
                rows.check_nul(row)
            self._root.widen(row, self._budget, is_root=True)

        rows.read_rows(pages, self.record.key, take)
        before, self._table = self._table, inferred_table(self.record, self._root, self._names)
        if before != self._table:
            self.version += 1
            columns = {f"{table.name}.{column.name}" for table in self._table.all() for column in table.columns}
            names = {shorten(name) for name in columns - self._columns}
            observations.update((f"{self.record.name}: {FOUND}", name) for name in names)
            self._columns |= columns

    def _by_rows(self, pages: Sequence[Page]) -> Decoded:
        """The exact path, for pages whose types are known already."""
        lines: dict[str, list[list[object]]] = {table.name: [] for table in self._table.all()}

        def take(row: dict[str, object], data: bytes, key: str, place: tuple[int, int]) -> None:
            if b"\\u0000" in data:
                rows.check_nul(row)
            other = {name: value for name, value in row.items() if name not in self._root.fields}
            extra = dump(other) if other else None
            lines[self._table.name].append([*_values(self._table, row), extra, *place])
            _add_children(self._table, row, [key], place, lines)

        quarantined = rows.read_rows(pages, self.record.key, take)
        return Decoded(tables_from_lines(lines, self.schema_of()), quarantined, Counter())

    def _columnar(self, pages: Sequence[Page]) -> Decoded | None:
        """The fast path, for pages that fit the types; None if a check fails."""
        if not pages or not self._root.fields or self._root.is_wide or not (text := NdjsonBatch(pages)).is_clean():
            return None
        try:
            declared = parse_type(self._root, self.record.key)
            if declared.has_double and not numbers_survive(text):
                return None
            reader = RawReader(self._root) if declared.has_raw else None
            items = reader.read(text.pages) if reader is not None else []
            parsed = parse(text, declared.type, "error" if reader is None else "ignore")
            if reader is not None and len(items) != len(parsed.rows):
                return None
            batch = _ColumnarBatch(reader)
            batch.add(self._table, _Items(parsed.rows, items, [], parsed.place))
        except (
            ColumnarFallback,
            KindMismatch,
            msgspec.MsgspecError,
            RecursionError,
            pa.ArrowInvalid,
            pa.ArrowNotImplementedError,
        ):
            return None
        return Decoded(batch.tables, [], Counter())


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


class _ColumnarBatch:
    """The tables of one batch. Raises ColumnarFallback, KindMismatch or Arrow's own errors."""

    def __init__(self, reader: RawReader | None) -> None:
        self.tables: dict[str, pa.Table] = {}
        self._reader = reader

    def add(self, table: InferredTable, items: _Items) -> None:
        """Fills a table, and its child tables."""
        columns = [self._column(column, items) for column in table.columns]
        if not items.places and (columns[0].null_count or has_empty(columns[0])):
            raise ColumnarFallback
        extra = pa.nulls(len(items.values), pa.string())
        self.tables[table.name] = pa.Table.from_arrays(
            [*items.places, *columns, extra, *items.place], schema=table.schema
        )
        for child in table.children:
            values, parents = items_of(pc.struct_field(items.values, list(child.keys)))
            places = [column.take(parents) for column in items.places or columns[:1]]
            raw = self._reader.inner(child, items.raw) if self._reader is not None else []
            place = [column.take(parents) for column in items.place]
            self.add(child, _Items(values, raw, [*places, positions(parents)], place))

    def _column(self, column: InferredColumn, items: _Items) -> pa.Array:
        if _has(items.values.type, column.keys):
            return _converted(column, pc.struct_field(items.values, list(column.keys)))
        if self._reader is None:
            raise ColumnarFallback
        return self._reader.column(column, items.raw)


def _has(struct: pa.StructType, keys: tuple[str, ...]) -> bool:
    """Whether the parser was given a type for this place."""
    for name in keys:
        index = struct.get_field_index(name)
        if index < 0:
            return False
        struct = struct.field(index).type
    return True


def _converted(column: InferredColumn, parsed: pa.Array) -> pa.Array:
    """A parsed column as its table holds it. Raises ColumnarFallback or ArrowInvalid if a value is of another kind."""
    if column.kind == "json":
        return _json_texts(parsed)
    if pa.types.is_floating(parsed.type) or (column.kind == "bigint" and not column.is_wide):
        # Beyond 53 bits a double does not show which whole number was written. A column of integers that has such a
        # number cannot become a double later, so it has to be noticed here.
        bounds = pc.min_max(parsed)
        low, high = bounds["min"].as_py(), bounds["max"].as_py()
        if low is not None and not (low >= -DOUBLE_EXACT and high <= DOUBLE_EXACT):
            raise ColumnarFallback
        if pa.types.is_floating(parsed.type) and pc.any(pc.is_nan(parsed)).as_py():
            raise ColumnarFallback
    return pc.cast(parsed, ARROW[column.kind])


def _json_texts(parsed: pa.Array) -> pa.Array:
    """Arrays of strings or numbers, and objects and arrays that are always empty, as JSON text."""
    if pa.types.is_struct(parsed.type):
        return _constant("{}", parsed)
    items = parsed.flatten()
    if items.null_count or (pa.types.is_null(items.type) and len(items)):
        raise ColumnarFallback
    if pa.types.is_null(items.type):
        return _constant("[]", parsed)
    quote = '"' if pa.types.is_string(items.type) else ""
    if quote and pc.any(pc.match_substring_regex(items, _PLAIN_TEXT)).as_py():
        raise ColumnarFallback
    texts = parsed if quote else pc.cast(parsed, pa.list_(pa.string()))
    if pa.types.is_floating(items.type) and pc.any(pc.match_substring_regex(texts.flatten(), _NOT_PLAIN)).as_py():
        raise ColumnarFallback
    begin, between, end = map(text_scalar, (f"[{quote}", f"{quote},{quote}", f"{quote}]"))
    joined = pc.binary_join_element_wise(begin, pc.binary_join(texts, between), end, text_scalar(""))
    has_items = pc.cast(pc.list_value_length(parsed), pa.bool_())
    return pc.if_else(has_items, joined, text_scalar("[]"))


def _constant(text: str, parsed: pa.Array) -> pa.Array:
    """A text where there is a value."""
    return pc.if_else(pc.is_valid(parsed), text_scalar(text), pa.nulls(1, pa.string())[0])


def _values(table: InferredTable, item: dict[str, object]) -> list[object]:
    return [coerce(column.kind, _at(item, column.keys)) for column in table.columns]


def _add_children(
    table: InferredTable,
    item: dict[str, object],
    places: list[object],
    place: tuple[int, int],
    lines: dict[str, list[list[object]]],
) -> None:
    """Adds the lines of the objects in an item's arrays."""
    for child in table.children:
        inner = _at(item, child.keys)
        for n, below in enumerate(inner if isinstance(inner, list) else [], 1):
            lines[child.name].append([*places, n, *_values(child, below), None, *place])
            _add_children(child, below, [*places, n], place, lines)


def _at(item: dict[str, object], keys: tuple[str, ...]) -> object:
    value: object = item
    for name in keys:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value
