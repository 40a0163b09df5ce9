"""Loaded rows become the raw tables: first seen, last seen, missing since (docs/warehouse.md).

In: a build, and the loaded rows of this run as views. Out: `raw.*` in the build, in set-based SQL. Deletions are
marked, never made, and only from a complete walk.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event, Thread
from typing import Final, NamedTuple

import duckdb
import msgspec
import pyarrow as pa

from orderbridge.pipelines.warehouse.raw.load import LOADED
from orderbridge.pipelines.warehouse.raw.recovered_lists import recover_lists
from orderbridge.pipelines.warehouse.raw.schema_changes import field_names
from orderbridge.pipelines.warehouse.sql import columns_of, sql_name, sql_text, table_names
from orderbridge.sources.contract import RECORDS
from orderbridge.sources.decode.column_kinds import path_text
from orderbridge.sources.decode.inferred_tables import NOT_IN_RAW
from orderbridge.sources.decode.table_schema import (
    DECIMAL,
    KEY_COLUMN,
    PLACE,
    parent_key,
    schema_of,
)
from orderbridge.sources.decode.values import DECIMAL_TEXT, WHOLE_TEXT
from orderbridge.sources.errors import Stopped
from orderbridge.sources.extract.result import ListResult

_TIME: Final = pa.timestamp("us", "UTC")
_BOOKKEEPING: Final = pa.schema(
    {
        "_run_id": pa.string(),
        "_first_seen_at": _TIME,
        "_last_seen_at": _TIME,
        "_missing_since": _TIME,
    }
)
_EXAMPLES: Final = 3
_DECIMAL: Final = f"DECIMAL({DECIMAL.precision},{DECIMAL.scale})"
INTERRUPT_EVERY_S: Final = 0.02
NUMBERS: Final = ("BIGINT", "INTEGER", "DOUBLE", "DECIMAL")
"""How the types of numbers begin."""
DIFFERING_ROWS: Final = "differing_rows"
"""The rows of a list that are not as in its raw table: `id`, `is_new`, and of known rows the quoted names of the
columns in which they had a value and have none (`lost`), or had none, or 0, and have one (`gained`)."""


@dataclass(frozen=True, slots=True)
class MergeCounts:
    """The rows of a list compared with those of its raw table, by id.

    Attributes:
        new: not in the raw table.
        changed: another value in any column.
        missing: in the raw table, not marked, and not in the list.
        known: in the raw table and not marked.
        newly_missing: `missing`, where the list is complete; 0 otherwise.
    """

    new: int
    changed: int
    missing: int
    known: int
    newly_missing: int


def create_missing(build: duckdb.DuckDBPyConnection) -> None:
    """Makes the tables that the interface names, where there is none yet: a query never fails for want of one."""
    build.execute("CREATE SCHEMA IF NOT EXISTS raw")
    known = table_names(build, "raw")
    for record in RECORDS.values():
        # the fields of an order are not shown
        key = [] if record.fields else [pa.field("id", pa.string())]
        for table, schema in schema_of(record).items():
            if table in known:
                continue
            columns = [column for column in schema if column.name not in dict(PLACE)]
            # A reader and no table: pyarrow imports pandas to make one without rows, which takes 0.3 s.
            no_rows = pa.RecordBatchReader.from_batches(
                pa.schema([*key, *columns, *_BOOKKEEPING]), []
            )
            build.register("declared", no_rows)
            build.execute(f'CREATE TABLE raw."{table}" AS FROM declared')
            build.unregister("declared")


def rename_reserved(build: duckdb.DuckDBPyConnection) -> None:
    """Renames columns of fields whose name is reserved now, as walks name them, in the raw tables and their history."""
    columns = build.execute(
        """SELECT table_name, column_name FROM duckdb_columns()
        WHERE schema_name = 'raw' AND list_contains($1, column_name) ORDER BY ALL""",
        [sorted(NOT_IN_RAW)],
    ).fetchall()
    for table, column in columns:
        taken = columns_of(build, f'raw."{table}"')
        new = _free_name(column, taken)
        build.execute(f'ALTER TABLE raw."{table}" RENAME "{column}" TO "{new}"')
        build.execute(
            "UPDATE ops.column_values SET column_name = ? WHERE table_name = ? AND column_name = ?",
            [new, table, column],
        )


def _free_name(name: str, taken: Collection[str]) -> str:
    """The first of `name_2`, `name_3` … that is not taken."""
    number = 2
    while f"{name}_{number}" in taken:
        number += 1
    return f"{name}_{number}"


def is_empty(value: str, kind: str) -> str:
    """Whether a value of a type is none, as SQL: an empty text, list or object is no value."""
    is_blank = f"coalesce({value}, '') IN ('', '[]', '{{}}')"
    return f"({is_blank})" if kind == "VARCHAR" else f"({value} IS NULL)"


def compare(build: duckdb.DuckDBPyConnection, walked: ListResult) -> MergeCounts:
    """Counts what a merge would change; where the raw table has rows, the temporary `DIFFERING_ROWS` has which.

    Of a first read, all rows are new: there is no table of them.
    """
    resource = walked.resource
    loaded = f'{LOADED}."{resource}"'
    raw = f'raw."{resource}"'
    known = _number(build, f"SELECT count(*) FROM {raw} WHERE _missing_since IS NULL")
    if not _number(build, f"SELECT count(*) FROM {raw}"):
        return MergeCounts(_number(build, f"SELECT count(*) FROM {loaded}"), 0, 0, 0, 0)
    differences = _differences(build, walked)
    build.execute(f"""
        CREATE OR REPLACE TEMP TABLE {DIFFERING_ROWS} AS
        SELECT l.id, o.id IS NULL AS is_new, if(o.id IS NULL, '', {differences.lost}) AS lost,
            if(o.id IS NULL, '', {differences.gained}) AS gained
        FROM {loaded} l LEFT JOIN {raw} o ON l.id = o.id WHERE o.id IS NULL OR ({differences.differ})""")
    added = _number(build, f"SELECT count(*) FROM {DIFFERING_ROWS} WHERE is_new")
    changed = _number(build, f"SELECT count(*) FROM {DIFFERING_ROWS} WHERE NOT is_new")
    missing = _number(
        build,
        f"SELECT count(*) FROM {raw} o ANTI JOIN {loaded} l ON l.id = o.id WHERE o._missing_since IS NULL",
    )
    newly_missing = missing if walked.verdict == "complete" else 0
    return MergeCounts(added, changed, missing, known, newly_missing)


def is_zero(value: str, kind: str) -> str:
    """Whether a value of a type is the number 0 or false, as SQL; false of a type that has neither."""
    if kind == "BOOLEAN":
        return f"(NOT {value})"
    return f"({value} = 0)" if kind.startswith(NUMBERS) else "false"


def absent_ids(build: duckdb.DuckDBPyConnection, walked: ListResult) -> list[str]:
    """The ids of some known records that a walked list has no more."""
    sql = f"""
        SELECT o.id FROM raw."{walked.resource}" o ANTI JOIN {LOADED}."{walked.resource}" l ON l.id = o.id
        WHERE o._missing_since IS NULL ORDER BY o.id LIMIT {_EXAMPLES}"""
    return [str(key) for (key,) in build.execute(sql).fetchall()]


class _Differences(NamedTuple):
    """How loaded rows, `l`, differ from raw ones, `o`, as SQL: see `DIFFERING_ROWS`."""

    differ: str
    lost: str
    gained: str


def _differences(build: duckdb.DuckDBPyConnection, walked: ListResult) -> _Differences:
    resource = walked.resource
    old = columns_of(build, f'raw."{resource}"')
    new = columns_of(build, f'{LOADED}."{resource}"')
    for name in _empty_columns(build, walked, resource):
        del new[name]
    differs: list[str] = []
    lost: list[str] = ["NULL"]
    gained: list[str] = ["NULL"]
    for name, kind in new.items():
        loaded, stored = f'l."{name}"', f'o."{name}"'
        if name not in old:
            differs.append(f"{loaded} IS NOT NULL")
            continue
        if kind == old[name]:
            differs.append(f"{loaded} IS DISTINCT FROM {stored}")
        else:
            differs.append(f"{_text(loaded, kind)} IS DISTINCT FROM {_text(stored, old[name])}")
        is_lost = f"NOT {is_empty(stored, old[name])} AND {is_empty(loaded, kind)}"
        had_value = f"NOT {is_empty(stored, old[name])} AND NOT {is_zero(stored, old[name])}"
        has_value = f"NOT {is_empty(loaded, kind)} AND NOT {is_zero(loaded, kind)}"
        quoted = sql_text(sql_name(name))
        lost.append(f"if({is_lost}, {quoted}, NULL)")
        gained.append(f"if({has_value} AND NOT ({had_value}), {quoted}, NULL)")
    return _Differences(
        " OR ".join(differs),
        f"concat_ws(' ', {', '.join(lost)})",
        f"concat_ws(' ', {', '.join(gained)})",
    )


def merge_list(build: duckdb.DuckDBPyConnection, walked: ListResult, run_id: str) -> None:
    """Merges a list into its tables; its own one, whose times the child tables take over, is the last."""
    resource = walked.resource
    recover_lists(build, walked)
    for table in dict.fromkeys([*walked.files, *_children(build, resource)]):
        if table != resource:
            merge_table(build, walked, table, run_id)
    merge_table(build, walked, resource, run_id)


def merge_table(
    build: duckdb.DuckDBPyConnection, walked: ListResult, table: str, run_id: str
) -> None:
    """Replaces a raw table of a list by the loaded rows, and the earlier rows that are not among them.

    Where the list is `complete`, earlier rows that it lacks are marked as missing; otherwise they stay. A row of a
    child table has the times of the record that it belongs to.
    """
    resource = walked.resource
    # Without a join, DuckDB writes in parallel and to a smaller file.
    is_first = not _number(build, f'SELECT count(*) FROM raw."{resource}"')
    key = KEY_COLUMN if table == resource else parent_key(RECORDS[resource])
    exists = table == resource or table in _children(build, resource)
    parts: list[str] = []
    if table in walked.files:
        columns = "l.*"
        if exists:
            casts = {} if is_first else _align(build, walked, table, key)
            columns += _replacements(build, walked, table, casts)
        parts.append(_loaded_rows(resource, table, key, columns, is_first=is_first))
    if exists and not (is_first and parts):
        parts.append(_earlier_rows(walked, table, key))
    sql = f'CREATE OR REPLACE TABLE raw."{table}" AS {" UNION ALL BY NAME ".join(parts)}'
    parameters = {"run": run_id, "at": walked.ended_at}
    build.execute(sql, {name: value for name, value in parameters.items() if f"${name}" in sql})


def _replacements(
    build: duckdb.DuckDBPyConnection, walked: ListResult, table: str, casts: Mapping[str, str]
) -> str:
    """What a raw table does not take over of the loaded columns as they are, in SQL: none of a tail's empty ones."""
    empty = ", ".join(sql_name(name) for name in _empty_columns(build, walked, table))
    replaced = ", ".join(f"{value} AS {sql_name(name)}" for name, value in casts.items())
    excluded = f" EXCLUDE ({empty})" if empty else ""
    return f"{excluded} REPLACE ({replaced})" if replaced else excluded


def _loaded_rows(resource: str, table: str, key: str, columns: str, *, is_first: bool) -> str:
    """The loaded rows of a table, in SQL: seen now, and first where their record was."""
    # A clock that was ahead wrote times that are still to come.
    first_seen = "$at" if is_first else "least(o._first_seen_at, $at)"
    record = "" if is_first else f'LEFT JOIN raw."{resource}" o ON o.id = l."{key}"'
    return f"""
        SELECT {columns}, $run AS _run_id,
            {first_seen}::TIMESTAMPTZ AS _first_seen_at, $at::TIMESTAMPTZ AS _last_seen_at,
            NULL::TIMESTAMPTZ AS _missing_since
        FROM {LOADED}."{table}" l {record}
        """


def _earlier_rows(walked: ListResult, table: str, key: str) -> str:
    """The rows of a raw table whose record was not loaded, in SQL: missing from now on where the list is complete."""
    marked = (
        "coalesce(o._missing_since, $at)" if walked.verdict == "complete" else "o._missing_since"
    )
    return f"""
        SELECT o.* REPLACE (
            least(o._first_seen_at, {marked})::TIMESTAMPTZ AS _first_seen_at,
            least(o._last_seen_at, {marked})::TIMESTAMPTZ AS _last_seen_at,
            {marked}::TIMESTAMPTZ AS _missing_since)
        FROM raw."{table}" o ANTI JOIN {LOADED}."{walked.resource}" l ON l.id = o."{key}"
        """


def _children(build: duckdb.DuckDBPyConnection, resource: str) -> list[str]:
    return [name for name in table_names(build, "raw") if name.startswith(f"{resource}__")]


def _empty_columns(build: duckdb.DuckDBPyConnection, walked: ListResult, table: str) -> list[str]:
    """Columns of a tail that its raw table lacks and that hold nothing.

    An object or a list that is empty in each row of a tail is a column. Earlier reads have it as columns of its fields,
    or as a child table.
    """
    if walked.is_whole:
        return []
    old = columns_of(build, f'raw."{table}"')
    new = [name for name in columns_of(build, f'{LOADED}."{table}"') if name not in old]
    filled = (
        f"""FROM {LOADED}."{table}" SELECT count(*) FILTER ("%s"::VARCHAR NOT IN ('{{}}', '[]'))"""
    )
    return [name for name in new if not _number(build, filled % name)]


def _align(
    build: duckdb.DuckDBPyConnection, walked: ListResult, table: str, key: str
) -> dict[str, str]:
    """Gives a raw column whose type changed between runs the type that holds its new values and those that are kept.

    Only undocumented fields change type. After a whole read a column has the type that was decided, and not that of a
    text in an order that is listed no more: that text stays in `_extra`, and so does a number that decimals round.

    Returns:
        The values of loaded columns that have to be cast, as SQL.
    """
    resource = walked.resource
    old = columns_of(build, f'raw."{table}"')
    new = columns_of(build, f'{LOADED}."{table}"')
    kept = f'raw."{table}" o ANTI JOIN {LOADED}."{resource}" l ON l.id = o."{key}"'
    casts: dict[str, str] = {}
    for name, kind in new.items():
        if name not in old or old[name] == kind:
            continue
        common = _common_type(build, table, name, (old[name], kind), kept)
        if walked.is_whole and common == "VARCHAR":
            common = kind
        casts[name] = _cast(f'l."{name}"', kind, common)
        if common != old[name]:
            _set_beside(build, table, name, old[name], common)
            stored = _cast(f'"{name}"', old[name], common)
            build.execute(
                f'ALTER TABLE raw."{table}" ALTER "{name}" SET DATA TYPE {common} USING {stored}'
            )
    return casts


def _common_type(
    build: duckdb.DuckDBPyConnection, table: str, name: str, kinds: tuple[str, str], kept: str
) -> str:
    """The narrowest type that holds the loaded values of a column and its `kept` ones, at worst text.

    Values of replaced rows do not count. Decimals hold every number that they round.
    """
    old, new = kinds
    if not _number(build, f'SELECT count("{name}") FROM {LOADED}."{table}"'):
        return old  # nulls have no type
    value = f'o."{name}"'
    numbers = [_DECIMAL] if {old, new} <= {"BIGINT", _DECIMAL, "DOUBLE"} else []
    for kind in (new, *numbers):
        unfit = f"count({value}) FILTER (NOT {_fits(value, old, kind)})"
        if not _number(build, f"SELECT {unfit} FROM {kept}"):
            return kind
    return "VARCHAR"


def _set_beside(
    build: duckdb.DuckDBPyConnection, table: str, name: str, kind: str, to: str
) -> None:
    """Copies what another type does not hold exactly from a raw column to `_extra`, by the path of its field.

    A value that does not fit is then null in its column, as odd values are. A number that is rounded stays there.
    """
    names = field_names(build, table.partition("__")[0]).get(table, {})
    keys = next((path for path, column in names.items() if column == name), path_text([name]))
    field = ".".join(msgspec.json.decode(keys, type=list[str]))
    value = f'"{name}"'
    text = _text(value, kind)
    fits = _fits(value, kind, to)
    is_exact = (
        "true" if to == "VARCHAR" else f"{_text(_cast(value, kind, to), to)} = {_plain(text)}"
    )
    # No JSON is parsed: its numbers are exact.
    # Another field may have the same path (`keep_odd`).
    member = f"""to_json(if(list_contains(json_keys(_extra), $1), $2, $1))::VARCHAR || ':' || CASE
        WHEN {fits} THEN {text} ELSE coalesce(to_json({text})::VARCHAR, 'null') END"""
    build.execute(
        f"""UPDATE raw."{table}"
        SET _extra = '{{' || {member} || coalesce(',' || substr(_extra, 2), '}}'), {value} = if({fits}, {value}, NULL)
        WHERE {value} IS NOT NULL AND NOT ({fits} AND {is_exact})""",
        [field, keys],
    )


def _fits(value: str, kind: str, to: str) -> str:
    """Whether another type holds a value that is not null, in SQL: exactly, but for decimals, which are rounded."""
    cast = _cast(value, kind, to)
    if to == _DECIMAL and kind == "DOUBLE":
        return f"{cast} IS NOT NULL"
    pattern = {"BIGINT": WHOLE_TEXT, _DECIMAL: DECIMAL_TEXT}.get(to)
    if kind == "VARCHAR" and pattern is not None:
        return f"({cast} IS NOT NULL AND regexp_matches({value}, '{pattern}'))"
    return f"{_text(cast, to)} IS NOT DISTINCT FROM {_text(value, kind)}"


def _cast(value: str, kind: str, to: str) -> str:
    """A value of a type as one of another type, in SQL; null if it has none there. Decimals are rounded half up."""
    if to == "VARCHAR":
        return _text(value, kind)
    if kind == "DOUBLE" and to == _DECIMAL:
        # Cast directly, a large number gets other last digits. As text, DuckDB 1.5 makes a whole unit of the last
        # decimal of some numbers below half a unit, such as 5.6e-14.
        half_unit = f"5e-{DECIMAL.scale + 1}"
        return f"if(abs({value}) < {half_unit}, 0, try_cast({value}::VARCHAR AS {to}))"
    return f"try_cast({value} AS {to})"


def _text(value: str, kind: str) -> str:
    """A value as text, in SQL: a number in plain form, as the text of a number is read (`10` for 10.0)."""
    if kind == "DOUBLE":  # which version 0.2 made
        decimal = _cast(value, kind, _DECIMAL)
        plain = f"if({decimal}::DOUBLE = {value}, {_text(decimal, _DECIMAL)}, {value}::VARCHAR)"
        return f"CASE WHEN isfinite({value}) THEN {plain} END"
    return f"rtrim(rtrim({value}::VARCHAR, '0'), '.')" if kind == _DECIMAL else f"{value}::VARCHAR"


def _plain(text: str) -> str:
    """A text, without the zeros after its last decimal if it is a number, in SQL."""
    return f"regexp_replace({text}, '\\.0+$|(\\.[0-9]*[1-9])0+$', '\\1')"


def _number(build: duckdb.DuckDBPyConnection, sql: str) -> int:
    ((number,),) = build.execute(sql).fetchall()
    return int(number)


@contextmanager
def interruptible(
    build: duckdb.DuckDBPyConnection, stop: Event
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A cursor of a build. Raises Stopped once `stop` is set, also while the cursor runs a statement."""
    has_ended = Event()

    def watch(cursor: duckdb.DuckDBPyConnection) -> None:
        while not has_ended.wait(INTERRUPT_EVERY_S):
            if stop.is_set():
                cursor.interrupt()

    with build.cursor() as cursor:
        watcher = Thread(target=watch, args=(cursor,), name="watch", daemon=True)
        watcher.start()
        try:
            if stop.is_set():
                raise Stopped("the merge was stopped")
            yield cursor
        except duckdb.InterruptException:
            if stop.is_set():
                raise Stopped("the merge was stopped") from None
            raise
        finally:
            has_ended.set()
            watcher.join()  # a cursor that is closed cannot be interrupted
