"""The tables and types that hold all values of an undocumented record.

In: parsed rows (`rows.parse`). Out: the tables of the record, each column with the narrowest type that holds every
value exactly. A node only ever widens, and text is the widest type, so the types depend on the rows and not on their
order. Names depend on the set of fields and on earlier names. An object with too many fields (one keyed by ids) becomes
JSON text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Flag, auto
from functools import cached_property
from typing import Final, Literal

import msgspec
import pyarrow as pa

from sources.contract import Record
from sources.decode import rows
from sources.decode.rows import Number
from sources.decode.table_schema import KEY_COLUMN, PLACE, parent_key, shorten, snake

DOUBLE_EXACT: Final = 2**53 - 1
"""Up to here a double shows which integer was written; 2^53 may also have been 2^53 + 1."""
FIELDS_MAX: Final = 200
"""Fields of an object in a record that become columns. With more it is JSON text."""
NODES_MAX: Final = 500
"""Fields of a whole record, over all its tables. With more, an object with a new field becomes JSON text, and a
new field of the record itself goes to `_extra`."""
RESERVED: Final = frozenset(
    {"_extra", "_page", "_position", "_run_id", "_first_seen_at", "_last_seen_at", "_missing_since"}
)


class Seen(Flag):
    """The values of a field. Null does not count: every column takes it."""

    NOTHING = 0
    BOOLEAN = auto()
    INTEGER = auto()  # whole, in any notation, up to 53 bits
    WIDE = auto()  # whole, up to 64 bits
    POINT = auto()  # written with a point or an exponent
    FRACTION = auto()  # not whole, or large, and exact as a double
    HUGE = auto()  # any other number
    TEXT = auto()
    OBJECT = auto()
    ARRAY = auto()
    NULL_ITEM = auto()  # of the items of an array only


WHOLE: Final = Seen.INTEGER | Seen.WIDE

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
class NodeBudget:
    """Fields that a record may still get."""

    left: int = NODES_MAX


@dataclass(slots=True)
class InferredNode:
    """A place in the record: the values seen, the fields of an object, the items of an array.

    Attributes:
        is_wide: it is an object with too many fields: its fields are no longer looked at.
    """

    seen: Seen = Seen.NOTHING
    fields: dict[str, InferredNode] = field(default_factory=dict)
    items: InferredNode | None = None
    is_wide: bool = False

    def widen(self, value: object, budget: NodeBudget, is_root: bool = False) -> None:
        """Takes a parsed value into account."""
        if value is None:
            return
        self.seen |= seen_in(value)
        if isinstance(value, dict):
            self._widen_object(value, budget, is_root)
        elif isinstance(value, list):
            self.items = self.items or InferredNode()
            for item in value:
                if item is None:
                    self.items.seen |= Seen.NULL_ITEM
                self.items.widen(item, budget)

    def _widen_object(self, value: dict[str, object], budget: NodeBudget, is_root: bool) -> None:
        for name, inner in value.items():
            if name not in self.fields:
                if self.is_wide or not budget.left or (len(self.fields) >= FIELDS_MAX and not is_root):
                    self.is_wide = True
                    if not is_root:
                        budget.left += self.size - 1
                        self.fields = {}
                        return
                    continue
                self.fields[name] = InferredNode()
                budget.left -= 1
            self.fields[name].widen(inner, budget)

    @property
    def size(self) -> int:
        """The fields at and below this place."""
        below = sum(node.size for node in self.fields.values())
        return 1 + below + (self.items.size - 1 if self.items is not None else 0)

    @property
    def kind(self) -> ColumnKind:
        """How the values are held. Objects that are wide or always empty, and other arrays, are JSON text."""
        seen = self.seen
        if seen == Seen.OBJECT and self.fields:
            return "object"
        if seen == Seen.ARRAY and self.items is not None and self.items.seen == Seen.OBJECT and not self.items.is_wide:
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
    """The kind of a parsed value."""
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
    """Whether the shortest form of the double is the number."""
    value = float(number)
    return abs(value) != float("inf") and Decimal(repr(value)) == Decimal(number)


@dataclass(frozen=True, slots=True)
class InferredColumn:
    """A column, the names that lead to its value inside the row or item, and how the value is held.

    `is_wide`: integers beyond 53 bits have been seen; the column is the same without.
    """

    name: str
    keys: tuple[str, ...]
    kind: ColumnKind
    is_wide: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class InferredTable:
    """A table: of the rows themselves, or of the objects in an array.

    Attributes:
        keys: the names that lead to the array from the row or item that holds it; empty for the rows.
        places: the columns before its own: the record's identifier, the positions of the items that hold it, its own.
    """

    name: str
    keys: tuple[str, ...]
    places: tuple[str, ...]
    columns: tuple[InferredColumn, ...]
    children: tuple[InferredTable, ...]

    @cached_property
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

    def paths(self, above: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
        """The table or `table.column`, and the path of its field, of everything in this table and below it."""
        for column in self.columns:
            yield f"{self.name}.{column.name}", path_text(column.keys)
        for child in self.children:
            yield child.name, path_text((*above, *child.keys))
            yield from child.paths((*above, *child.keys))


CHILD_TABLES: Final = ""
"""The key of `FieldNames` with the names of child tables."""
FieldNames = Mapping[str, Mapping[str, str]]
"""The names that fields have had: by table, by the path of the field (`path_text`), the column."""


def path_text(keys: Sequence[str]) -> str:
    """The names that lead to a value as a JSON array: a name may contain any separator."""
    return msgspec.json.encode(keys).decode()


class _Names:
    """The names of one table's columns, or of all child tables: those taken, and earlier ones by path.

    A field that had a name keeps it, and no other field gets it: `total` and `Total` do not swap when one is absent.
    """

    def __init__(self, taken: set[str], earlier: Mapping[str, str]) -> None:
        self._taken, self._earlier, self._reserved = taken, earlier, frozenset(earlier.values())

    def add(self, name: str, keys: tuple[str, ...]) -> str:
        """The name of a field: its earlier one, else the first of `name`, `name_2`, `name_3` … that is free."""
        unique = self._earlier.get(path_text(keys))
        if unique is None or unique in self._taken:
            base, n = shorten(name), 1
            unique = base
            while unique in self._taken or unique in self._reserved:
                n += 1
                unique = f"{base}_{n}"
        self._taken.add(unique)
        return unique


def inferred_table(record: Record, root: InferredNode, earlier: FieldNames | None = None) -> InferredTable:
    """The tables that hold everything seen, named as before."""
    earlier = earlier or {}
    names = _Names({KEY_COLUMN} | RESERVED, earlier.get(record.name, {}))
    columns, children = _contents(root, names, frozenset({(record.key,)}))
    key = InferredColumn(KEY_COLUMN, (record.key,), "key")
    tables = _Names({record.name}, earlier.get(CHILD_TABLES, {}))

    def child(at: tuple[str, ...], items: InferredNode, above: tuple[str, ...], holders: list[str]) -> InferredTable:
        """The table of an array of objects; `holders` are the paths of the arrays around it, outermost first."""
        path = "__".join([*holders[-1:], _joined(at)])
        places = (parent_key(record), *(shorten(f"{holder}_position") for holder in holders), "position")
        name = tables.add(f"{record.name}__{path}", (*above, *at))
        columns, children = _contents(items, _Names(set(places) | RESERVED, earlier.get(name, {})), frozenset())
        below = tuple(child(inner, node, (*above, *at), [*holders, path]) for inner, node in children)
        return InferredTable(name, at, places, columns, below)

    below = tuple(child(at, node, (), []) for at, node in children)
    return InferredTable(record.name, (), (), (key, *columns), below)


_Place = tuple[tuple[str, ...], InferredNode]


def _contents(
    node: InferredNode, names: _Names, skipped: frozenset[tuple[str, ...]]
) -> tuple[tuple[InferredColumn, ...], list[_Place]]:
    """The columns of a table, and the arrays of objects in it with their items."""
    places = [place for place in _places(node, ()) if place[0] not in skipped]
    # A name that needs no change keeps it, so that a clash renames as little as possible.
    places.sort(key=lambda place: (_joined(place[0]) != "__".join(place[0]), place[0]))
    columns = [
        InferredColumn(names.add(_joined(at), at), at, inner.kind, Seen.WIDE in inner.seen)
        for at, inner in places
        if inner.kind != "table"
    ]
    tables = [(at, inner.items) for at, inner in places if inner.kind == "table" and inner.items is not None]
    return tuple(sorted(columns, key=lambda column: column.keys)), tables


def _places(node: InferredNode, keys: tuple[str, ...]) -> Iterator[_Place]:
    """The places of an object that become columns or tables; objects in it are flattened."""
    for name, inner in node.fields.items():
        if inner.kind == "object":
            yield from _places(inner, (*keys, name))
        else:
            yield (*keys, name), inner


def _joined(keys: tuple[str, ...]) -> str:
    return "__".join(snake(name) for name in keys)
