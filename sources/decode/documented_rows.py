"""Documented records, row by row: what no fast path reads, and the measure of what each of them accepts.

In: a page of JSON rows. Out: the same tables as `sources.decode.documented` makes, the rows that cannot be loaded, and
what the interface does not show.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import date
from typing import Final

from orderbridge.sources.contract import Field
from orderbridge.sources.decode.json_numbers import Number, canonical, exact, integer
from orderbridge.sources.decode.json_text import dump
from orderbridge.sources.decode.rows import (
    Decoded,
    InvalidRow,
    Page,
    check_nul,
    kind,
    read_rows,
    split,
    text_of_fields,
)
from orderbridge.sources.decode.rows import fields as fields_of
from orderbridge.sources.decode.table_schema import (
    ABSENT,
    MISTYPED,
    UNKNOWN,
    TableSchema,
    tables_from_lines,
)
from orderbridge.sources.decode.values import round_decimal

_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DECIMAL: Final = re.compile(r"-?[0-9]{1,29}(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?")
_DECIMALS: Final = ("decimal_text", "number")
_EXPECTED: Final = {"text": "string", "date": "date YYYY-MM-DD", "decimal_text": "decimal"}
"""Types in the words of a reason, where these are not the contract's own."""

_Object = dict[str, object]


def by_rows(table: TableSchema, page: Page) -> Decoded:
    """Decodes any page. Raises ContractBroken if it is not a JSON array."""
    observations: Counter[tuple[str, str]] = Counter()
    schemas = {each.name: each.schema for each in (table, *table.children)}
    lines: dict[str, list[list[object]]] = {name: [] for name in schemas}

    def take(row: _Object, data: bytes, key: str, place: tuple[int, int]) -> None:
        shown: Counter[tuple[str, str]] = Counter()
        # all of the row, or none
        found = list(_lines_of(table, row, data, [], (key, place), shown))
        for name, line in found:
            lines[name].append(line)
        observations.update(shown)

    quarantined = read_rows([page], table.key, take)
    return Decoded(tables_from_lines(lines, schemas), quarantined, observations)


def _lines_of(
    table: TableSchema,
    item: _Object,
    data: bytes,
    places: list[object],
    row: tuple[str, tuple[int, int]],
    shown: Counter[tuple[str, str]],
    path: str = "",
) -> Iterator[tuple[str, list[object]]]:
    """The lines of an object and of those in its arrays, each with the name of its table. Raises InvalidRow.

    Args:
        table: of the object.
        item: its values.
        data: its bytes.
        places: the values before those of its fields.
        row: identifier and place of the row.
        shown: takes the observations.
        path: of the object in its row, to be followed by the name of a field.
    """
    key, place = row
    values, inexact = _values_of(table, item, path, shown)
    unknown = item.keys() - table.known
    is_plain = not (table.children or inexact or unknown)
    raw = {} if is_plain else fields_of(data)
    extra = text_of_fields(raw, (raw.keys() - table.known) | inexact).decode()
    shown.update((f"{table.name}: {UNKNOWN}", name) for name in item if name in unknown)
    yield table.name, [*places, *values, None if extra == "{}" else extra, *place]
    for child in table.children:
        name = child.array
        if item.get(name) is None:
            continue
        objects = _objects_of(name, item[name], bytes(raw[name]), place[0])
        for n, (inner, part) in enumerate(objects, 1):
            yield from _lines_of(child, inner, part, [key, n], row, shown, f"{name}[].")


def _values_of(
    table: TableSchema, item: _Object, path: str, shown: Counter[tuple[str, str]]
) -> tuple[list[object], set[str]]:
    """The values of an object's fields for their columns, and the fields that these do not hold exactly."""
    values: list[object] = []
    inexact: set[str] = set()
    for field in table.fields:
        value = item.get(field.name)
        if value is None:
            values.append(None)
            if field.required:
                shown[f"{table.name}.{field.name}: {ABSENT}", ""] += 1
            continue
        read, is_exact = read_value(field, value, path + field.name)
        values.append(read)
        if is_exact:
            continue
        inexact.add(field.name)
        if field.type not in _DECIMALS:
            shown[f"{table.name}.{field.name}: {MISTYPED}", kind(value)] += 1
    return values, inexact


def _objects_of(
    name: str, items: object, data: bytes, number: int
) -> Iterator[tuple[_Object, bytes]]:
    """The objects of an array, each with its bytes. Raises InvalidRow if it is another thing, or has one."""
    if not isinstance(items, list):
        raise InvalidRow(f"{name}: expected array, found {kind(items)}")
    for inner, part in zip(items, split(Page(number, data)), strict=True):
        if not isinstance(inner, dict):
            raise InvalidRow(f"{name}[]: expected object, found {kind(inner)}")
        yield inner, part


def read_value(field: Field, value: object, path: str) -> tuple[object, bool]:
    """A value that is not null as its column holds it, and whether the column holds it as it is.

    It does not where a decimal is rounded, or where a text is a number or a date is another string.

    Raises:
        InvalidRow: it is of another type than the interface's, or too large for the column.
    """
    if isinstance(value, str) or field.type == "object":
        check_nul(value, path)
    read = _read(field, value, path)
    if read is None:
        expected = _EXPECTED.get(field.type, field.type)
        raise InvalidRow(f"{path}: expected {expected}, found {kind(value)}")
    return read


def _read(field: Field, value: object, path: str) -> tuple[object, bool] | None:
    """See `read_value`; None if the value is of another type."""
    if isinstance(value, str) and field.type in _DECIMALS:
        return _decimal(value, path)
    if isinstance(value, Number):
        return _number(field, value, path)
    if isinstance(value, str):
        return _text(field, value)
    if isinstance(value, bool) and field.type == "boolean":
        return value, True
    if isinstance(value, list) and field.items is not None:
        for item in value:
            read_value(Field(field.name, field.items), item, f"{path}[]")
        return dump(value), True
    if isinstance(value, dict) and field.type == "object":
        return dump(value), True
    return None


def _number(field: Field, value: Number, path: str) -> tuple[object, bool] | None:
    """A number, in a field that is no decimal."""
    match field.type:
        case "text":
            return canonical(value) or str(value), False
        case "identifier":
            text = canonical(value)
            if text is None:
                raise InvalidRow(f"{path}: a number too long for an identifier")
            return text, True
        case "integer":
            whole = integer(value)
            if whole is None:
                raise InvalidRow(
                    f"{path}: expected integer, found a number with a fraction or beyond 64 bits"
                )
            return whole, True
        case _:
            return None


def _text(field: Field, value: str) -> tuple[object, bool] | None:
    """A string, in a field that is no decimal."""
    match field.type:
        case "text" | "identifier":
            return value, True
        case "date":
            day = _date(value)
            return day, day is not None
        case _:
            return None


def _date(value: str) -> date | None:
    if not _DAY.fullmatch(value):
        return None
    try:
        return date.fromisoformat(value)
    except ValueError:
        return None


def _decimal(value: str, path: str) -> tuple[object, bool]:
    is_number = isinstance(value, Number) or _DECIMAL.fullmatch(value)
    if not is_number or (number := exact(Number(value))) is None:
        raise InvalidRow(f"{path}: expected decimal, found another {kind(value)}")
    rounded = round_decimal(number)
    if rounded is None:
        raise InvalidRow(f"{path}: expected decimal, found more than 29 digits before the point")
    return rounded, rounded == number
