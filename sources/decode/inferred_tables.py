"""The tables of an undocumented record, and the names of their columns.

In: the places that were found, with their kinds (`schema_inference`), and earlier names. Out: a table for the record
and one for each array of objects. Names depend on the set of fields and on earlier names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Literal

import pyarrow as pa

from orderbridge.sources.contract import Record
from orderbridge.sources.decode.column_kinds import ARROW, ColumnKind, path_text
from orderbridge.sources.decode.rows import MASK, is_secret, mask_secrets, masked
from orderbridge.sources.decode.schema_inference import InferredNode
from orderbridge.sources.decode.table_schema import KEY_COLUMN, PLACE, parent_key, shorten, snake

_ADDED: Final = (
    "_extra",
    "_page",
    "_position",
    "_run_id",
    "_first_seen_at",
    "_last_seen_at",
    "_missing_since",
)
"""Columns that are added to the fields of a record."""
_IN_COPIES: Final = ("_orderbridge_removed", "_removed", "_stamps", "_sum", "_hash")
"""Columns of copies while they are made, and of the dlt sources."""
_OF_LIBRARIES: Final = (
    *("_dlt_id", "_dlt_load_id", "_dlt_parent_id", "_dlt_root_id", "_dlt_list_idx", "rowid"),
    *("ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"),
)
"""Columns of dlt, of DuckDB and of Postgres, which a column of that name hides, or which rule it out."""
RESERVED: Final = frozenset({*_ADDED, *_IN_COPIES, *_OF_LIBRARIES})
"""Names that no field of an undocumented record has as a column: it gets the next free one, `_run_id_2`."""
NOT_IN_RAW: Final = RESERVED - {
    "_extra",
    "_run_id",
    "_first_seen_at",
    "_last_seen_at",
    "_missing_since",
}
"""Reserved names that no column of a raw table has, except for a field in a warehouse of version 0.3.0 or earlier."""
CHILD_TABLES: Final = ""
"""The key of `FieldNames` with the names of child tables."""
FieldNames = Mapping[str, Mapping[str, str]]
"""The names that fields have had: by table, by the path of the field (`path_text`), the column."""
_Place = tuple[tuple[str, ...], InferredNode]


@dataclass(frozen=True, slots=True)
class InferredColumn:
    """A column, the names that lead to its value inside the row or item, and how the value is held."""

    name: str
    keys: tuple[str, ...]
    kind: ColumnKind | Literal["key"]
    node: InferredNode = field(compare=False, repr=False)

    @property
    def is_secret(self) -> bool:
        """Whether it has passwords, by its name; numbers are none."""
        return self.kind in ("text", "json", "list") and is_secret(self.keys[-1])

    def masked(self, value: str) -> str:
        """A value without the passwords in it; an empty one says nothing."""
        if self.kind == "text":
            return MASK if value and self.is_secret else value
        data = value.encode()
        return bytes(masked(data)).decode() if self.is_secret else mask_secrets(data).decode()


@dataclass(frozen=True)
class InferredTable:
    """A table: of the rows themselves, or of the objects in an array.

    Attributes:
        keys: the names that lead to the array from the row or item that holds it; empty for the rows.
        places: the columns before its own: the record's identifier, the positions of the items that hold it, its own.
        node: of the rows, or of the array.
    """

    name: str
    keys: tuple[str, ...]
    places: tuple[str, ...]
    columns: tuple[InferredColumn, ...]
    children: tuple[InferredTable, ...]
    node: InferredNode = field(compare=False, repr=False)

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


class _Names:
    """The names of one table's columns, or of all child tables: those taken, and earlier ones by path.

    A field that had a name keeps it, and no other field gets it: `total` and `Total` do not swap when one is absent.
    """

    def __init__(self, taken: set[str], earlier: Mapping[str, str]) -> None:
        self._taken = taken
        self._earlier = earlier
        self._reserved = frozenset(earlier.values())

    def add(self, name: str, keys: tuple[str, ...], declared: str | None = None) -> str:
        """The name of a field: declared, else its earlier one, else the first of `name`, `name_2` … that is free."""
        unique = declared or self._earlier.get(path_text(keys))
        if unique is None or unique in self._taken:
            base = shorten(name)
            n = 1
            unique = base
            while unique in self._taken or unique in self._reserved:
                n += 1
                unique = f"{base}_{n}"
        self._taken.add(unique)
        return unique


def inferred_table(
    record: Record, root: InferredNode, earlier: FieldNames | None = None
) -> InferredTable:
    """The tables that hold everything seen, named as before."""
    earlier = earlier or {}
    names = _Names({KEY_COLUMN} | RESERVED, earlier.get(record.name, {}))
    columns, children = _contents(root, names, frozenset({(record.key,)}))
    key = InferredColumn(KEY_COLUMN, (record.key,), "key", root.fields[record.key])
    tables = _Names({record.name}, earlier.get(CHILD_TABLES, {}))

    def child(
        at: tuple[str, ...], items: InferredNode, above: tuple[str, ...], holders: list[str]
    ) -> InferredTable:
        """The table of an array of objects; `holders` are the paths of the arrays around it, outermost first."""
        path = "__".join([*holders[-1:], _joined(at)])
        places = (
            parent_key(record),
            *(shorten(f"{holder}_position") for holder in holders),
            "position",
        )
        name = tables.add(f"{record.name}__{path}", (*above, *at), items.name)
        columns, children = _contents(
            items, _Names(set(places) | RESERVED, earlier.get(name, {})), frozenset()
        )
        below = tuple(
            child(inner, node, (*above, *at), [*holders, path]) for inner, node in children
        )
        return InferredTable(name, at, places, columns, below, items)

    below = tuple(child(at, node, (), []) for at, node in children)
    return InferredTable(record.name, (), (), (key, *columns), below, root)


def _contents(
    node: InferredNode, names: _Names, skipped: frozenset[tuple[str, ...]]
) -> tuple[tuple[InferredColumn, ...], list[_Place]]:
    """The columns of a table, and the arrays of objects in it."""
    places = [place for place in _places(node, ()) if place[0] not in skipped]
    # A name that needs no change keeps it, so that a clash renames as little as possible.
    places.sort(
        key=lambda place: (
            place[1].name is None,
            _joined(place[0]) != "__".join(place[0]),
            place[0],
        )
    )
    columns = [
        InferredColumn(names.add(_joined(at), at, inner.name), at, inner.kind, inner)
        for at, inner in places
        if inner.kind != "table"
    ]
    tables = [(at, inner) for at, inner in places if inner.kind == "table"]
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
