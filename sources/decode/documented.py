"""Documented records: pages to Arrow tables.

In: pages of JSON rows. Out: one table per record and per array of objects in it, with the columns of the contract,
the rows that cannot be loaded, and what the interface does not show. A batch of pages is parsed at once by
`pyarrow.json`, outside the interpreter's lock, and checked by column. A batch that fails a check is tried page by page,
and a page that fails is read row by row (`row_by_row`). All three give the same columns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sources.contract import Field, Record
from sources.decode.extra_fields import read_extra_fields
from sources.decode.ndjson import ColumnarFallback, NdjsonBatch, has_empty, parse, positions
from sources.decode.row_by_row import by_rows
from sources.decode.rows import Decoded, Page
from sources.decode.table_schema import ABSENT, DECIMAL, MISTYPED, UNKNOWN, TableSchema, merged, schema_of, table_schema

_RawRows = list[dict[str, msgspec.Raw]]
_raw_rows_decoder: Final = msgspec.json.Decoder(_RawRows)
_PLAIN_DECIMAL: Final = r"^-?[0-9]{1,29}(\.[0-9]{1,9})?$"
_DATE: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_MISTYPED_SETS_MAX: Final = 4
"""Different sets of mistyped fields in one batch: each costs a pass over its bytes."""


def decode(record: Record, pages: Sequence[Page]) -> Decoded:
    """Decodes pages: each row is in the tables of `schema_of` or quarantined.

    Raises:
        ContractBroken: a page is not a JSON array.
    """
    tables = table_schema(record)
    whole = columnar(tables, pages)
    parts = [whole] if whole else [columnar(tables, [page]) or by_rows(tables, page) for page in pages]
    return merged(parts, schema_of(record))


def columnar(tables: TableSchema, pages: Sequence[Page]) -> Decoded | None:
    """The fast path, for clean pages; None if a check fails."""
    if not pages or not (text := NdjsonBatch(pages)).is_clean():
        return None
    try:
        return _Columnar(tables, text).decoded()
    except (ColumnarFallback, msgspec.MsgspecError, RecursionError, pa.ArrowInvalid):
        return None


@dataclass(slots=True)
class _Columns:
    """Columns of one table before `_extra` is known; `mistyped`: where a field's original belongs into `_extra`."""

    arrays: list[pa.Array] = field(default_factory=list)
    mistyped: dict[str, pa.Array] = field(default_factory=dict)


class _Columnar:
    """One batch, by column. Raises ColumnarFallback, or Arrow's or msgspec's own error, where a check fails."""

    def __init__(self, tables: TableSchema, text: NdjsonBatch) -> None:
        self._tables = tables
        self._observations: Counter[tuple[str, str]] = Counter()
        self._read_extra = lru_cache(maxsize=None)(partial(read_extra_fields, text.pages))
        first = _raw_rows_decoder.decode(text.pages[0].rows)
        declared = _declared_type(tables, first)
        # Where the first page has fields without a column, the strict attempt would fail.
        names = frozenset().union(*first) - tables.known
        parsed = None
        if not names:
            try:
                parsed = parse(text, declared, "error")
            except pa.ArrowInvalid as error:
                if "unexpected field" not in str(error):
                    raise
        if parsed is None:
            # msgspec first: it limits the depth, which the inferring parser does not. That one in turn finds repeated
            # names, and every name.
            self._read_extra(names, None)
            parsed = parse(text, declared, "infer")
        self._rows, self._place = parsed.rows, parsed.place

    def decoded(self) -> Decoded:
        """The tables of the batch."""
        tables, name = self._tables, self._tables.record.name
        columns = self._read(tables.scalars, self._rows, name)
        key = columns.arrays[[f.name for f in tables.scalars].index(tables.record.key)]
        if key.null_count or has_empty(key):
            raise ColumnarFallback
        for f, column in zip(tables.scalars, columns.arrays, strict=True):
            if f.required and (absent := column.null_count):
                self._observations[f"{name}.{f.name}: {ABSENT}", ""] = absent
        extra = self._extra(name, self._rows, columns, tables.known, None)
        result = {name: pa.Table.from_arrays([*columns.arrays, extra, *self._place], schema=tables.schema)}
        for child in tables.children:
            lists = self._rows.field(child.field.name)
            items = lists.flatten()
            if items.null_count:
                raise ColumnarFallback
            parents = pc.list_parent_indices(lists)
            columns = self._read(child.field.fields, items, child.name)
            extra = self._extra(child.name, items, columns, child.known, child.field.name)
            result[child.name] = pa.Table.from_arrays(
                [
                    key.take(parents),
                    positions(parents),
                    *columns.arrays,
                    extra,
                    *(column.take(parents) for column in self._place),
                ],
                schema=child.schema,
            )
        return Decoded(result, [], self._observations)

    def _read(self, fields: Sequence[Field], items: pa.StructArray, table: str) -> _Columns:
        columns = _Columns()
        for f in fields:
            column, mistyped = _column(f, items.field(f.name))
            columns.arrays.append(column)
            if mistyped is not None and (count := pc.sum(mistyped).as_py()):
                columns.mistyped[f.name] = mistyped
                kind = "number" if f.type == "text" else "string"
                self._observations[f"{table}.{f.name}: {MISTYPED}", kind] = count
        return columns

    def _extra(
        self, table: str, items: pa.StructArray, columns: _Columns, known: frozenset[str], array: str | None
    ) -> pa.Array:
        """`_extra`: fields without a column, and the originals of those that are not of the interface's type."""
        names = frozenset(items.type.names) - known
        texts = pa.nulls(len(items), pa.string())
        if names:
            extra = self._read_extra(names, array)
            self._observations.update({(f"{table}: {UNKNOWN}", name): count for name, count in extra.counts.items()})
            texts = extra.texts
        if columns.mistyped:
            flags = np.column_stack([mask.to_numpy(zero_copy_only=False) for mask in columns.mistyped.values()])
            sets = {tuple(row) for row in np.unique(flags, axis=0)}
            if len(sets) > _MISTYPED_SETS_MAX:
                raise ColumnarFallback
            for chosen in sets:
                fields = frozenset(f for f, is_chosen in zip(columns.mistyped, chosen, strict=True) if is_chosen)
                if fields:
                    extra = self._read_extra(names | fields, array)
                    texts = pc.if_else(pa.array((flags == chosen).all(axis=1)), extra.texts, texts)
        if len(texts) != len(items):
            raise ColumnarFallback
        return texts


def _declared_type(tables: TableSchema, first: _RawRows) -> pa.StructType:
    """The type to parse with: strings or numbers as on the first page; dates and decimals as strings."""
    children = [
        (child.field.name, pa.list_(pa.struct([(f.name, _parse_type(f, [])) for f in child.field.fields])))
        for child in tables.children
    ]
    return pa.struct([(f.name, _parse_type(f, first)) for f in tables.scalars] + children)


def _parse_type(field: Field, first: _RawRows) -> pa.DataType:
    if field.type == "integer":
        return pa.int64()
    if field.type == "boolean":
        return pa.bool_()
    is_number = field.type == "identifier" and field.json != "string"
    if field.type in ("identifier", "text"):
        values = (bytes(row[field.name])[:1] for row in first if field.name in row)
        is_number = next((value != b'"' for value in values if value != b"n"), is_number)
    return pa.int64() if is_number else pa.string()


def _column(field: Field, parsed: pa.Array) -> tuple[pa.Array, pa.Array | None]:
    """A column of the table, and where the value is not of the interface's type; None if it always is.

    Raises:
        ColumnarFallback, pyarrow.ArrowInvalid: a value that only the row-by-row path reads.
    """
    if field.type == "identifier":
        return pc.cast(parsed, pa.string()), None
    if field.type == "text" and pa.types.is_integer(parsed.type):
        return pc.cast(parsed, pa.string()), pc.is_valid(parsed)
    if field.type == "date":
        return _dates(parsed, bool(field.required))
    if field.type == "decimal_text":
        if pc.any(pc.invert(pc.match_substring_regex(parsed, _PLAIN_DECIMAL))).as_py():
            raise ColumnarFallback
        return pc.cast(parsed, DECIMAL), None
    return parsed, None


def _dates(parsed: pa.Array, is_required: bool) -> tuple[pa.Array, pa.Array | None]:
    has_form = pc.and_(pc.match_substring_regex(parsed, _DATE), pc.invert(pc.starts_with(parsed, "0000")))
    if pc.all(has_form, min_count=0).as_py():
        return pc.cast(parsed, pa.date32()), None  # raises for a day that does not exist
    if is_required:
        raise ColumnarFallback
    other = pc.fill_null(pc.invert(has_form), False)
    return pc.cast(pc.if_else(other, pa.scalar(None, pa.string()), parsed), pa.date32()), other
