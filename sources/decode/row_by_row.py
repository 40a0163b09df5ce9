"""Rows of records that the interface describes, one at a time: the exact way, and the measure of the quick one.

In: a page that a columnar check refused. Out: the columns of `table_schema`, and each row that cannot be loaded with
the field and the types that were in the way.
"""

from __future__ import annotations

import re
from collections import Counter
from datetime import date
from decimal import Decimal
from typing import Final

import pyarrow as pa

from sources.contract import Field, Record
from sources.decode import rows
from sources.decode.rows import Decoded, Number, Page, QuarantinedRow, RowRefused
from sources.decode.table_schema import ABSENT, DECIMAL, UNKNOWN, TableSchema, schema_of

_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DECIMAL: Final = re.compile(r"-?[0-9]{1,29}(\.[0-9]+)?")


def by_rows(plan: TableSchema, page: Page) -> Decoded:
    """The exact way, for any page."""
    observed: Counter[tuple[str, str]] = Counter()
    quarantined: list[QuarantinedRow] = []
    columns: dict[str, list[list[object]]] = {plan.record.name: []}
    columns.update({child.table: [] for child in plan.children})
    for position, data in enumerate(rows.split(page), 1):
        key: str | None = None
        try:
            row = rows.parse(data)
            key = _readable_key(plan.record, row)
            read = _row(plan, row, data, (page.number, position))
        except RowRefused as refused:
            quarantined.append(rows.quarantine(page.number, position, data, str(refused), key))
            continue
        for name, lines in read.items():
            columns[name].extend(lines)
        observed.update(_observe(plan, row))
    tables = {name: _table(columns[name], schema) for name, schema in schema_of(plan.record).items()}
    return Decoded(tables, quarantined, observed)


def _table(lines: list[list[object]], schema: pa.Schema) -> pa.Table:
    columns = zip(*lines, strict=True) if lines else ([] for _ in schema)
    arrays = [pa.array(list(column), field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def _readable_key(record: Record, row: dict[str, object]) -> str | None:
    value = row.get(record.key)
    return rows.canonical(value) if isinstance(value, Number) else value if isinstance(value, str) else None


def _row(
    plan: TableSchema, row: dict[str, object], data: bytes, place: tuple[int, int]
) -> dict[str, list[list[object]]]:
    """One row's line, and its children's, by table."""
    key = row.get(plan.record.key)
    if key is None or key == "":
        found = "empty string" if key == "" else "null" if plan.record.key in row else "nothing"
        raise RowRefused(f"{plan.record.key}: expected an identifier, found {found}")
    values = [value_of(f, row.get(f.name), f.name) for f in plan.scalars]
    identifier = values[next(n for n, f in enumerate(plan.scalars) if f.name == plan.record.key)]
    raw = rows.fields(data) if plan.children or not row.keys() <= plan.known else {}
    lines = {plan.record.name: [[*values, rows.fields_beside(raw, plan.known), *place]]}
    for child in plan.children:
        found_items = row.get(child.field.name)
        items = [] if found_items is None else found_items
        if not isinstance(items, list):
            raise RowRefused(f"{child.field.name}: expected array, found {rows.kind(items)}")
        child_lines: list[list[object]] = []
        extras = rows.split(Page(place[0], raw[child.field.name])) if items else []
        for n, item in enumerate(items):
            path = f"{child.field.name}[]"
            if not isinstance(item, dict):
                raise RowRefused(f"{path}: expected object, found {rows.kind(item)}")
            inner = [value_of(f, item.get(f.name), f"{path}.{f.name}") for f in child.field.fields]
            beside = None if item.keys() <= child.known else rows.fields_beside(rows.fields(extras[n]), child.known)
            child_lines.append([identifier, n + 1, *inner, beside, *place])
        lines[child.table] = child_lines
    return lines


def _observe(plan: TableSchema, row: dict[str, object]) -> Counter[tuple[str, str]]:
    name = plan.record.name
    observed = Counter(
        {(f"{name}.{f.name}: {ABSENT}", ""): 1 for f in plan.scalars if f.required and not_given(f, row)}
    )
    observed.update((f"{name}: {UNKNOWN}", n) for n in row if n not in plan.known)
    for child in plan.children:
        items = row.get(child.field.name)
        for item in items if isinstance(items, list) else []:
            observed.update((f"{child.table}: {UNKNOWN}", n) for n in item if n not in child.known)
    return observed


def not_given(field: Field, row: dict[str, object]) -> bool:
    """Whether a field is absent or null: columns do not tell the two apart, so neither does this."""
    return row.get(field.name) is None


def value_of(field: Field, value: object, path: str) -> object:
    """A parsed value as its column holds it.

    Raises:
        RowRefused: it is not of the field's type.
    """
    if value is None:
        return None
    if isinstance(value, str) and not isinstance(value, Number) and "\0" in value:
        # Warehouses other than DuckDB refuse a NUL in a text; one row of it would fail the whole load.
        raise RowRefused(f"{path}: a NUL character")
    read = _READERS[field.type](value, path)
    if read is None:
        raise RowRefused(f"{path}: expected {_WORDS[field.type]}, found {rows.kind(value)}")
    return read


def _identifier(value: object, path: str) -> object:
    if isinstance(value, Number):
        text = rows.canonical(value)
        if text is None:
            raise RowRefused(f"{path}: a number too long for an identifier")
        return text
    return value if isinstance(value, str) else None


def _text(value: object, path: str) -> object:
    return value if isinstance(value, str) and not isinstance(value, Number) else None


def _integer(value: object, path: str) -> object:
    if not isinstance(value, Number):
        return None
    whole = rows.integer(value)
    if whole is None:
        raise RowRefused(f"{path}: expected integer, found a number with a fraction or beyond 64 bits")
    return whole


def _boolean(value: object, path: str) -> object:
    return value if isinstance(value, bool) else None


def _date(value: object, path: str) -> object:
    if not isinstance(value, str) or isinstance(value, Number):
        return None
    if not _DATE.fullmatch(value):
        raise RowRefused(f"{path}: expected date YYYY-MM-DD, found another string")
    try:
        return date.fromisoformat(value)
    except ValueError:
        raise RowRefused(f"{path}: expected date YYYY-MM-DD, found a day that is not") from None


def _decimal(value: object, path: str) -> object:
    if isinstance(value, Number):
        number = rows.exact(value)
    elif isinstance(value, str):
        number = Decimal(value) if _DECIMAL.fullmatch(value) else None
    else:
        return None
    if number is None:
        raise RowRefused(f"{path}: expected decimal, found a {rows.kind(value)} that is none")
    try:
        return pa.scalar(number, DECIMAL).as_py()
    except pa.ArrowInvalid:
        raise RowRefused(f"{path}: expected decimal, found more than 9 decimals or 29 digits") from None


_READERS: Final = {
    "identifier": _identifier,
    "text": _text,
    "integer": _integer,
    "boolean": _boolean,
    "date": _date,
    "decimal_text": _decimal,
}
_WORDS: Final = {
    "identifier": "identifier",
    "text": "string",
    "integer": "integer",
    "boolean": "boolean",
    "date": "date YYYY-MM-DD",
    "decimal_text": "decimal",
}
