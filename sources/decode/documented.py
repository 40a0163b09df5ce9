"""Documented records: pages to Arrow tables.

In: pages of JSON rows. Out: one table per record and per array of objects in it, with the columns of the contract,
the rows that cannot be loaded, and what the interface does not show. A batch of pages is parsed at once by
`pyarrow.json`, outside the interpreter's lock, and checked by column. A batch that fails a check is tried page by page,
and a page that fails is read row by row (`by_rows`), as are all pages of a record with an object. All three give the
same columns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from orderbridge.sources.contract import Field, Record
from orderbridge.sources.decode.documented_rows import by_rows
from orderbridge.sources.decode.extra_fields import read_extra_fields
from orderbridge.sources.decode.json_text import has_odd_decimals, json_texts
from orderbridge.sources.decode.ndjson import (
    ColumnarFallback,
    NdjsonBatch,
    attempted,
    has_blank,
    items_of,
    parse,
    positions,
)
from orderbridge.sources.decode.rows import Decoded, Page
from orderbridge.sources.decode.table_schema import (
    ABSENT,
    DECIMAL,
    MISTYPED,
    TYPES,
    UNKNOWN,
    TableSchema,
    merged,
    schema_of,
    table_schema,
)

_PLAIN_DECIMAL: Final = r"^-?[0-9]{1,29}(\.[0-9]{1,9})?$"
_DATE: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_Items = list[dict[str, msgspec.Raw]]
_rows_decoder: Final = msgspec.json.Decoder(_Items)


def decode(record: Record, pages: Sequence[Page]) -> Decoded:
    """Decodes pages: each row is in the tables of `schema_of` or quarantined.

    Raises:
        ContractBroken: a page is not a JSON array.
    """
    table = table_schema(record)
    if whole := columnar(table, pages):
        parts = [whole]
    else:
        parts = [columnar(table, [page]) or by_rows(table, page) for page in pages]
    return merged(parts, schema_of(record))


def columnar(table: TableSchema, pages: Sequence[Page]) -> Decoded | None:
    """The fast path, for clean pages; None if a check fails."""
    return attempted(pages, lambda text: _Columnar(table, text).decoded())


class _Columnar:
    """One batch, by column. Raises ColumnarFallback, or Arrow's or msgspec's own error, where a check fails."""

    def __init__(self, table: TableSchema, text: NdjsonBatch) -> None:
        self._table = table
        self._observations: Counter[tuple[str, str]] = Counter()
        self._pages = text.pages
        fields = [f for each in (table, *table.children) for f in each.fields]
        numbers = frozenset(f.name for f in fields if "number" in (f.type, f.items))
        if any(f.type == "object" for f in fields) or has_odd_decimals(text, numbers):
            raise ColumnarFallback
        first = _rows_decoder.decode(text.pages[0].rows)
        declared = _declared_type(table, first)
        parsed = None
        self._names = frozenset().union(*first) - table.known
        if not self._names:  # else the strict attempt would fail
            try:
                parsed = parse(text, declared, "error")
            except pa.ArrowInvalid as error:
                if "unexpected field" not in str(error):
                    raise
        if parsed is None:
            # msgspec first: it limits the depth, which the inferring parser does not. That one in turn finds repeated
            # names, and every name.
            self._extra = read_extra_fields(text.pages, self._names)
            parsed = parse(text, declared, "infer")
        self._rows, self._place = parsed.rows, parsed.place

    def decoded(self) -> Decoded:
        """The tables of the batch."""
        table = self._table
        columns = self._columns(table, self._rows)
        key = columns[[f.name for f in table.fields].index(table.key)]
        if key.null_count or has_blank(key):
            raise ColumnarFallback
        result = {table.name: pa.Table.from_arrays([*columns, *self._place], schema=table.schema)}
        for child in table.children:
            items, parents = items_of(self._rows.field(child.array))
            places = [key.take(parents), positions(parents)]
            place = [column.take(parents) for column in self._place]
            columns = self._columns(child, items)
            result[child.name] = pa.Table.from_arrays(
                [*places, *columns, *place], schema=child.schema
            )
        return Decoded(result, [], self._observations)

    def _columns(self, table: TableSchema, items: pa.StructArray) -> list[pa.Array]:
        """The columns of the fields, and `_extra`: fields without a column, and originals of mistyped ones."""
        columns: list[pa.Array] = []
        mistyped: dict[str, pa.Array] = {}
        for f in table.fields:
            column, is_mistyped = _column(f, items.field(f.name))
            columns.append(column)
            if f.required and (absent := column.null_count):
                self._observations[f"{table.name}.{f.name}: {ABSENT}", ""] = absent
            if is_mistyped is not None and (count := pc.sum(is_mistyped).as_py()):
                mistyped[f.name] = is_mistyped
                kind = "number" if f.type == "text" else "string"
                self._observations[f"{table.name}.{f.name}: {MISTYPED}", kind] = count
        names = frozenset(items.type.names) - table.known
        if not (names or mistyped):
            return [*columns, pa.nulls(len(items), pa.string())]
        if table is self._table and names == self._names and not mistyped:
            texts, counts = self._extra
        else:
            texts, counts = read_extra_fields(
                self._pages, names.union(mistyped), table.array, mistyped
            )
        self._observations.update(
            {(f"{table.name}: {UNKNOWN}", name): counts[name] for name in names & counts.keys()}
        )
        if len(texts) != len(items):
            raise ColumnarFallback
        return [*columns, texts]


def _declared_type(table: TableSchema, first: _Items) -> pa.StructType:
    """The type to parse with: strings or numbers as on the first page; dates and decimals as strings."""
    children = [(child.array, pa.list_(_declared_type(child, []))) for child in table.children]
    return pa.struct([*((f.name, _parse_type(f, first)) for f in table.fields), *children])


def _parse_type(field: Field, first: _Items) -> pa.DataType:
    if field.items is not None:
        return pa.list_(_parse_type(Field(field.name, field.items), first))
    if field.type == "integer":
        return pa.int64()
    if field.type in ("boolean", "number"):
        return TYPES[field.type]
    is_number = field.type == "identifier" and field.json != "string"
    if field.type in ("identifier", "text"):
        values = (bytes(row[field.name]).lstrip(b"[ ")[:1] for row in first if field.name in row)
        is_number = next(
            (value != b'"' for value in values if value not in (b"n", b"]")), is_number
        )
    return pa.int64() if is_number else pa.string()


def _column(field: Field, parsed: pa.Array) -> tuple[pa.Array, pa.Array | None]:
    """A column of the table, and where the value is not of the interface's type; None if it always is.

    Raises:
        ColumnarFallback, pyarrow.ArrowInvalid: a value that only the row-by-row path reads.
    """
    if field.type == "array":
        return json_texts(parsed), None
    if field.type == "identifier":
        return pc.cast(parsed, pa.string()), None
    if field.type == "text" and pa.types.is_integer(parsed.type):
        return pc.cast(parsed, pa.string()), pc.is_valid(parsed)
    if field.type == "date":
        return _dates(parsed)
    if field.type == "decimal_text":
        if pc.any(pc.invert(pc.match_substring_regex(parsed, _PLAIN_DECIMAL))).as_py():
            raise ColumnarFallback
        return pc.cast(parsed, DECIMAL), None
    return parsed, None


def _dates(parsed: pa.Array) -> tuple[pa.Array, pa.Array | None]:
    has_form = pc.and_(
        pc.match_substring_regex(parsed, _DATE), pc.invert(pc.starts_with(parsed, "0000"))
    )
    if pc.all(has_form, min_count=0).as_py():
        return pc.cast(parsed, pa.date32()), None  # raises for a day that does not exist
    other = pc.fill_null(pc.invert(has_form), False)
    return pc.cast(pc.if_else(other, pa.scalar(None, pa.string()), parsed), pa.date32()), other
