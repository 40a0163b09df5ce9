"""Pages of records that the interface describes, as Arrow tables.

In: pages of JSON rows, as bytes. Out: one table per record and per array of objects in it, columns declared by the
contract (design §6), the rows that cannot be loaded with their reasons, and what was observed beside the contract.
A batch of pages is parsed at once by `pyarrow.json`, outside the interpreter's lock, and checked by columns; a batch
that a check refuses is tried page by page, and a page that is refused too is read row by row (`row_by_row`). All
three give the same columns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sources.contract import Field, Record
from sources.decode.extra_fields import ExtraFields, read_beside
from sources.decode.ndjson import ColumnarFallback, NdjsonBatch, parse
from sources.decode.row_by_row import by_rows
from sources.decode.rows import Decoded, Page, QuarantinedRow
from sources.decode.table_schema import ABSENT, DECIMAL, UNKNOWN, Child, TableSchema, schema_of, table_schema

__all__ = ["Decoded", "Page", "QuarantinedRow", "decode", "schema_of"]

_RAW_ROWS: Final = msgspec.json.Decoder(list[dict[str, msgspec.Raw]])
_PLAIN_DECIMAL: Final = r"^-?[0-9]{1,29}(\.[0-9]{1,9})?$"

RawRows = list[dict[str, msgspec.Raw]]


def decode(record: Record, pages: Sequence[Page]) -> Decoded:
    """Turns pages into tables, `schema_of` each; every row is in a table or quarantined.

    Raises:
        ContractBroken: a page is no JSON array.
    """
    plan = table_schema(record)
    done = columnar(plan, pages)
    parts = [done] if done else [columnar(plan, [page]) or by_rows(plan, page) for page in pages]
    observed: Counter[tuple[str, str]] = Counter()
    for part in parts:
        observed.update(part.observations)
    tables = {
        name: pa.concat_tables([schema.empty_table(), *(part.tables[name] for part in parts)])
        for name, schema in schema_of(record).items()
    }
    return Decoded(tables, [row for part in parts for row in part.quarantined], observed)


def columnar(plan: TableSchema, pages: Sequence[Page]) -> Decoded | None:
    """The quick way, for clean pages; None where a check refuses them."""
    if not pages or not (text := NdjsonBatch(pages)).is_clean():
        return None
    try:
        return _columnar(plan, text)
    except (ColumnarFallback, msgspec.MsgspecError, RecursionError, pa.ArrowInvalid):
        return None


def _columnar(plan: TableSchema, text: NdjsonBatch) -> Decoded:
    """As `columnar`. Raises Refused, or Arrow's or msgspec's own error, where a check fails."""
    pages = text.pages
    first = _RAW_ROWS.decode(pages[0].rows)
    declared = _declared(plan, first)
    # The first page tells whether fields beside the contract are to be expected: then the strict try would be in vain.
    parsed = None
    names = frozenset().union(*first) - plan.known
    if not names:
        try:
            parsed = parse(text, declared, "error")
        except pa.ArrowInvalid as error:
            if "unexpected field" not in str(error):
                raise
    beside: ExtraFields | None = None
    if parsed is None:
        # msgspec first: it bounds the nesting, which the inferring parser does not. That one is what finds a name
        # that comes twice, and every name, which this one does not.
        beside = read_beside(pages, names)
        parsed = parse(text, declared, "infer")
        found = frozenset(parsed.rows.type.names) - plan.known
        if found != names:
            beside = read_beside(pages, found)
    lines, place = parsed.rows, parsed.place
    observed: Counter[tuple[str, str]] = Counter()
    name = plan.record.name
    columns = []
    for f in plan.scalars:
        column = _column(f, lines.field(_index(lines, f.name)))
        if f.name == plan.record.key and (column.null_count or pc.any(pc.equal(column, "")).as_py()):
            raise ColumnarFallback
        if f.required and column.null_count:
            observed[f"{name}.{f.name}: {ABSENT}", ""] = column.null_count
        columns.append(column)
    tables = {name: _table(plan.schema, name, columns, beside, place, observed)}
    key = columns[next(n for n, f in enumerate(plan.scalars) if f.name == plan.record.key)]
    for child in plan.children:
        tables[child.table] = _child(child, lines, key, place, pages, observed)
    return Decoded(tables, [], observed)


def _declared(plan: TableSchema, first: RawRows) -> pa.StructType:
    """The types to parse with: identifiers as the first page has them, numbers or texts; dates and decimals as text."""
    return pa.struct(
        [(f.name, _parse_type(f, first)) for f in plan.scalars]
        + [
            (c.field.name, pa.list_(pa.struct([(f.name, _parse_type(f, [])) for f in c.field.fields])))
            for c in plan.children
        ]
    )


def _parse_type(field: Field, first: RawRows) -> pa.DataType:
    if field.type == "integer":
        return pa.int64()
    if field.type == "boolean":
        return pa.bool_()
    if field.type == "identifier":
        for row in first:
            value = bytes(row.get(field.name, b"null"))
            if value != b"null":
                return pa.string() if value[:1] == b'"' else pa.int64()
        return pa.string() if field.json == "string" else pa.int64()
    return pa.string()


def _index(lines: pa.StructArray, name: str) -> int:
    """Where a field is in parsed rows."""
    return int(lines.type.get_field_index(name))


def _column(field: Field, parsed: pa.Array) -> pa.Array:
    """A parsed column as the table holds it. Raises Refused or ArrowInvalid where a value is of another type."""
    if field.type == "identifier":
        return pc.cast(parsed, pa.string())
    if field.type == "date":
        if pc.any(pc.starts_with(parsed, "0000")).as_py():
            raise ColumnarFallback
        return pc.cast(parsed, pa.date32())
    if field.type == "decimal_text":
        if pc.any(pc.invert(pc.match_substring_regex(parsed, _PLAIN_DECIMAL))).as_py():
            raise ColumnarFallback
        return pc.cast(parsed, DECIMAL)
    return parsed


def _table(
    schema: pa.Schema,
    name: str,
    columns: list[pa.Array],
    beside: ExtraFields | None,
    place: list[pa.Array],
    observed: Counter[tuple[str, str]],
) -> pa.Table:
    length = len(place[0])
    extra = pa.nulls(length, pa.string())
    if beside is not None:
        extra = beside.texts
        observed.update({(f"{name}: {UNKNOWN}", field): n for field, n in beside.counts.items()})
    if len(extra) != length:
        raise ColumnarFallback
    return pa.Table.from_arrays([*columns, extra, *place], schema=schema)


def _child(
    child: Child,
    lines: pa.StructArray,
    key: pa.Array,
    place: list[pa.Array],
    pages: Sequence[Page],
    observed: Counter[tuple[str, str]],
) -> pa.Table:
    """The table of an array of objects."""
    lists = lines.field(_index(lines, child.field.name))
    items = lists.flatten()
    if items.null_count:
        raise ColumnarFallback
    parents = pc.list_parent_indices(lists)
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    starts = np.cumsum(lengths) - lengths
    position = pa.array(np.arange(1, len(items) + 1) - np.repeat(starts, lengths), pa.int32())
    columns = [_column(f, items.field(_index(items, f.name))) for f in child.field.fields]
    unknown = frozenset(items.type.names) - child.known
    beside = read_beside(pages, unknown, child.field.name) if unknown else None
    inner_place = [column.take(parents) for column in place]
    return _table(child.schema, child.table, [key.take(parents), position, *columns], beside, inner_place, observed)
