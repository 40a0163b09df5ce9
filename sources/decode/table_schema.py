"""The tables of a documented record: names, columns, types (docs/warehouse.md).

In: a record of the contract. Out: its `TableSchema`s, which the columnar and the row-by-row path both fill.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import sha256
from typing import Final

import pyarrow as pa

from orderbridge.sources.contract import Field, Record
from orderbridge.sources.decode.rows import Decoded

ABSENT: Final = "required by the interface, absent or null"
FIELD: Final = "path of the field"
UNKNOWN: Final = "field not in the interface"
MISTYPED: Final = "not of the interface's type, original in _extra"
"""Observations about fields; the first two follow a table's name, the last a field's."""
KEY_COLUMN: Final = "id"
"""The column of a list's identifier, whatever field it comes from."""
NAME_MAX: Final = 100
"""Longest name of a table or column, in characters: it becomes part of file names."""
DECIMAL: Final = pa.decimal128(38, 9)
TYPES: Final = {
    "identifier": pa.string(),
    "text": pa.string(),
    "integer": pa.int64(),
    "number": DECIMAL,
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "decimal_text": DECIMAL,
    "array": pa.string(),
    "object": pa.string(),
}
"""The column of each type of field; an object and an array of values are JSON text."""
PLACE: Final = (("_page", pa.int32()), ("_position", pa.int32()))


@dataclass(frozen=True)
class TableSchema:
    """A table of a documented record: of the rows themselves, or of the objects in one of their arrays.

    Attributes:
        array: the field with the objects; empty for the rows.
        key: the field of a row's identifier; empty for the objects.
        fields: those that are columns.
        schema: all its columns.
        children: the tables of the arrays of objects.
    """

    name: str
    array: str
    key: str
    fields: tuple[Field, ...]
    schema: pa.Schema
    children: tuple[TableSchema, ...] = ()

    @cached_property
    def known(self) -> frozenset[str]:
        """The names of all fields."""
        return frozenset(f.name for f in self.fields) | {child.array for child in self.children}


@lru_cache(maxsize=64)
def table_schema(record: Record) -> TableSchema:
    """The table of a record's rows: its fields are columns, but each array of objects is a child table.

    Raises:
        ValueError: a field has a type that no column holds.
    """
    places = ((parent_key(record), pa.string()), ("position", pa.int32()))
    children = tuple(
        TableSchema(
            f"{record.name}__{snake(f.name)}", f.name, "", f.fields, _schema(f.fields, places)
        )
        for f in record.fields
        if f.fields and f.type == "array"
    )
    scalars = tuple(f for f in record.fields if f.type != "array" or not f.fields)
    return TableSchema(record.name, "", record.key, scalars, _schema(scalars), children)


def _schema(fields: Sequence[Field], places: Sequence[tuple[str, pa.DataType]] = ()) -> pa.Schema:
    for f in fields:
        if f.type not in TYPES:
            raise ValueError(f"{f.name}: no column for the type {f.type}")
    return pa.schema(
        [
            *places,
            *((snake(f.name), TYPES[f.type]) for f in fields),
            ("_extra", pa.string()),
            *PLACE,
        ]
    )


def schema_of(record: Record) -> dict[str, pa.Schema]:
    """The columns of each table of a record, including those without a value in any row."""
    table = table_schema(record)
    return {each.name: each.schema for each in (table, *table.children)}


def lists_of(record: Record) -> dict[tuple[str, ...], str]:
    """The child table of each list of objects, by the path of its field."""
    return {(child.array,): child.name for child in table_schema(record).children}


def tables_from_lines(
    lines: Mapping[str, list[list[object]]], schemas: Mapping[str, pa.Schema]
) -> dict[str, pa.Table]:
    """The table of each schema, from lists of values in the order of its columns."""
    tables = {}
    for name, schema in schemas.items():
        columns = zip(*lines[name], strict=True) if lines[name] else ([] for _ in schema)
        arrays = [
            pa.array(list(column), field.type)
            for column, field in zip(columns, schema, strict=True)
        ]
        tables[name] = pa.Table.from_arrays(arrays, schema=schema)
    return tables


def merged(parts: Sequence[Decoded], schemas: Mapping[str, pa.Schema]) -> Decoded:
    """Batches as one, with these tables."""
    counts = Counter[tuple[str, str]]()
    for part in parts:
        counts.update(part.observations)
    return Decoded(
        {
            name: pa.concat_tables([part.tables[name] for part in parts])
            if parts
            else schema.empty_table()
            for name, schema in schemas.items()
        },
        [row for part in parts for row in part.quarantined],
        counts,
    )


def parent_key(record: Record) -> str:
    """The column of a child table that holds the identifier of its parent: `customer_id`."""
    return f"{re.sub('(?<=ch)es$|(?<=x)es$|s$', '', record.name)}_{KEY_COLUMN}"


@lru_cache(maxsize=4096)
def snake(name: str) -> str:
    """A JSON name as a column: `priceListId` is `price_list_id`.

    Single underscores, none at the end, no digit first: dlt's own naming leaves such a name unchanged.
    """
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    plain = re.sub(r"[^0-9a-zA-Z]+", "_", spaced).rstrip("_").lower()
    if not plain:
        return "field"
    return f"_{plain}" if plain[0].isdigit() else plain


def shorten(name: str, longest: int = NAME_MAX) -> str:
    """A name of at most that many characters; a longer one ends with a part of its hash."""
    if len(name) <= longest:
        return name
    return f"{name[: longest - 13].rstrip('_')}_{sha256(name.encode()).hexdigest()[:12]}"
