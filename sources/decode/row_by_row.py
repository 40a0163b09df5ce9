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
from sources.decode.rows import Decoded, InvalidRow, Number, Page
from sources.decode.table_schema import ABSENT, DECIMAL, MISTYPED, UNKNOWN, TableSchema, tables_from_lines

_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DECIMAL: Final = re.compile(r"-?[0-9]{1,29}(\.[0-9]+)?")
_EXPECTED: Final = {"text": "string", "date": "date YYYY-MM-DD", "decimal_text": "decimal"}
"""Types in the words of a reason, where these are not the contract's own."""

_Object = dict[str, object]


def by_rows(table: TableSchema, page: Page) -> Decoded:
    """Decodes any page. Raises ContractBroken if it is not a JSON array."""
    observations: Counter[tuple[str, str]] = Counter()
    schemas = {each.name: each.schema for each in (table, *table.children)}
    lines: dict[str, list[list[object]]] = {name: [] for name in schemas}

    def take(row: _Object, data: bytes, key: str, place: tuple[int, int]) -> None:
        reader = _RowReader(key, place)
        reader.add(table, row, data, [])
        for name, line in reader.lines:
            lines[name].append(line)
        observations.update(reader.observations)

    quarantined = rows.read_rows([page], table.key, take)
    return Decoded(tables_from_lines(lines, schemas), quarantined, observations)


class _RowReader:
    """The lines of one row with their tables, and what it shows."""

    def __init__(self, key: str, place: tuple[int, int]) -> None:
        self.lines: list[tuple[str, list[object]]] = []
        self.observations: Counter[tuple[str, str]] = Counter()
        self._key, self._place = key, place

    def add(self, table: TableSchema, item: _Object, data: bytes, places: list[object], path: str = "") -> None:
        """Adds the lines of an object and of those in its arrays. Raises InvalidRow.

        Args:
            table: of the object.
            item: its values.
            data: its bytes.
            places: the values before those of its fields.
            path: of the object in its row, to be followed by the name of a field.
        """
        values, mistyped = self._values(table, item, path)
        is_plain = not table.children and not mistyped and item.keys() <= table.known
        raw = {} if is_plain else rows.fields(data)
        extra = rows.extra_fields(raw, table.known - mistyped)
        self.lines.append((table.name, [*places, *values, extra, *self._place]))
        self.observations.update((f"{table.name}: {UNKNOWN}", name) for name in item if name not in table.known)
        for child in table.children:
            name = child.array
            items = item.get(name)
            if items is None:
                continue
            if not isinstance(items, list):
                raise InvalidRow(f"{name}: expected array, found {rows.kind(items)}")
            parts = rows.split(Page(self._place[0], raw[name]))
            for n, (inner, part) in enumerate(zip(items, parts, strict=True), 1):
                if not isinstance(inner, dict):
                    raise InvalidRow(f"{name}[]: expected object, found {rows.kind(inner)}")
                self.add(child, inner, part, [self._key, n], f"{name}[].")

    def _values(self, table: TableSchema, item: _Object, path: str) -> tuple[list[object], set[str]]:
        """The values of an object's fields, and the names of those that are not of the interface's type."""
        values: list[object] = []
        mistyped: set[str] = set()
        for field in table.fields:
            value = item.get(field.name)
            if value is None:
                values.append(None)
                if field.required:
                    self.observations[f"{table.name}.{field.name}: {ABSENT}", ""] += 1
                continue
            read, is_exact = read_value(field, value, path + field.name)
            values.append(read)
            if not is_exact:
                mistyped.add(field.name)
                self.observations[f"{table.name}.{field.name}: {MISTYPED}", rows.kind(value)] += 1
        return values, mistyped


def read_value(field: Field, value: object, path: str) -> tuple[object, bool]:
    """A value that is not null as its column holds it, and whether it is of the interface's type.

    Raises:
        InvalidRow: it is not, and neither a number for a text nor a string for a date.
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
            case "decimal_text" | "number":
                return _decimal(value, path), True
    elif isinstance(value, str):
        if "\0" in value:
            # One NUL fails the whole load of databases other than DuckDB.
            raise InvalidRow(f"{path}: a NUL character")
        match field.type:
            case "text" | "identifier":
                return value, True
            case "decimal_text" | "number":
                return _decimal(value, path), True
            case "date":
                day = _date(value)
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
