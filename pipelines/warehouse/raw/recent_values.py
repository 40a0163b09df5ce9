"""What the new and changed rows of a pull have values of, beside those of earlier pulls.

In: a build with the rows that `recent_rows` recorded. Out: the columns and child tables of which far fewer of them have
a value, or one other than 0. A record counts once, however many lines it has: one order of thirty lines is one order.

A field that is filled later, such as a date of delivery, is empty in new rows, and at weekends in all of them. Changed
rows show which fields these are. Of lines no changes are known, so that only what nearly all of them have is judged;
as is, in the beginning, what all of the newest rows have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import cached_property
from typing import Final, Literal

import duckdb

from orderbridge.pipelines.warehouse.answers.accepted import Accepted
from orderbridge.pipelines.warehouse.raw.column_values import (
    JUMP_FACTOR,
    field_keys,
    field_places,
    has_zero,
)
from orderbridge.pipelines.warehouse.raw.field_kinds import list_fields
from orderbridge.pipelines.warehouse.raw.merge import is_empty, is_zero
from orderbridge.pipelines.warehouse.raw.recent_rows import (
    BATCH_ROWS_MIN,
    RECENT,
    Count,
    Measure,
    RecentRows,
    RowKind,
)
from orderbridge.pipelines.warehouse.raw.schema_changes import field_names
from orderbridge.pipelines.warehouse.sql import columns_of, sql_name, sql_text, table_names
from orderbridge.sources.contract import RECORDS
from orderbridge.sources.decode.inferred_tables import RESERVED
from orderbridge.sources.decode.table_schema import KEY_COLUMN, parent_key
from orderbridge.transforms.chance import Share

OF_LINES_MIN: Final = 0.95
"""Share of the earlier records from which a column of their lines, or a child table, is judged in new ones."""
FILLED_LATER: Final = "filled later"
FILLED_LATER_MIN: Final = 0.05
"""Share of the changed rows that get a value in a field from which it is one that is filled later."""
_FILLED_LATER: Final = """
    SELECT place FROM ops.recent_shares WHERE resource = $resource AND measure = $measure
    GROUP BY place HAVING sum(hits) >= $share * sum(rows) AND sum(hits) > 0"""
Loss = tuple[Literal["values_gone", "values_jumped"], str, str]
"""A rule, the place, and the words."""


def recent_losses(rows: RecentRows, accepted: Accepted, newest: str | None) -> Iterator[Loss]:
    """The columns and child tables of which far fewer new or changed rows have a value, or one other than 0.

    Args:
        rows: of the list.
        accepted: see `gone_values`; a fall counts as accepted with any of the rules that are about its place.
        newest: the newest rows (SQL): new rows are compared with them as long as there is no earlier batch; None: the
            first batch is compared with nothing.
    """
    first: dict[RowKind, str] = {} if newest is None else {"new": newest}
    places = RecentPlaces(rows.build, rows.resource)
    filled_later = _filled_later(rows, places)

    def is_expected(kind: RowKind, place: str, before: Share) -> bool:
        if kind == "changed":
            return False
        few_had_it = before.rows <= BATCH_ROWS_MIN and before.hits < before.rows
        few_of_lines = not places.is_of_record(place) and before.part < OF_LINES_MIN
        return few_had_it or few_of_lines or place in filled_later

    def is_accepted(place: str, at: datetime) -> bool:
        own = (f"{rows.resource}.values_gone", f"{rows.resource}.values_jumped")
        if any(accepted.is_changed(rule, place, at) for rule in own):
            return True
        form_changed = f"{rows.resource}.form_changed"
        return any(accepted.is_changed(form_changed, one, at) for one in places.holders(place))

    measures = (
        ("have a value", Measure("filled", places.filled, _is_halved, first, is_expected)),
        (
            "have a value other than 0",
            Measure("not zero", places.not_zero, _is_halved, first, is_expected),
        ),
    )
    found: set[str] = set()
    for words, measure in measures:
        for fall in rows.fallen(measure, is_accepted):
            if fall.place in found:
                continue
            found.add(fall.place)
            rule: Literal["values_gone", "values_jumped"] = (
                "values_gone" if fall.is_zero else "values_jumped"
            )
            yield rule, fall.place, fall.words(words)


def _filled_later(rows: RecentRows, places: RecentPlaces) -> set[str]:
    """The places of records that changed rows often get a value at: new rows may lack it, and nothing is wrong."""
    measure = Measure(FILLED_LATER, places.gained, lambda now, before: False)
    for _ in rows.fallen(measure, lambda place, at: False):
        pass  # it is recorded, and never falls
    key = {"resource": rows.resource, "measure": FILLED_LATER, "share": FILLED_LATER_MIN}
    return {place for (place,) in rows.build.execute(_FILLED_LATER, key).fetchall()}


def _is_halved(now: Share, before: Share) -> bool:
    return now.part * JUMP_FACTOR < before.part


class RecentPlaces:
    """Counts how many of the new or changed rows of a list have a value at each place."""

    def __init__(self, build: duckdb.DuckDBPyConnection, resource: str) -> None:
        self._build = build
        self._resource = resource
        self._names = field_names(build, resource)
        self._lists = list_fields(build, resource)
        self._holders: dict[str, list[str]] = {}
        self._of_record: set[str] = set()
        self._columns_by_table: dict[str, dict[str, str]] = {}

    def holders(self, place: str) -> list[str]:
        """A place, after the objects and lists that hold it."""
        return self._holders.get(place, [place])

    def is_of_record(self, place: str) -> bool:
        """Whether it is a column of the record itself, and not of its lines or a child table."""
        return place in self._of_record

    def gained(self, kind: RowKind) -> Iterator[Count]:
        """How many changed rows got a value that they had not before, or had as 0."""
        if kind == "new":
            return
        table = self._resource
        names = [name for name in self._values_of(table) if not self._is_moved(table, name)]
        sums = [
            f"{{n: {n}, hits: count_if(contains(s.gained, {sql_text(sql_name(name))})), rows: count(*)}}"
            for n, name in enumerate(names)
        ]
        if not sums:
            return
        sql = f"SELECT batch, unnest([{', '.join(sums)}], recursive := true) FROM {RECENT} s GROUP BY batch"
        for batch, n, hits, rows in self._build.execute(sql).fetchall():
            yield Count(batch, self._place(table, names[n]), Share(hits, rows))

    def filled(self, kind: RowKind) -> Iterator[Count]:
        """How many rows have a value; of changed rows, those that had none before do not count."""
        yield from self._columns(kind, is_zero_counted=False)
        if kind == "new":
            yield from self._child_tables()

    def not_zero(self, kind: RowKind) -> Iterator[Count]:
        """How many of the rows with a number, or with yes or no, have another one than 0 or false."""
        yield from self._columns(kind, is_zero_counted=True)

    @cached_property
    def _tables(self) -> list[str]:
        """The child tables of the list."""
        tables = table_names(self._build, "raw")
        return [one for one in tables if one.startswith(f"{self._resource}__")]

    def _columns(self, kind: RowKind, *, is_zero_counted: bool) -> Iterator[Count]:
        tables = self._tables if kind == "new" else []
        for table in (self._resource, *tables):
            columns = {
                name: of
                for name, of in self._values_of(table).items()
                if not self._is_moved(table, name)
            }
            if is_zero_counted:
                columns = {name: of for name, of in columns.items() if has_zero(of)}
            if columns:
                yield from self._count_columns(table, columns, kind, is_zero_counted)

    def _values_of(self, table: str) -> dict[str, str]:
        """The columns of a table that hold values of the platform, and their types."""
        if table not in self._columns_by_table:
            ours = (self._key(table), "position", *RESERVED)
            kinds = columns_of(self._build, f'raw."{table}"')
            of_platform = {name: of for name, of in kinds.items() if name not in ours}
            self._columns_by_table[table] = of_platform
        return self._columns_by_table[table]

    def _is_moved(self, table: str, column: str) -> bool:
        """Whether the field of a column is in a child table since it turned out to be in a list."""
        keys = field_keys(self._names, table, column)
        own = len(field_keys(self._names, table, ""))
        return any(tuple(keys[:length]) in self._lists for length in range(own + 1, len(keys)))

    def _count_columns(
        self, table: str, columns: Mapping[str, str], kind: RowKind, is_zero_counted: bool
    ) -> Iterator[Count]:
        hits: list[str] = []
        rows: list[str] = []
        for name, of in columns.items():
            column = sql_name(name)
            is_filled = f"NOT {is_empty(f'r.{column}', of)}"
            was_filled = f"({is_filled} OR contains(s.lost, {sql_text(column)}))"
            if is_zero_counted:
                hits.append(f"{is_filled} AND NOT {is_zero(f'r.{column}', of)}")
                rows.append(is_filled)
            else:
                hits.append(is_filled)
                rows.append("true" if kind == "new" else was_filled)
        # A record counts once, however many lines it has: they are alike.
        of_record = [
            f"bool_or({hit}) AS hit_{n}, bool_or({row}) AS row_{n}"
            for n, (hit, row) in enumerate(zip(hits, rows, strict=True))
        ]
        sums = [
            f"{{n: {n}, hits: count_if(hit_{n}), rows: count_if(row_{n})}}"
            for n in range(len(columns))
        ]
        sql = f"""
            SELECT batch, unnest([{", ".join(sums)}], recursive := true) FROM (
                SELECT s.batch, s.id, {", ".join(of_record)}
                FROM {RECENT} s JOIN raw."{table}" r ON r.{sql_name(self._key(table))} = s.id
                WHERE r._missing_since IS NULL GROUP BY s.batch, s.id)
            GROUP BY batch"""
        places = [self._place(table, name) for name in columns]
        for batch, n, hit_count, row_count in self._build.execute(sql).fetchall():
            yield Count(batch, places[n], Share(hit_count, row_count))

    def _child_tables(self) -> Iterator[Count]:
        """How many records have a row in each child table."""
        for table in self._tables:
            key = sql_name(self._key(table))
            sql = f"""
                SELECT s.batch, count_if(c.id IS NOT NULL), count(*)
                FROM {RECENT} s LEFT JOIN (
                    SELECT DISTINCT {key} AS id FROM raw."{table}" WHERE _missing_since IS NULL) c USING (id)
                JOIN raw."{self._resource}" r ON r.id = s.id
                WHERE r._missing_since IS NULL GROUP BY s.batch"""
            place = self._place(table, "")
            for batch, hits, rows in self._build.execute(sql).fetchall():
                yield Count(batch, place, Share(hits, rows))

    def _key(self, table: str) -> str:
        return KEY_COLUMN if table == self._resource else parent_key(RECORDS[self._resource])

    def _place(self, table: str, column: str) -> str:
        """How findings name a column, or a child table without one."""
        holders = field_places(self._resource, self._names, field_keys(self._names, table, column))
        place = holders[-1] if holders else f"{table}: {column}" if column else table
        self._holders[place] = holders or [place]
        if table == self._resource:
            self._of_record.add(place)
        return place
