"""The values of each column of the raw tables, counted at every whole read of a list.

In: a build whose raw tables were just merged. Out: `ops.column_values`, the columns and child tables that had values
and have none, and the columns whose values jumped. No value is kept but the least and the largest of numbers and
dates. A read is compared with the last one and the oldest one of a month, but for those that had jumped themselves,
and those from before a jump that a person accepted. The new and changed rows of a pull are judged by themselves as well
(`recent_losses`): there, the unit is the record, so that one order of thirty lines counts once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

import duckdb
import msgspec

from orderbridge.pipelines.warehouse.accepted import Accepted
from orderbridge.pipelines.warehouse.field_kinds import list_fields, place
from orderbridge.pipelines.warehouse.merge import is_empty
from orderbridge.pipelines.warehouse.ops import record_totals
from orderbridge.pipelines.warehouse.recent_rows import RECENT, Count, Measure, RecentRows, RowKind
from orderbridge.pipelines.warehouse.schema_changes import field_names
from orderbridge.pipelines.warehouse.sql import columns_of, sql_name, sql_text, table_names
from orderbridge.sources.contract import RECORDS
from orderbridge.sources.decode.schema_inference import (
    CHILD_TABLES,
    RESERVED,
    FieldNames,
    path_text,
)
from orderbridge.sources.decode.table_schema import KEY_COLUMN, parent_key
from orderbridge.sources.errors import BridgeError
from orderbridge.sources.extract.result import ListResult
from orderbridge.transforms.chance import Share

HAD_MIN: Final = 5
"""Values that a column must have had to be missed, or half as many as there are records: rare ones go with orders."""
JUMP_MIN: Final = 20
"""Values that a column must have had, or lost, for a jump: in fewer, chance moves shares far."""
JUMP_FACTOR: Final = 2
SCALE_FACTOR: Final = 10
"""Least factor by which shares and different values fall, and by which all numbers change, in a jump."""
COMPARED_WITHIN: Final = timedelta(days=30)
_NUMBERS: Final = ("BIGINT", "INTEGER", "DOUBLE", "DECIMAL")
_ORDERED: Final = (*_NUMBERS, "DATE", "TIMESTAMP")
_LAST: Final = "SELECT arg_max(run_id, rowid) FROM ops.column_values WHERE resource = $resource"
_GONE: Final = f"""
    WITH counted AS (
        SELECT *, rows - nulls - if(maximum IS NULL, 0, zeros) AS filled,
            max(rows) FILTER (table_name = $resource) OVER (PARTITION BY run_id) AS records
        FROM ops.column_values WHERE resource = $resource),
    now AS (FROM counted WHERE run_id = ({_LAST}))
    SELECT h.table_name, h.column_name, max(h.filled), max(h.recorded_at),
        (SELECT max(rows) FROM now WHERE table_name = h.table_name),
        coalesce((SELECT max(zeros) FROM now WHERE (table_name, column_name) = (h.table_name, h.column_name)), 0)
    FROM counted h ANTI JOIN (FROM now WHERE filled > 0) n USING (table_name, column_name)
    WHERE h.filled > 0 AND EXISTS (FROM now WHERE table_name = $resource AND rows > 0)
    GROUP BY ALL HAVING bool_or(h.filled >= {HAD_MIN} OR h.filled * 2 >= h.records) ORDER BY ALL"""
_FELL: Final = (
    f"{{0}} / {{1}} * {{3}} - {{2}} >= {JUMP_MIN} AND {{2}} * {JUMP_FACTOR} < {{0}} / {{1}} * {{3}}"
)
"""Whether a part of a whole (0 of 1) is far larger than it is now (2 of 3)."""
_FILLED: Final = f"""
    SELECT table_name, column_name FROM ops.column_values
    WHERE resource = $1 AND rows - nulls - if(maximum IS NULL, 0, zeros) > 0
        AND run_id = ({_LAST.replace("$resource", "$1")})"""
_RECORD_JUMPS: Final = f"""
    WITH compared AS (
        FROM ops.column_values WHERE resource = $resource AND run_id <> $run AND jump IS NULL
        QUALIFY row_number() OVER (PARTITION BY table_name, column_name ORDER BY rowid DESC) = 1
            OR recorded_at >= $since
            AND row_number() OVER (PARTITION BY table_name, column_name, recorded_at >= $since ORDER BY rowid) = 1),
    counted AS (
        SELECT *, rows - nulls AS filled, filled - zeros AS others, try_cast(minimum AS DECIMAL(36, 9)) AS least,
            try_cast(maximum AS DECIMAL(36, 9)) AS most, zeros IS NULL AS is_text
        FROM ops.column_values WHERE resource = $resource),
    found AS (
        SELECT n.table_name, n.column_name, c.recorded_at, CASE
            WHEN {_FELL.format("c.filled", "c.rows", "n.filled", "n.rows")} THEN format(
                '{{:.0f}}% of the rows have a value, {{:.0f}}% before',
                100.0 * n.filled / n.rows, 100.0 * c.filled / c.rows)
            WHEN {_FELL.format("c.others", "c.filled", "n.others", "n.filled")} THEN format(
                '{{:.0f}}% of the values are other than 0 or false, {{:.0f}}% before',
                100.0 * n.others / n.filled, 100.0 * c.others / c.filled)
            WHEN c."distinct" >= {JUMP_MIN} AND n.filled >= c.filled AND n."distinct" * {JUMP_FACTOR} < c."distinct"
                THEN format('{{}} different values, {{}} before', n."distinct", c."distinct")
            WHEN least(c.filled, n.filled) < {JUMP_MIN} THEN NULL
            WHEN c.is_text AND n.is_text AND (n.minimum > c.maximum OR n.maximum < c.minimum)
                THEN 'no value is between the first and the last of before'
            WHEN c.least > 0 AND c.least * {SCALE_FACTOR} <= n.least AND c.most * {SCALE_FACTOR} <= n.most
                THEN 'the least and the largest number are {SCALE_FACTOR} times those of before, or further from them'
            WHEN n.least > 0 AND n.least * {SCALE_FACTOR} <= c.least AND n.most * {SCALE_FACTOR} <= c.most
                THEN 'the least and the largest number are a tenth of those of before, or further from them' END AS jump
        FROM counted n JOIN (FROM counted SEMI JOIN compared USING (table_name, column_name, run_id)) c
            USING (table_name, column_name)
        WHERE n.run_id = $run AND n.filled > 0 AND c.filled > 0
            AND NOT (n.maximum IS NOT NULL AND n.others IS NOT DISTINCT FROM 0))
    UPDATE ops.column_values v SET jump = last.jump FROM (
        SELECT table_name, column_name, arg_max(jump, recorded_at) AS jump FROM found GROUP BY ALL) last
    WHERE v.run_id = $run AND v.resource = $resource
        AND v.table_name = last.table_name AND v.column_name = last.column_name"""
"""How the values of a read jumped from those of earlier ones, in words without a value; where none is left, see
`gone_values`."""
_JUMPS: Final = f"""
    SELECT table_name, column_name, jump, recorded_at, run_id = ({_LAST}) FROM ops.column_values
    WHERE resource = $resource AND jump <> '' ORDER BY ALL"""
_FORGET: Final = """
    UPDATE ops.column_values SET jump = if(recorded_at < $at, '', NULL)
    WHERE resource = $resource AND table_name = $table AND column_name = $column AND recorded_at <= $at"""


def record_column_values(
    build: duckdb.DuckDBPyConnection, run_id: str, at: datetime, walked: ListResult
) -> None:
    """Counts the rows that a walk brought into the raw tables of its list, and after a whole read their values.

    Raises:
        BridgeError: a raw table does not have the rows that were loaded.
    """
    for table, files in walked.files.items():
        ((rows,),) = build.execute(
            f'SELECT count(*) FROM raw."{table}" WHERE _run_id = $1', [run_id]
        ).fetchall()
        if rows != (loaded := sum(count for _, count in files)):
            raise BridgeError(
                f"{table}: {loaded} rows were loaded, {rows} of them are in its raw table"
            )
        listed = {"listed": walked.items[table]} if table != walked.resource else {}
        record_totals(build, run_id, f"raw.{table}", {**listed, "loaded": loaded, "raw": rows})
        if not walked.is_whole:
            continue
        own = {
            name: kind
            for name, kind in columns_of(build, f'raw."{table}"').items()
            if name not in RESERVED
        }
        counts = ", ".join(_counts(name, kind) for name, kind in own.items())
        build.execute(
            f"""INSERT INTO ops.column_values BY NAME
            SELECT $run AS run_id, $list AS resource, $table AS table_name, *, $at AS recorded_at
            FROM (SELECT unnest([{counts}], recursive := true) FROM raw."{table}" WHERE _run_id = $run)""",
            {"run": run_id, "list": walked.resource, "table": table, "at": at},
        )
    if walked.is_whole:
        list(
            jumped_values(build, walked.resource, Accepted.read(datetime.now(UTC)))
        )  # those accepted are forgotten
        values = {"resource": walked.resource, "run": run_id, "since": at - COMPARED_WITHIN}
        build.execute(_RECORD_JUMPS, values)


def _counts(name: str, kind: str) -> str:
    """What is counted of a column, as a struct in SQL; an empty text, list or object is no value."""
    column = f'"{name}"'
    is_zero = _is_zero(column, kind)
    zeros = f"count_if({is_zero})" if is_zero else "NULL::BIGINT"
    least, largest = (
        f"{limit}({column})" if kind.startswith(_ORDERED) else "NULL" for limit in ("min", "max")
    )
    return (
        f"{{column_name: {sql_text(name)}, rows: count(*), nulls: count_if({is_empty(column, kind)}), zeros: {zeros}, "
        f'"distinct": approx_count_distinct({column}), minimum: {least}::VARCHAR, maximum: {largest}::VARCHAR}}'
    )


def _is_zero(column: str, kind: str) -> str:
    """Whether a value is the number 0 or false, as SQL; empty of a type that has neither."""
    if kind == "BOOLEAN":
        return f"NOT {column}"
    return f"{column} = 0" if kind.startswith(_NUMBERS) else ""


def gone_values(
    build: duckdb.DuckDBPyConnection, resource: str, accepted: Accepted
) -> Iterator[tuple[str, str]]:
    """The columns and child tables of a list that had values and have none, until a person accepts it.

    Yields:
        The place, as findings name it (`field_kinds.place`), and what it had.
    """
    names, gone = field_names(build, resource), list[list[str]]()
    filled_columns = build.execute(_FILLED, [resource]).fetchall()
    filled_fields = [_keys(names, table, column) for table, column in filled_columns]
    for table, column, filled, at, rows, zeros in build.execute(
        _GONE, {"resource": resource}
    ).fetchall():
        if not rows and column != "position":
            continue  # of a child table without rows one column stands for all
        keys = _keys(names, table, column if rows else "")
        if rows and keys and keys in filled_fields:
            continue  # its values are in another table now: an object turned out to be a list
        # The field itself, after the objects and lists that hold it: in another form they have other columns.
        places = _places(resource, names, keys)
        where = places[-1] if places else f"{table}: {column}" if rows else table
        is_accepted = accepted.is_changed(f"{resource}.values_gone", where, at) or any(
            accepted.is_changed(f"{resource}.form_changed", one, at) for one in places
        )
        if not is_accepted and not any(keys[: len(holder)] == holder for holder in gone):
            none = "only 0" if zeros else "none"
            yield (
                where,
                f"{filled} {f'values before, {none} in {rows} rows' if rows else 'rows before, none'} now",
            )
        if not rows and keys:
            gone.append(keys)


def jumped_values(
    build: duckdb.DuckDBPyConnection, resource: str, accepted: Accepted
) -> Iterator[tuple[str, str]]:
    """The columns of a list whose values jumped in its last whole read, until a person accepts it.

    An accepted jump is forgotten, whenever it was: its read is the state to compare with, instead of earlier ones.

    Yields:
        The place, as `gone_values` names it, and how they jumped.
    """
    names = field_names(build, resource)
    for table, column, text, at, is_last in build.execute(
        _JUMPS, {"resource": resource}
    ).fetchall():
        where = [f"{table}: {column}", *_places(resource, names, _keys(names, table, column))][-1]
        if accepted.is_changed(f"{resource}.values_jumped", where, at):
            build.execute(
                _FORGET, {"resource": resource, "table": table, "column": column, "at": at}
            )
        elif is_last:
            yield where, text


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

    def is_accepted(place: str, at: datetime) -> bool:
        own = (f"{rows.resource}.values_gone", f"{rows.resource}.values_jumped")
        if any(accepted.is_changed(rule, place, at) for rule in own):
            return True
        form_changed = f"{rows.resource}.form_changed"
        return any(accepted.is_changed(form_changed, one, at) for one in places.holders(place))

    measures = (
        ("have a value", Measure("filled", places.filled, _is_halved, first)),
        (
            "have a value other than 0",
            Measure("not zero", places.not_zero, _is_halved, first),
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

    def holders(self, place: str) -> list[str]:
        """A place, after the objects and lists that hold it."""
        return self._holders.get(place, [place])

    def filled(self, kind: RowKind) -> Iterator[Count]:
        """How many rows have a value; of changed rows, those that had none before do not count."""
        yield from self._columns(kind, is_zero_counted=False)
        if kind == "new":
            yield from self._child_tables()

    def not_zero(self, kind: RowKind) -> Iterator[Count]:
        """How many of the rows with a number, or with yes or no, have another one than 0 or false."""
        yield from self._columns(kind, is_zero_counted=True)

    def _tables(self) -> list[str]:
        tables = table_names(self._build, "raw")
        return [one for one in tables if one.startswith(f"{self._resource}__")]

    def _columns(self, kind: RowKind, *, is_zero_counted: bool) -> Iterator[Count]:
        tables = self._tables() if kind == "new" else []
        for table in (self._resource, *tables):
            kinds = columns_of(self._build, f'raw."{table}"')
            key = self._key(table)
            columns = {
                name: type_name
                for name, type_name in kinds.items()
                if name not in (key, "position", *RESERVED) and not self._is_moved(table, name)
            }
            if is_zero_counted:
                columns = {name: of for name, of in columns.items() if _is_zero(name, of)}
            if columns:
                yield from self._count_columns(table, columns, kind, is_zero_counted)

    def _is_moved(self, table: str, column: str) -> bool:
        """Whether the field of a column is in a child table since it turned out to be in a list."""
        keys = _keys(self._names, table, column)
        own = len(_keys(self._names, table, ""))
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
                hits.append(f"{is_filled} AND NOT ({_is_zero(f'r.{column}', of)})")
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
        for table in self._tables():
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
        holders = _places(self._resource, self._names, _keys(self._names, table, column))
        place = holders[-1] if holders else f"{table}: {column}" if column else table
        self._holders[place] = holders or [place]
        return place


def _keys(names: FieldNames, table: str, column: str) -> list[str]:
    """The names that lead to the field of a column of an undocumented list, or to that of a child table."""
    paths = [path for path, name in names.get(CHILD_TABLES, {}).items() if name == table]
    paths += [path for path, name in names.get(table, {}).items() if name == column][-1:]
    return [key for path in paths for key in msgspec.json.decode(path, type=list[str])]


def _places(resource: str, names: FieldNames, keys: list[str]) -> list[str]:
    """A field, after the objects and lists that hold it, as findings name places."""
    return [place(resource, path_text(keys[: n + 1]), names) for n in range(len(keys))]
