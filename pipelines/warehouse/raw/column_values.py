"""The values of each column of the raw tables, counted at every whole read of a list.

In: a build whose raw tables were just merged. Out: `ops.column_values`, the columns and child tables that had values
and have none, and the columns whose values jumped. Of the values themselves, only the least and the largest number or
date of a column are kept. A read is compared with the one before and with the oldest one of the last 30 days. Reads
whose values had jumped are left out, and so are those before a jump that a person accepted. The new and changed rows of
a pull are judged by themselves as well: `recent_values`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

import duckdb
import msgspec

from orderbridge.pipelines.warehouse.answers.accepted import Accepted
from orderbridge.pipelines.warehouse.ops import record_totals
from orderbridge.pipelines.warehouse.raw.field_kinds import place
from orderbridge.pipelines.warehouse.raw.merge import NUMBERS, is_empty, is_zero
from orderbridge.pipelines.warehouse.raw.schema_changes import field_names
from orderbridge.pipelines.warehouse.sql import columns_of, sql_text
from orderbridge.sources.decode.column_kinds import path_text
from orderbridge.sources.decode.inferred_tables import CHILD_TABLES, RESERVED, FieldNames
from orderbridge.sources.errors import BridgeError
from orderbridge.sources.extract.result import ListResult

HAD_MIN: Final = 5
"""A column is missed if it had this many values, or values in half of the records: rarer ones go with their orders."""
JUMP_MIN: Final = 20
"""Values that a column must have had, or lost, for a jump: the shares of fewer values move far by chance."""
JUMP_FACTOR: Final = 2
SCALE_FACTOR: Final = 10
"""Least factor by which shares and different values fall, and by which all numbers change, in a jump."""
COMPARED_WITHIN: Final = timedelta(days=30)
_ORDERED: Final = (*NUMBERS, "DATE", "TIMESTAMP")
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
        FROM ops.column_values WHERE run_id <> $run AND jump IS NULL
        QUALIFY row_number() OVER (PARTITION BY table_name, column_name ORDER BY rowid DESC) = 1
            OR recorded_at >= $since
            AND row_number() OVER (PARTITION BY table_name, column_name, recorded_at >= $since ORDER BY rowid) = 1),
    counted AS (
        SELECT *, rows - nulls AS filled, filled - zeros AS others, try_cast(minimum AS DECIMAL(36, 9)) AS least,
            try_cast(maximum AS DECIMAL(36, 9)) AS most, zeros IS NULL AS is_text
        FROM ops.column_values),
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
    WHERE v.run_id = $run AND v.table_name = last.table_name AND v.column_name = last.column_name"""
"""How the values of a read jumped from those of earlier ones, in words without a value; where none is left, see
`gone_values`."""
_JUMPS: Final = f"""
    SELECT table_name, column_name, jump, recorded_at, run_id = ({_LAST}) FROM ops.column_values
    WHERE resource = $resource AND jump <> '' ORDER BY ALL"""
_FORGET: Final = """
    UPDATE ops.column_values SET jump = if(recorded_at < $at, '', NULL)
    WHERE resource = $resource AND table_name = $table AND column_name = $column AND recorded_at <= $at"""


def record_column_values(
    build: duckdb.DuckDBPyConnection, run_id: str, at: datetime, lists: Iterable[ListResult]
) -> None:
    """Counts the rows that walks brought into the raw tables of their lists, and after a whole read their values.

    Raises:
        BridgeError: a raw table does not have the rows that were loaded.
    """
    accepted = Accepted.read(datetime.now(UTC))
    for walked in lists:
        _record_values(build, run_id, at, walked)
        if walked.is_whole:
            forget_accepted_jumps(build, walked.resource, accepted)
    build.execute(_RECORD_JUMPS, {"run": run_id, "since": at - COMPARED_WITHIN})


def _record_values(
    build: duckdb.DuckDBPyConnection, run_id: str, at: datetime, walked: ListResult
) -> None:
    for table in walked.files:
        _check_loaded(build, run_id, walked, table)
    if not walked.is_whole:
        return
    for table in walked.files:
        columns = columns_of(build, f'raw."{table}"')
        counts = ", ".join(
            _counts(name, kind) for name, kind in columns.items() if name not in RESERVED
        )
        build.execute(
            f"""INSERT INTO ops.column_values BY NAME
            SELECT $run AS run_id, $list AS resource, $table AS table_name, *, $at AS recorded_at
            FROM (SELECT unnest([{counts}], recursive := true) FROM raw."{table}" WHERE _run_id = $run)""",
            {"run": run_id, "list": walked.resource, "table": table, "at": at},
        )


def _check_loaded(
    build: duckdb.DuckDBPyConnection, run_id: str, walked: ListResult, table: str
) -> None:
    """Records how many rows a raw table has of a walk. Raises BridgeError where it has not all that were loaded."""
    sql = f'SELECT count(*) FROM raw."{table}" WHERE _run_id = $1'
    ((rows,),) = build.execute(sql, [run_id]).fetchall()
    loaded = sum(count for _, count in walked.files[table])
    if rows != loaded:
        raise BridgeError(
            f"{table}: {loaded} rows were loaded, {rows} of them are in its raw table"
        )
    listed = {"listed": walked.items[table]} if table != walked.resource else {}
    record_totals(build, run_id, f"raw.{table}", {**listed, "loaded": loaded, "raw": rows})


def _counts(name: str, kind: str) -> str:
    """What is counted of a column, as a struct in SQL; an empty text, list or object is no value."""
    column = f'"{name}"'
    zeros = f"count_if({is_zero(column, kind)})" if has_zero(kind) else "NULL::BIGINT"
    least, largest = (
        f"{limit}({column})" if kind.startswith(_ORDERED) else "NULL" for limit in ("min", "max")
    )
    return (
        f"{{column_name: {sql_text(name)}, rows: count(*), nulls: count_if({is_empty(column, kind)}), zeros: {zeros}, "
        f'"distinct": approx_count_distinct({column}), minimum: {least}::VARCHAR, maximum: {largest}::VARCHAR}}'
    )


def has_zero(kind: str) -> bool:
    """Whether a type has the number 0 or false."""
    return kind == "BOOLEAN" or kind.startswith(NUMBERS)


def gone_values(
    build: duckdb.DuckDBPyConnection, resource: str, accepted: Accepted
) -> Iterator[tuple[str, str]]:
    """The columns and child tables of a list that had values and have none, until a person accepts it.

    Yields:
        The place, as findings name it (`field_kinds.place`), and what it had.
    """
    gone = build.execute(_GONE, {"resource": resource}).fetchall()
    if not gone:
        return
    names = field_names(build, resource)
    filled_columns = build.execute(_FILLED, [resource]).fetchall()
    filled_fields = [field_keys(names, table, column) for table, column in filled_columns]
    gone_tables: list[list[str]] = []
    for row in gone:
        table, column, filled, at, rows, zeros = row
        is_table = not rows  # a child table without rows
        if is_table and column != "position":
            continue  # one of its columns stands for all
        keys = field_keys(names, table, "" if is_table else column)
        if keys and keys in filled_fields and not is_table:
            continue  # its values are in another table now: an object turned out to be a list
        is_in_gone_table = any(keys[: len(holder)] == holder for holder in gone_tables)
        if is_table and keys:
            gone_tables.append(keys)
        # The field itself, after the objects and lists that hold it: in another form they have other columns.
        places = field_places(resource, names, keys)
        own_place = table if is_table else f"{table}: {column}"
        where = places[-1] if places else own_place
        is_accepted = accepted.is_changed(f"{resource}.values_gone", where, at)
        for place_in_form in places:
            is_accepted |= accepted.is_changed(f"{resource}.form_changed", place_in_form, at)
        if not is_accepted and not is_in_gone_table:
            yield where, _gone_words(filled, rows, zeros)


def _gone_words(filled: int, rows: int | None, zeros: int) -> str:
    """What a column, or a child table without rows, had before and has now."""
    if not rows:
        return f"{filled} rows before, none now"
    none = "only 0" if zeros else "none"
    return f"{filled} values before, {none} in {rows} rows now"


def jumped_values(
    build: duckdb.DuckDBPyConnection, resource: str, accepted: Accepted
) -> Iterator[tuple[str, str]]:
    """The columns of a list whose values jumped in its last whole read, until a person accepts it.

    Yields:
        The place, as `gone_values` names it, and how they jumped.
    """
    forget_accepted_jumps(build, resource, accepted)
    names = field_names(build, resource)
    for table, column, text, _, is_last in build.execute(_JUMPS, {"resource": resource}).fetchall():
        if is_last:
            yield _place_of(resource, names, table, column), text


def forget_accepted_jumps(
    build: duckdb.DuckDBPyConnection, resource: str, accepted: Accepted
) -> None:
    """Forgets the jumps that a person accepted, whenever they were: such a read is the state to compare with now."""
    if accepted.is_empty:
        return
    names = field_names(build, resource)
    for table, column, _, at, _ in build.execute(_JUMPS, {"resource": resource}).fetchall():
        where = _place_of(resource, names, table, column)
        if accepted.is_changed(f"{resource}.values_jumped", where, at):
            values = {"resource": resource, "table": table, "column": column, "at": at}
            build.execute(_FORGET, values)


def _place_of(resource: str, names: FieldNames, table: str, column: str) -> str:
    """A column, as findings name places: as the field that it is of, where that is known."""
    places = field_places(resource, names, field_keys(names, table, column))
    return places[-1] if places else f"{table}: {column}"


def field_keys(names: FieldNames, table: str, column: str) -> list[str]:
    """The names that lead to the field of a column of an undocumented list, or to that of a child table."""
    paths = [path for path, name in names.get(CHILD_TABLES, {}).items() if name == table]
    paths += [path for path, name in names.get(table, {}).items() if name == column][-1:]
    return [key for path in paths for key in msgspec.json.decode(path, type=list[str])]


def field_places(resource: str, names: FieldNames, keys: list[str]) -> list[str]:
    """A field, after the objects and lists that hold it, as findings name places."""
    return [place(resource, path_text(keys[: n + 1]), names) for n in range(len(keys))]
