"""What values of an undocumented record have been seen, and the tables and types that hold them all.

In: parsed rows (`rows.parse`). Out: the tables of the record, each column with the narrowest type that holds
every value exactly. A node only ever widens, and text is the widest of all, so the types depend on the rows and not on
their order. Names depend on the set of fields alone: they are given in the order of the fields' own names.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Flag, auto
from typing import Final, Literal

import pyarrow as pa

from sources.contract import Record
from sources.decode import rows
from sources.decode.rows import Number
from sources.decode.table_schema import PLACE, snake

DOUBLE_EXACT: Final = 2**53 - 1
"""A double up to here tells which integer was written; 2^53 may also have been 2^53 + 1."""
RESERVED: Final = frozenset(
    {"_extra", "_page", "_position", "_run_id", "_first_seen_at", "_last_seen_at", "_missing_since"}
)


class Seen(Flag):
    """What a field has held. Null is no kind: every column takes it."""

    NOTHING = 0
    BOOLEAN = auto()
    INTEGER = auto()  # whole, however written, of up to 53 bits
    WIDE = auto()  # whole, of up to 64 bits
    POINT = auto()  # a number written with a point or an exponent
    FRACTION = auto()  # a number that is not whole, or large, and that a double gives back as it was
    HUGE = auto()  # any other number
    TEXT = auto()
    OBJECT = auto()
    ARRAY = auto()
    NULL_ITEM = auto()  # of an array's items only


WHOLE: Final = Seen.INTEGER | Seen.WIDE
NUMBER: Final = WHOLE | Seen.POINT | Seen.FRACTION | Seen.HUGE
SCALAR: Final = NUMBER | Seen.BOOLEAN | Seen.TEXT

ColumnKind = Literal["key", "text", "bigint", "double", "boolean", "json", "object", "table"]
ARROW: Final = {
    "key": pa.string(),
    "text": pa.string(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "json": pa.string(),
}


@dataclass(slots=True)
class InferredNode:
    """A place in the record: what it held, its fields where that was an object, its items where an array."""

    seen: Seen = Seen.NOTHING
    fields: dict[str, InferredNode] = field(default_factory=dict)
    items: InferredNode | None = None

    def widen(self, value: object) -> None:
        """Takes a parsed value into account."""
        if value is None:
            return
        self.seen |= seen_in(value)
        if isinstance(value, dict):
            for name, inner in value.items():
                self.fields.setdefault(name, InferredNode()).widen(inner)
        elif isinstance(value, list):
            self.items = self.items or InferredNode()
            for item in value:
                if item is None:
                    self.items.seen |= Seen.NULL_ITEM
                self.items.widen(item)

    @property
    def kind(self) -> ColumnKind:
        """How the values are held. An object that was always empty and an array of no objects are JSON text."""
        seen = self.seen
        if seen == Seen.OBJECT and self.fields:
            return "object"
        if seen == Seen.ARRAY and self.items is not None and self.items.seen == Seen.OBJECT:
            return "table"
        if seen & (Seen.OBJECT | Seen.ARRAY):
            return "json"
        if seen == Seen.BOOLEAN:
            return "boolean"
        if seen and not seen & ~(WHOLE | Seen.POINT):
            return "bigint"
        if seen and not seen & ~(Seen.INTEGER | Seen.POINT | Seen.FRACTION):
            return "double"
        return "text"


def seen_in(value: object) -> Seen:
    """The kind of one parsed value."""
    if isinstance(value, bool):
        return Seen.BOOLEAN
    if isinstance(value, Number):
        written = Seen.POINT if set(value) & set(".eE") else Seen.NOTHING
        whole = rows.integer(value)
        if whole is not None:
            return written | (Seen.INTEGER if abs(whole) <= DOUBLE_EXACT else Seen.WIDE)
        return written | (Seen.FRACTION if written and survives(value) else Seen.HUGE)
    if isinstance(value, str):
        return Seen.TEXT
    return Seen.ARRAY if isinstance(value, list) else Seen.OBJECT


def survives(number: str) -> bool:
    """Whether a double, written in its shortest form, gives back the number."""
    value = float(number)
    return abs(value) != float("inf") and Decimal(repr(value)) == Decimal(number)


@dataclass(frozen=True, slots=True)
class InferredColumn:
    """A column, the names that lead to its value inside the row or item, and how it is held.

    `is_wide` says that integers beyond 53 bits have been seen; the column is the same without.
    """

    name: str
    keys: tuple[str, ...]
    kind: ColumnKind
    is_wide: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class InferredTable:
    """A table: of the rows themselves, or of the objects in an array.

    Attributes:
        keys: the names that lead to the array from the row or item that holds it; empty for the rows.
        places: the columns before its own: the record's key, the positions of the items that hold it, its own.
    """

    name: str
    keys: tuple[str, ...]
    places: tuple[str, ...]
    columns: tuple[InferredColumn, ...]
    children: tuple[InferredTable, ...]

    @property
    def schema(self) -> pa.Schema:
        """All its columns."""
        places = [(name, pa.int32() if n else pa.string()) for n, name in enumerate(self.places)]
        own = [(column.name, ARROW[column.kind]) for column in self.columns]
        return pa.schema([*places, *own, ("_extra", pa.string()), *PLACE])

    def all(self) -> Iterator[InferredTable]:
        """This table and all below it."""
        yield self
        for child in self.children:
            yield from child.all()


def tables_of(record: Record, node: InferredNode) -> InferredTable:
    """The tables that hold everything seen."""
    return _table(record, node, (), "", (), {record.name})


def _table(
    record: Record, node: InferredNode, keys: tuple[str, ...], path: str, above: tuple[str, ...], names: set[str]
) -> InferredTable:
    table = free(f"{record.name}__{path}", names) if path else record.name
    places: tuple[str, ...] = ()
    taken = set(RESERVED)
    columns: list[InferredColumn] = []
    if path:
        key = f"{record.name.removesuffix('s')}_{snake(record.key)}"
        places = (key, *(f"{name}_position" for name in above), "position")
        taken |= set(places)
    else:
        columns.append(InferredColumn(snake(record.key), (record.key,), "key"))
        taken.add(snake(record.key))
    found = [(at, inner) for at, inner in _places(node, ()) if path or at != (record.key,)]
    # A name that is a column's already keeps it, so that a clash renames as little as possible.
    found.sort(key=lambda place: (_joined(place[0]) != "__".join(place[0]), place[0]))
    plain = [(free(_joined(at), taken), at, inner) for at, inner in found if inner.kind != "table"]
    for name, at, inner in sorted(plain, key=lambda column: column[1]):
        columns.append(InferredColumn(name, at, inner.kind, Seen.WIDE in inner.seen))
    children = []
    for at, inner in found:
        if inner.kind == "table" and inner.items is not None:
            here = _joined(at)
            holders = (*above, path) if path else ()
            children.append(_table(record, inner.items, at, f"{path}__{here}" if path else here, holders, names))
    return InferredTable(table, keys, places, tuple(columns), tuple(children))


def _places(node: InferredNode, keys: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], InferredNode]]:
    """The places of an object that become columns or tables, objects in it opened."""
    for name, inner in node.fields.items():
        if inner.kind == "object":
            yield from _places(inner, (*keys, name))
        else:
            yield (*keys, name), inner


def _joined(keys: tuple[str, ...]) -> str:
    return "__".join(snake(name) for name in keys)


def free(name: str, taken: set[str]) -> str:
    """The name, or the first of `name_2`, `name_3` … that is not taken; takes it."""
    wanted, n = name, 1
    while wanted in taken:
        n += 1
        wanted = f"{name}_{n}"
    taken.add(wanted)
    return wanted
