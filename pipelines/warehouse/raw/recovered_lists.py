"""Fields that turn out to be lists: what stored orders have of them moves to the child table.

Version 0.3.0 took arrays of one object for objects: their fields were columns of the order, and an array of several
items was an odd value in `_extra`. In: a build, and a read that has a child table for such a field. Out: the build,
with the items of all orders that the read did not bring in that table. Their columns are null from then on: a query on
them finds nothing instead of a part.

The values are written as the platform wrote them, and decoded again with the kinds that the read decided: what a read
makes of a list is made of a stored one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import duckdb
import msgspec
import pyarrow as pa

from orderbridge.pipelines.warehouse.raw.load import LOADED
from orderbridge.pipelines.warehouse.raw.schema_changes import field_names
from orderbridge.pipelines.warehouse.sql import columns_of, has_tables, sql_name, table_names
from orderbridge.sources.contract import RECORDS
from orderbridge.sources.decode.column_kinds import ColumnKind, KeptKind, path_text
from orderbridge.sources.decode.inferred_tables import CHILD_TABLES, FieldNames
from orderbridge.sources.decode.json_numbers import Number
from orderbridge.sources.decode.json_text import dump
from orderbridge.sources.decode.odd_values import keep_odd
from orderbridge.sources.decode.rows import Decoded, Page
from orderbridge.sources.decode.table_schema import KEY_COLUMN, parent_key
from orderbridge.sources.decode.undocumented import InferredSchema
from orderbridge.sources.extract.result import ListResult

ROWS_PER_BATCH: Final = 10_000
_BECAME_LIST: Final = ("object", "table")
"""The kind that earlier reads decided, and that of this one."""
_JSON_KINDS: Final = ("json", "list")
_HOLDERS: Final = "recovered_holders"
_EMPTIED: Final = "recovered_from"
"""Temporary tables: rows that hold a field, and those whose values were moved."""
Keys = tuple[str, ...]
"""The names that lead to a field."""
Values = dict[str, Any]
"""A JSON object, its numbers as they were written (`Number`)."""


def recover_lists(build: duckdb.DuckDBPyConnection, walked: ListResult) -> None:
    """Moves what stored orders have of fields that are lists now to the child tables of these.

    Args:
        build: whose raw tables are those of the runs before.
        walked: a read that is about to be merged. Columns that only stored orders fill are added to its observations.
    """
    before = _stored_kinds(build, walked.resource)
    now = {known.path: known.kind for known in walked.kinds}
    became = [_keys(path) for path, kind in now.items() if (before.get(path), kind) == _BECAME_LIST]
    if not became:
        return
    names = walked.field_names(field_names(build, walked.resource))
    kinds = before | {path: kind for path, kind in now.items() if kind != "empty"}
    for keys in became:
        is_inside = any(keys[:length] in became for length in range(1, len(keys)))
        if not is_inside:  # else its values move with those of the list around it
            _Recovery(build, walked, names, kinds, keys).run()


def _stored_kinds(build: duckdb.DuckDBPyConnection, resource: str) -> dict[str, ColumnKind]:
    """The kinds that earlier reads decided, but of fields that were always empty."""
    if not has_tables(build, "ops", "field_kinds"):
        return {}
    sql = "SELECT path, kind FROM ops.field_kinds WHERE resource = $1 AND kind <> 'empty'"
    return dict(build.execute(sql, [resource]).fetchall())


@dataclass(frozen=True, slots=True)
class _Column:
    """A column with a field of the objects: its name, type and kind, and the names that lead to the field."""

    name: str
    type: str
    kind: ColumnKind
    keys: Keys

    def read(self, text: str) -> object:
        """The value of the field in JSON, from that of the column as text."""
        if self.type == "BOOLEAN":
            return text == "true"
        if self.type != "VARCHAR":
            return Number(text)
        return _parsed(text) if self.kind in _JSON_KINDS else text


@dataclass(frozen=True, slots=True)
class _Holder:
    """A row with a value of the field.

    Attributes:
        places: the values of the columns that say which row it is.
        value: of the field, as the platform wrote it.
        extra: what `_extra` has of other fields.
    """

    places: tuple[Any, ...]
    value: object
    extra: Values


class _Recovery:
    """Moves the values of one field.

    Args:
        build: see `recover_lists`.
        walked: the read.
        names: of all fields, with those that the read found.
        kinds: of all fields, as they are now.
        keys: the names that lead to the field.
    """

    def __init__(
        self,
        build: duckdb.DuckDBPyConnection,
        walked: ListResult,
        names: FieldNames,
        kinds: Mapping[str, ColumnKind],
        keys: Keys,
    ) -> None:
        self._build = build
        self._walked = walked
        self._names = names
        self._kinds = kinds
        self._keys = keys
        record = RECORDS[walked.resource]
        self._record = record
        kept = {path: KeptKind(kind) for path, kind in kinds.items()}
        self._schema = InferredSchema(record, names, kept)
        self._places = self._schema.places()
        above = [keys[:length] for length in range(1, len(keys))]
        self._lists = [path for path in above if self._is_list(path)]
        """The lists around the field, outermost first."""
        self._around = self._lists[-1] if self._lists else ()
        tables = {_keys(path): name for path, name in names.get(CHILD_TABLES, {}).items()}
        self._parent = tables[self._around] if self._around else record.name
        self._inner = keys[len(self._around) :]
        """The names that lead to the field in a row of its parent table."""
        self._path = ".".join(self._inner)
        self._key_column = parent_key(record) if self._around else KEY_COLUMN
        below = [name for path, name in tables.items() if path[: len(keys)] == keys]
        self._recovered = [name for name in below if name in self._places]
        """The child tables that get the values: that of the field, and those of lists in it."""
        stored = table_names(build, "raw")
        self._stored = [name for name in self._recovered if name in stored]

    def _is_list(self, keys: Keys) -> bool:
        return self._kinds.get(path_text(keys)) == "table"

    def run(self) -> None:
        self._add_positions()
        columns = self._columns()
        count = self._find_holders(columns)
        for first in range(0, count, ROWS_PER_BATCH):
            self._move(list(self._holders(columns, first)))
        if count:
            self._empty(columns)
            for table in self._recovered:
                self._store(table)
            self._name_columns()

    def _add_positions(self) -> None:
        """Items of lists in an object were items of no list but their own: the object is the first of its list now."""
        for table in self._stored:
            target = sql_name("raw", table)
            columns = columns_of(self._build, target)
            for place in self._places[table]:
                if place not in columns:
                    self._build.execute(
                        f"ALTER TABLE {target} ADD COLUMN {sql_name(place)} INTEGER"
                    )
                    self._build.execute(f"UPDATE {target} SET {sql_name(place)} = 1")

    def _columns(self) -> list[_Column]:
        """The columns of the parent table with fields of the objects."""
        types = columns_of(self._build, sql_name("raw", self._parent))
        depth = len(self._inner)
        columns = []
        for path, name in self._names.get(self._parent, {}).items():
            keys = _keys(path)
            is_below = len(keys) > depth and keys[:depth] == self._inner
            if is_below and name in types:
                kind = self._kinds.get(path_text((*self._around, *keys)), "text")
                columns.append(_Column(name, types[name], kind, keys[depth:]))
        return columns

    def _find_holders(self, columns: list[_Column]) -> int:
        """Numbers the rows of orders that the read did not bring and that may hold the field. Returns their number."""
        places = [
            f"o.{sql_name(name)} AS p{n}" for n, name in enumerate(self._places[self._parent])
        ]
        values = [f"o.{sql_name(column.name)}::VARCHAR AS c{n}" for n, column in enumerate(columns)]
        has_value = [f"o.{sql_name(column.name)} IS NOT NULL" for column in columns]
        conditions = " OR ".join([*has_value, "contains(o._extra, $path)"])
        loaded = f'{LOADED}."{self._walked.resource}"'
        self._build.execute(
            f"""CREATE OR REPLACE TEMP TABLE {_HOLDERS} AS
            SELECT row_number() OVER () - 1 AS n, {", ".join([*places, "o._extra", *values])}
            FROM {sql_name("raw", self._parent)} o
            ANTI JOIN {loaded} l ON l.id = o.{sql_name(self._key_column)} WHERE {conditions}""",
            {"path": self._path},
        )
        ((count,),) = self._build.execute(f"SELECT count(*) FROM {_HOLDERS}").fetchall()
        return int(count)

    def _holders(self, columns: list[_Column], first: int) -> Iterator[_Holder]:
        """A batch of the rows, but those that hold no value of the field."""
        places = len(self._places[self._parent])
        sql = f"SELECT * EXCLUDE n FROM {_HOLDERS} WHERE n >= $1 AND n < $1 + {ROWS_PER_BATCH} ORDER BY n"
        for row in self._build.execute(sql, [first]).fetchall():
            extra = _loads(row[places]) if row[places] else {}
            odd, others = self._split(extra)
            value = odd.pop("", None)
            if value is None:
                value = _object_of(columns, row[places + 1 :], odd)
            else:
                others |= {f"{self._path}.{path}": inner for path, inner in odd.items()}
            if value:
                yield _Holder(row[:places], value, others)

    def _split(self, extra: Values) -> tuple[Values, Values]:
        """The odd values of the field, by the path in it, and those of others."""
        odd: Values = {}
        others: Values = {}
        for path, value in extra.items():
            own = (*self._around, path)  # where it is the name of a field, with points in it
            is_field = own != self._keys and path_text(own) in self._kinds
            if path == self._path and isinstance(value, (list, dict)) and not is_field:
                odd[""] = value
            elif path.startswith(f"{self._path}.") and not is_field:
                odd[path.removeprefix(f"{self._path}.")] = value
            else:
                others[path] = value
        return odd, others

    def _move(self, holders: list[_Holder]) -> None:
        """Decodes the values of these rows, and keeps what the tables get."""
        decoded = self._decode(holders)
        arrived = set(decoded.tables[self._record.name][KEY_COLUMN].to_pylist())
        moved = [holder for holder in holders if holder.places[0] in arrived]  # others stay
        odd = self._odd_values(decoded)
        for holder in moved:
            for path, value in odd.get(holder.places, {}).items():
                keep_odd(holder.extra, (path,), value)
        columns = {
            f"p{n}": pa.array([holder.places[n] for holder in moved], kind)
            for n, kind in enumerate(self._place_types())
        }
        texts = [dump(holder.extra) if holder.extra else None for holder in moved]
        self._keep(_EMPTIED, pa.table({**columns, "extra": pa.array(texts, pa.string())}))
        for n, table in enumerate(self._recovered):
            self._keep(f"recovered_{n}", decoded.tables[table])

    def _decode(self, holders: list[_Holder]) -> Decoded:
        """The tables of orders that have these values and nothing else."""
        orders: dict[str, Values] = {}
        for holder in holders:
            key, *positions = holder.places
            item = orders.setdefault(key, {KEY_COLUMN: key})
            above: Keys = ()
            for keys, position in zip(self._lists, positions, strict=True):
                item = _item_at(item, keys[len(above) :], position)
                above = keys
            _insert(item, self._inner, holder.value)
        rows = ",".join(dump(order) for order in orders.values())
        return self._schema.by_rows([Page(1, f"[{rows}]".encode())])

    def _place_types(self) -> list[pa.DataType]:
        return [pa.string(), *(pa.int32() for _ in self._lists)]

    def _odd_values(self, decoded: Decoded) -> dict[tuple[Any, ...], Values]:
        """What no table holds of the values, by the row that it stays in."""
        table = decoded.tables[self._parent]
        table = table.filter(table["_extra"].is_valid())
        places = zip(*(table[name].to_pylist() for name in self._places[self._parent]), strict=True)
        return dict(zip(places, map(_loads, table["_extra"].to_pylist()), strict=True))

    def _keep(self, name: str, rows: pa.Table) -> None:
        """Adds rows to a temporary table."""
        self._build.register("recovered_rows", rows)
        self._build.execute(
            f"CREATE TEMP TABLE IF NOT EXISTS {name} AS FROM recovered_rows LIMIT 0"
        )
        self._build.execute(f"INSERT INTO {name} FROM recovered_rows")
        self._build.unregister("recovered_rows")

    def _empty(self, columns: list[_Column]) -> None:
        """Removes the values that were moved from their row, also those that this read replaces."""
        changes = [f"{sql_name(column.name)} = NULL" for column in columns]
        same = [f"o.{sql_name(name)} = m.p{n}" for n, name in enumerate(self._places[self._parent])]
        self._build.execute(
            f"""UPDATE {sql_name("raw", self._parent)} o SET {", ".join([*changes, "_extra = m.extra"])}
            FROM {_EMPTIED} m WHERE {" AND ".join(same)}"""
        )
        self._build.execute(f"DROP TABLE {_EMPTIED}; DROP TABLE {_HOLDERS}")

    def _store(self, table: str) -> None:
        """Adds the rows of a child table, with the times of their orders."""
        kept = f"recovered_{self._recovered.index(table)}"
        target = sql_name("raw", table)
        record = self._record
        stored = f"FROM {target} UNION ALL BY NAME " if table in self._stored else ""
        self._build.execute(
            f"""CREATE OR REPLACE TABLE {target} AS {stored}
            SELECT r.* EXCLUDE (_page, _position), o._run_id, o._first_seen_at, o._last_seen_at, o._missing_since
            FROM {kept} r JOIN {sql_name("raw", record.name)} o ON o.{KEY_COLUMN} = r.{parent_key(record)}"""
        )
        self._build.execute(f"DROP TABLE {kept}")

    def _name_columns(self) -> None:
        """Records the fields of the columns, also of those that the read did not find."""
        for what, path in self._schema.observations():
            table = what.partition(": ")[0].partition(".")[0]
            if table in self._recovered:
                self._walked.observations[what, path] += 1


def _keys(path: str) -> Keys:
    return tuple(msgspec.json.decode(path, type=list[str]))


def _loads(text: str) -> Values:
    values: Values = json.loads(text, parse_int=Number, parse_float=Number)
    return values


def _parsed(text: str) -> object:
    """JSON text as a value; other text as it is."""
    try:
        return json.loads(text, parse_int=Number, parse_float=Number)
    except ValueError:
        return text


def _object_of(columns: list[_Column], texts: tuple[str | None, ...], odd: Values) -> Values:
    """An object from the columns that hold its fields, and from those of its values that no column holds."""
    made: Values = {}
    for column, text in zip(columns, texts, strict=True):
        if text is not None:
            _insert(made, column.keys, column.read(text))
    for path, value in odd.items():
        _insert(made, tuple(path.split(".")), value)
    return made


def _insert(values: Values, keys: Keys, value: object) -> None:
    """Sets a value inside nested objects; by its whole path where another value is in the way."""
    holder = values
    for name in keys[:-1]:
        inner = holder.setdefault(name, {})
        if not isinstance(inner, dict):
            values[".".join(keys)] = value
            return
        holder = inner
    if isinstance(holder.get(keys[-1]), dict):
        values[".".join(keys)] = value
    else:
        holder[keys[-1]] = value


def _item_at(values: Values, keys: Keys, position: int) -> Values:
    """The item of a list at a position, from 1. Lists and objects on the way are made; other items are null."""
    *outer, name = keys
    for key in outer:
        values = values.setdefault(key, {})
    items = values.setdefault(name, [])
    items.extend([None] * (position - len(items)))
    if items[position - 1] is None:
        items[position - 1] = {}
    item: Values = items[position - 1]
    return item
