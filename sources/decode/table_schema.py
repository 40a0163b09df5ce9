"""The tables of a record that the interface describes: names, columns, types (design §6), worked out once.

In: a record of the contract. Out: its plan. `row_by_row` and `documented` both fill these columns.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import pyarrow as pa

from sources.contract import Field, Record

ABSENT: Final = "required by the interface, absent or null"
UNKNOWN: Final = "field not in the interface"
DECIMAL: Final = pa.decimal128(38, 9)
TYPES: Final = {
    "identifier": pa.string(),
    "text": pa.string(),
    "integer": pa.int64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "decimal_text": DECIMAL,
}
PLACE: Final = (("_page", pa.int32()), ("_position", pa.int32()))


@dataclass(frozen=True, slots=True)
class Child:
    """An array of objects in a record: its field, its table, and the column that names its parent."""

    field: Field
    table: str
    parent_key: str
    known: frozenset[str]
    schema: pa.Schema


@dataclass(frozen=True, slots=True)
class TableSchema:
    """A record as tables, worked out once."""

    record: Record
    scalars: tuple[Field, ...]
    children: tuple[Child, ...]
    known: frozenset[str]
    schema: pa.Schema


@lru_cache(maxsize=64)
def table_schema(record: Record) -> TableSchema:
    """The tables of a record.

    Raises:
        ValueError: the record holds a type that no list of the interface has.
    """
    scalars = tuple(f for f in record.fields if f.type != "array")
    children = []
    parent_key = f"{record.name.removesuffix('s')}_{snake(record.key)}"
    for f in record.fields:
        if f.type != "array":
            continue
        columns = [(parent_key, pa.string()), ("position", pa.int32()), *_columns(f.fields)]
        schema = pa.schema([*columns, ("_extra", pa.string()), *PLACE])
        table = f"{record.name}__{snake(f.name)}"
        children.append(Child(f, table, parent_key, frozenset(c.name for c in f.fields), schema))
    schema = pa.schema([*_columns(scalars), ("_extra", pa.string()), *PLACE])
    return TableSchema(record, scalars, tuple(children), frozenset(f.name for f in record.fields), schema)


def _columns(fields: Sequence[Field]) -> list[tuple[str, pa.DataType]]:
    for f in fields:
        if f.type not in TYPES:
            raise ValueError(f"{f.name}: no column for the type {f.type}")
    return [(snake(f.name), TYPES[f.type]) for f in fields]


def schema_of(record: Record) -> dict[str, pa.Schema]:
    """The tables of a record and their columns, all of them there even where no row has a value."""
    plan = table_schema(record)
    return {record.name: plan.schema, **{child.table: child.schema for child in plan.children}}


def snake(name: str) -> str:
    """A JSON name as a column: `priceListId` is `price_list_id`.

    Single underscores, none at the end, no digit first: so that the loader's own naming leaves it as it is.
    """
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    plain = re.sub(r"[^0-9a-zA-Z]+", "_", spaced).rstrip("_").lower()
    if not plain:
        return "field"
    return f"_{plain}" if plain[0].isdigit() else plain
