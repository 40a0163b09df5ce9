"""Documented records, one row at a time: the exact path, which defines what the columnar one may do.

In: a page that a columnar check rejected. Out: the columns of `table_schema`, and each row that cannot be loaded with
the field and the types that are in the way. An optional text or date of another type does not cost its row: it is kept
as text or null, and `_extra` has the original.
"""

from __future__ import annotations

import re
from collections import Counter
from datetime import date
from decimal import Decimal
from typing import Final

import pyarrow as pa

from sources.contract import Field
from sources.decode import rows
from sources.decode.rows import Decoded, InvalidRow, Number, Page, QuarantinedRow
from sources.decode.table_schema import (
    ABSENT,
    DECIMAL,
    MISTYPED,
    UNKNOWN,
    ChildTable,
    TableSchema,
    schema_of,
    tables_from_lines,
)

_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DECIMAL: Final = re.compile(r"-?[0-9]{1,29}(\.[0-9]+)?")
_EXPECTED: Final = {"text": "string", "date": "date YYYY-MM-DD", "decimal_text": "decimal"}
"""Types in the words of a reason, where these are not the contract's own."""

Object = dict[str, object]


def by_rows(tables: TableSchema, page: Page) -> Decoded:
    """Decodes any page. Raises ContractBroken if it is not a JSON array."""
    observations: Counter[tuple[str, str]] = Counter()
    quarantined: list[QuarantinedRow] = []
    lines: dict[str, list[list[object]]] = {name: [] for name in schema_of(tables.record)}
    for place, data in rows.places([page]):
        key: str | None = None
        try:
            row = rows.parse(data)
            key = rows.readable_identifier(row, tables.record.key)
            reader = _RowReader(tables, row, data, place)
        except InvalidRow as reason:
            quarantined.append(rows.quarantine(place, data, reason, key))
            continue
        for name, table_lines in reader.lines.items():
            lines[name] += table_lines
        observations.update(reader.observations)
    return Decoded(tables_from_lines(lines, schema_of(tables.record)), quarantined, observations)


class _RowReader:
    """The lines of one row in each table, and what it shows. Raises InvalidRow."""

    def __init__(self, tables: TableSchema, row: Object, data: bytes, place: tuple[int, int]) -> None:
        record = tables.record
        self.observations: Counter[tuple[str, str]] = Counter()
        self._place = place
        key = rows.identifier(row, record.key)
        values, mistyped = self._values(tables.scalars, row, record.name, "")
        is_plain = not tables.children and not mistyped and row.keys() <= tables.known
        raw = {} if is_plain else rows.fields(data)
        self.lines = {record.name: [[*values, rows.extra_fields(raw, tables.known - mistyped), *place]]}
        self.observations.update((f"{record.name}: {UNKNOWN}", name) for name in row if name not in tables.known)
        for child in tables.children:
            self.lines[child.name] = self._child_lines(child, row.get(child.field.name), raw, key)

    def _values(self, fields: tuple[Field, ...], item: Object, table: str, path: str) -> tuple[list[object], set[str]]:
        """The values of an object's fields, and the names of those that are not of the interface's type."""
        values: list[object] = []
        mistyped: set[str] = set()
        for field in fields:
            value = item.get(field.name)
            if value is None:
                values.append(None)
                if field.required:
                    self.observations[f"{table}.{field.name}: {ABSENT}", ""] += 1
                continue
            read, is_exact = read_value(field, value, path + field.name)
            values.append(read)
            if not is_exact:
                mistyped.add(field.name)
                self.observations[f"{table}.{field.name}: {MISTYPED}", rows.kind(value)] += 1
        return values, mistyped

    def _child_lines(self, child: ChildTable, items: object, raw: dict[str, bytes], key: str) -> list[list[object]]:
        name = child.field.name
        if items is None:
            return []
        if not isinstance(items, list):
            raise InvalidRow(f"{name}: expected array, found {rows.kind(items)}")
        item_bytes = rows.split(Page(self._place[0], raw[name])) if items else []
        lines: list[list[object]] = []
        for n, item in enumerate(items):
            if not isinstance(item, dict):
                raise InvalidRow(f"{name}[]: expected object, found {rows.kind(item)}")
            values, mistyped = self._values(child.field.fields, item, child.name, f"{name}[].")
            is_plain = not mistyped and item.keys() <= child.known
            extra = None if is_plain else rows.extra_fields(rows.fields(item_bytes[n]), child.known - mistyped)
            lines.append([key, n + 1, *values, extra, *self._place])
            self.observations.update((f"{child.name}: {UNKNOWN}", inner) for inner in item if inner not in child.known)
        return lines


def read_value(field: Field, value: object, path: str) -> tuple[object, bool]:
    """A value that is not null as its column holds it, and whether it is of the interface's type.

    Raises:
        InvalidRow: it is not, and neither a number for a text nor a string for an optional date.
    """
    if isinstance(value, Number):
        match field.type:
            case "text":
                return rows.canonical(value) or str(value), False
            case "identifier":
                if (canonical := rows.canonical(value)) is None:
                    raise InvalidRow(f"{path}: a number too long for an identifier")
                return canonical, True
            case "integer":
                if (whole := rows.integer(value)) is None:
                    raise InvalidRow(f"{path}: expected integer, found a number with a fraction or beyond 64 bits")
                return whole, True
            case "decimal_text":
                return _decimal(value, path), True
    elif isinstance(value, str):
        if "\0" in value:
            # One NUL fails the whole load of databases other than DuckDB.
            raise InvalidRow(f"{path}: a NUL character")
        match field.type:
            case "text" | "identifier":
                return value, True
            case "decimal_text":
                return _decimal(value, path), True
            case "date":
                day = _date(value)
                if day is None and field.required:
                    raise InvalidRow(f"{path}: expected date YYYY-MM-DD, found another string")
                return day, day is not None
    elif isinstance(value, bool) and field.type == "boolean":
        return value, True
    raise InvalidRow(f"{path}: expected {_EXPECTED.get(field.type, field.type)}, found {rows.kind(value)}")


def _date(value: str) -> date | None:
    if not _DATE.fullmatch(value):
        return None
    try:
        return date.fromisoformat(value)
    except ValueError:
        return None


def _decimal(value: str, path: str) -> object:
    number: Decimal | None = None
    if isinstance(value, Number):
        number = rows.exact(value)
    elif _DECIMAL.fullmatch(value):
        number = Decimal(value)
    if number is None:
        raise InvalidRow(f"{path}: expected decimal, found another {rows.kind(value)}")
    try:
        return pa.scalar(number, DECIMAL).as_py()
    except pa.ArrowInvalid:
        raise InvalidRow(f"{path}: expected decimal, found more than 9 decimals or 29 digits") from None
