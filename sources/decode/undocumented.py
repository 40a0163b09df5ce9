"""Pages of records that the interface does not describe, as Arrow tables typed over the whole walk.

In: pages of JSON rows, as bytes. Out: the tables of `schema_inference`, typed by everything that the walk has shown so
far, and the rows that cannot be loaded. A batch is parsed at once with the types known (`pyarrow.json`, declared, so
that nothing is guessed: a text like a date stays text). What does not fit them is read row by row, the types widen, and
the batch is parsed again. `version` counts the widenings: tables of an earlier version are decoded again from their
pages, which is exact where a cast (of 1.50 that was read as a double, of an object that became text) could not be.

Array of objects: a child table with the record's key (`order_id`) and the item's `position`, from 1; where arrays
nest, the position of each holder comes before it (`orders__lines__taxes`: `order_id`, `lines_position`, `position`).
Objects are flattened (`customer__id`). Other arrays, and fields that are an object in one row and something else in
another, are compact JSON text. Numbers in a text column are plain (`1.5` for 1.50). `_extra` is always null.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sources.contract import Record
from sources.decode import rows
from sources.decode.json_text import Misfit, Reader, coerce, number_texts_survive, parse_type
from sources.decode.ndjson import ColumnarFallback, NdjsonBatch, parse
from sources.decode.rows import Decoded, Number, Page, QuarantinedRow, RowRefused
from sources.decode.schema_inference import ARROW, DOUBLE_EXACT, InferredColumn, InferredNode, InferredTable, tables_of

__all__ = ["InferredSchema"]

FOUND: Final = "field found, not shown by the interface"
_PLAIN_TEXT: Final = r'[\x00-\x1f"\\]'
_NOT_PLAIN: Final = "[en]|^-0$"
"""A double that Arrow writes in another form than the row reader: 1e+15, inf, -0."""


class InferredSchema:
    """The types of an undocumented record, and how its pages are decoded with them.

    Args:
        record: the record; only its name and key are used.
    """

    def __init__(self, record: Record) -> None:
        self.record = record
        self.version = 0
        self._node = InferredNode()
        self._table = tables_of(record, self._node)
        self._found: set[str] = set()

    def schema_of(self) -> dict[str, pa.Schema]:
        """The tables and columns known so far."""
        return {table.name: table.schema for table in self._table.all()}

    def decode(self, pages: Sequence[Page]) -> Decoded:
        """Turns pages into tables, with types that hold them and all pages before.

        Raises:
            ContractBroken: a page is no JSON array.
        """
        observed: Counter[tuple[str, str]] = Counter()
        if not self._node.fields and pages:
            self._observe(pages[0], observed)
        while True:
            done = self._quick(pages)
            if done is not None:
                parts = [done]
                break
            tried = [(page, self._quick([page]) if len(pages) > 1 else None) for page in pages]
            before = (self.version, parse_type(self._node, self.record.key))
            for page, part in tried:
                if part is None:
                    self._observe(page, observed)
            if (self.version, parse_type(self._node, self.record.key)) == before:
                parts = [part or self._by_rows(page) for page, part in tried]
                break
        tables = {
            name: pa.concat_tables([schema.empty_table(), *(part.tables[name] for part in parts)])
            for name, schema in self.schema_of().items()
        }
        return Decoded(tables, [row for part in parts for row in part.quarantined], observed)

    def _observe(self, page: Page, observed: Counter[tuple[str, str]]) -> None:
        """Widens the types by a page's rows; counts a new version where that changes a table."""
        for data in rows.split(page):
            try:
                row = self._read(data)[0]
            except RowRefused:
                continue
            self._node.widen(row)
        before, self._table = self._table, tables_of(self.record, self._node)
        if before != self._table:
            self.version += 1
            names = {f"{table.name}.{column.name}" for table in self._table.all() for column in table.columns}
            observed.update((f"{self.record.name}: {FOUND}", name) for name in names - self._found)
            self._found |= names

    # --- row by row ------------------------------------------------------------------------------------------------

    def _read(self, data: bytes) -> tuple[dict[str, object], str]:
        """A row and its key. Raises RowRefused."""
        row = rows.parse(data)
        value = row.get(self.record.key)
        if value is None or value == "":
            found = "empty string" if value == "" else "null" if self.record.key in row else "nothing"
            raise RowRefused(f"{self.record.key}: expected an identifier, found {found}")
        key = rows.canonical(value) if isinstance(value, Number) else value
        if key is None:
            raise RowRefused(f"{self.record.key}: a number too long for an identifier")
        if not isinstance(key, str):
            raise RowRefused(f"{self.record.key}: expected identifier, found {rows.kind(value)}")
        if b"\\u0000" in data:
            _refuse_nul(row, "row")
        return row, key

    def _by_rows(self, page: Page) -> Decoded:
        """The exact way, for a page that the types hold already."""
        quarantined: list[QuarantinedRow] = []
        lines: dict[str, list[list[object]]] = {table.name: [] for table in self._table.all()}
        for position, data in enumerate(rows.split(page), 1):
            try:
                row, key = self._read(data)
            except RowRefused as refused:
                key_read = self._readable_key(data)
                quarantined.append(rows.quarantine(page.number, position, data, str(refused), key_read))
                continue
            _lines(self._table, row, [key], [page.number, position], lines)
        tables = {}
        for table in self._table.all():
            columns = zip(*lines[table.name], strict=True) if lines[table.name] else ([] for _ in table.schema)
            arrays = [pa.array(list(c), f.type) for c, f in zip(columns, table.schema, strict=True)]
            tables[table.name] = pa.Table.from_arrays(arrays, schema=table.schema)
        return Decoded(tables, quarantined, Counter())

    def _readable_key(self, data: bytes) -> str | None:
        try:
            value = rows.parse(data).get(self.record.key)
        except RowRefused:
            return None
        return rows.canonical(value) if isinstance(value, Number) else value if isinstance(value, str) else None

    # --- by columns ------------------------------------------------------------------------------------------------

    def _quick(self, pages: Sequence[Page]) -> Decoded | None:
        """The quick way, for pages that fit the types; None where a check refuses them."""
        if not pages or not self._node.fields or not (text := NdjsonBatch(pages)).is_clean():
            return None
        try:
            return Decoded(self._columnar(text), [], Counter())
        except (
            ColumnarFallback,
            Misfit,
            msgspec.MsgspecError,
            RecursionError,
            pa.ArrowInvalid,
            pa.ArrowNotImplementedError,
        ):
            return None

    def _columnar(self, text: NdjsonBatch) -> dict[str, pa.Table]:
        declared = parse_type(self._node, self.record.key)
        if declared.has_double and not number_texts_survive(text):
            raise ColumnarFallback
        reader = Reader(self._node) if declared.has_raw else None
        items = reader.read(text.pages) if reader is not None else None
        parsed = parse(text, declared.type, "error" if reader is None else "ignore")
        if items is not None and len(items) != len(parsed.rows):
            raise ColumnarFallback
        tables: dict[str, pa.Table] = {}
        self._fill(self._table, parsed.rows, [], parsed.place, reader, items, tables)
        return tables

    def _fill(
        self,
        table: InferredTable,
        values: pa.StructArray,
        places: list[pa.Array],
        place: list[pa.Array],
        reader: Reader | None,
        items: list[msgspec.Struct] | None,
        tables: dict[str, pa.Table],
    ) -> None:
        """A table's columns from its parsed objects, and its children's.

        `places` are the columns before its own; `items` the same objects as `reader` read them, for columns of JSON
        text and of several types.
        """
        columns = []
        for column in table.columns:
            if _has(values.type, column.keys):
                columns.append(_column(column, pc.struct_field(values, list(column.keys))))
            elif reader is not None and items is not None:
                columns.append(reader.column(column, items))
            else:
                raise ColumnarFallback
        if not places:
            key = columns[0]
            if key.null_count or pc.any(pc.equal(key, "")).as_py():
                raise ColumnarFallback
        extra = pa.nulls(len(values), pa.string())
        tables[table.name] = pa.Table.from_arrays([*places, *columns, extra, *place], schema=table.schema)
        for child in table.children:
            lists = pc.struct_field(values, list(child.keys))
            inner = lists.flatten()
            if inner.null_count:
                raise ColumnarFallback
            parents = pc.list_parent_indices(lists)
            lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
            starts = np.cumsum(lengths) - lengths
            position = pa.array(np.arange(1, len(inner) + 1) - np.repeat(starts, lengths), pa.int32())
            below = [column.take(parents) for column in (places or [columns[0]])]
            inner_items = reader.inner(child, items) if reader is not None and items is not None else None
            inner_place = [column.take(parents) for column in place]
            self._fill(child, inner, [*below, position], inner_place, reader, inner_items, tables)


def _has(struct: pa.StructType, keys: tuple[str, ...]) -> bool:
    """Whether a place was declared to the parser."""
    for name in keys:
        index = struct.get_field_index(name)
        if index < 0:
            return False
        struct = struct.field(index).type
    return True


def _column(column: InferredColumn, parsed: pa.Array) -> pa.Array:
    """A parsed column as its table holds it. Raises Refused or ArrowInvalid where a value is of another kind."""
    if column.kind == "json":
        return _json(parsed)
    if pa.types.is_floating(parsed.type) or (column.kind == "bigint" and not column.is_wide):
        # Beyond 53 bits a double does not tell which whole number was written; and a column of integers that holds
        # one cannot become a double later, so it has to be noted.
        bounds = pc.min_max(parsed)
        low, high = bounds["min"].as_py(), bounds["max"].as_py()
        if low is not None and not (low >= -DOUBLE_EXACT and high <= DOUBLE_EXACT):
            raise ColumnarFallback
        if pa.types.is_floating(parsed.type) and pc.any(pc.is_nan(parsed)).as_py():
            raise ColumnarFallback
    return pc.cast(parsed, ARROW[column.kind])


def _json(parsed: pa.Array) -> pa.Array:
    """Arrays of texts or of numbers, and objects and arrays that are always empty, as JSON text."""
    if pa.types.is_struct(parsed.type):
        return pc.if_else(pc.is_valid(parsed), "{}", pa.scalar(None, pa.string()))
    items = parsed.flatten()
    if items.null_count or (pa.types.is_null(items.type) and len(items)):
        raise ColumnarFallback
    if pa.types.is_null(items.type):
        return pc.if_else(pc.is_valid(parsed), "[]", pa.scalar(None, pa.string()))
    quote = '"' if pa.types.is_string(items.type) else ""
    if quote and pc.any(pc.match_substring_regex(items, _PLAIN_TEXT)).as_py():
        raise ColumnarFallback
    texts = parsed if quote else pc.cast(parsed, pa.list_(pa.string()))
    if pa.types.is_floating(items.type) and pc.any(pc.match_substring_regex(texts.flatten(), _NOT_PLAIN)).as_py():
        raise ColumnarFallback
    joined = pc.binary_join_element_wise(f"[{quote}", pc.binary_join(texts, f"{quote},{quote}"), f"{quote}]", "")
    return pc.if_else(pc.equal(pc.list_value_length(parsed), 0), "[]", joined)


def _lines(
    table: InferredTable,
    item: dict[str, object],
    places: list[object],
    place: list[object],
    lines: dict[str, list[list[object]]],
) -> None:
    """A parsed object's line in its table, and those of the objects in it."""
    own = [coerce(column.kind, _at(item, column.keys)) for column in table.columns]
    lines[table.name].append([*(places if table.keys else ()), *own, None, *place])
    for child in table.children:
        inner = _at(item, child.keys)
        for n, below in enumerate(inner if isinstance(inner, list) else [], 1):
            _lines(child, below, [*places, n], place, lines)


def _at(item: dict[str, object], keys: tuple[str, ...]) -> object:
    value: object = item
    for name in keys:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def _refuse_nul(value: object, path: str) -> None:
    """Raises RowRefused where a text holds a NUL, which warehouses other than DuckDB refuse, and with it the load."""
    if isinstance(value, str) and "\0" in value:
        raise RowRefused(f"{path}: a NUL character")
    if isinstance(value, dict):
        for name, inner in value.items():
            _refuse_nul(name, path)
            _refuse_nul(inner, name if path == "row" else f"{path}.{name}")
    elif isinstance(value, list):
        for inner in value:
            _refuse_nul(inner, f"{path}[]")
