"""Loaded rows become the raw tables: first seen, last seen, missing since (design §6, §7).

In: a build, and this run's rows as dlt loaded them. Out: `raw.*` in the build. Set-based SQL inside DuckDB; every
statement works on a whole table. Deletions are marked, never made, and only from a complete walk.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

import duckdb
import pyarrow as pa

from sources.contract import LISTS, Record
from sources.decode.table_schema import schema_of
from sources.extract.result import ListResult

BOOKKEEPING: Final = {
    "_run_id": "VARCHAR",
    "_first_seen_at": "TIMESTAMPTZ",
    "_last_seen_at": "TIMESTAMPTZ",
    "_missing_since": "TIMESTAMPTZ",
}
LOADED: Final = "load.loaded"
"""Catalog and dataset that dlt filled."""
SHRINK_SHARE: Final = 0.02
SHRINK_ROWS: Final = 5
_EXACT_DOUBLE: Final = 2**53


@dataclass(frozen=True, slots=True)
class MergeCounts:
    """What a run did to one raw table: rows new, changed, again there, newly missing; rows in it now."""

    new: int
    changed: int
    returned: int
    newly_missing: int
    present: int


def create_missing(build: duckdb.DuckDBPyConnection) -> None:
    """Makes the tables that the interface names, where there is none yet: a query never fails for want of one."""
    build.execute("CREATE SCHEMA IF NOT EXISTS raw")
    for operation in LISTS.values():
        record = operation.records
        for table, columns in _declared(record).items() if record else ():
            listed = ", ".join(f'"{name}" {kind}' for name, kind in {**columns, **BOOKKEEPING}.items())
            build.execute(f'CREATE TABLE IF NOT EXISTS raw."{table}" ({listed})')


def _declared(record: Record) -> dict[str, dict[str, str]]:
    """Columns and DuckDB types of a record's tables. An order's are not shown: its key and `_extra` are there."""
    if not record.fields:
        return {record.name: {"id": "VARCHAR", "_extra": "VARCHAR"}}
    return {
        table: {field.name: _duckdb_type(field.type) for field in schema if field.name not in ("_page", "_position")}
        for table, schema in schema_of(record).items()
    }


def _duckdb_type(kind: pa.DataType) -> str:
    names = {pa.string(): "VARCHAR", pa.int64(): "BIGINT", pa.int32(): "INTEGER", pa.bool_(): "BOOLEAN"}
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    return "DATE" if pa.types.is_date(kind) else names[kind]


def newly_missing(build: duckdb.DuckDBPyConnection, resource: str) -> tuple[int, int]:
    """Rows that were there and are not among the loaded ones, and how many were there."""
    sql = f"""
        SELECT count(*) FILTER (l.id IS NULL), count(*)
        FROM raw."{resource}" o LEFT JOIN {LOADED}."{resource}" l USING (id)
        WHERE o._missing_since IS NULL"""
    missing, present = build.execute(sql).fetchone() or (0, 0)
    return int(missing), int(present)


def shrink_reason(walk: ListResult, missing: int, present: int) -> str:
    """Why a list lost more records than is plausible (design §7); empty where it did not.

    Records are counted by id: another organization's list may be as long as the one before.

    Args:
        walk: the list.
        missing: known records that are not in it.
        present: known records.
    """
    if not present:
        return ""
    quarantined = len({row.row_hash for row in walk.quarantined})
    if not walk.distinct:
        cause = f"all {quarantined} rows were quarantined" if quarantined else "the list is empty"
        return f"{cause}, and {present} records are known"
    if missing * 2 > present:
        cause = f", with {quarantined} rows quarantined" if quarantined else ""
        return f"{missing} of {present} known records are not in the list any more (more than half){cause}"
    if walk.verdict == "complete" and missing > max(SHRINK_ROWS, SHRINK_SHARE * present):
        return f"{missing} of {present} known records are not in the list any more"
    return ""


def merge(build: duckdb.DuckDBPyConnection, walked: ListResult, run_id: str, at: datetime) -> MergeCounts:
    """Replaces a list's raw tables by this run's rows, and the rows of before that did not come.

    A child's row was first and last seen, and is missing, as the record is that it belongs to: the list's own table is
    therefore the last to be replaced.

    Args:
        build: the build, with dlt's rows attached as `load`.
        walked: the list; `complete` marks what did not come as missing.
        run_id: this run.
        at: the instant that it saw the rows.
    """
    resource = walked.resource
    before = _children(build, resource)
    change = _change(build, resource, walked.verdict == "complete")
    marked = "coalesce(o._missing_since, $at)" if walked.verdict == "complete" else "o._missing_since"
    key = f"{resource.removesuffix('s')}_id"
    parameters = {"run": run_id, "at": at}
    for table in dict.fromkeys([*(name for name in walked.files if name != resource), *before, resource]):
        of = "id" if table == resource else key
        is_kept, parts = table == resource or table in before, []
        if table in walked.files:
            if is_kept:
                _align(build, table, resource, of)
            parts.append(f"""
                SELECT l.*, $run AS _run_id, coalesce(o._first_seen_at, $at::TIMESTAMPTZ) AS _first_seen_at,
                    $at::TIMESTAMPTZ AS _last_seen_at, NULL::TIMESTAMPTZ AS _missing_since
                FROM {LOADED}."{table}" l LEFT JOIN raw."{resource}" o ON o.id = l."{of}"
                """)
        if is_kept:
            parts.append(f"""
                SELECT o.* REPLACE ({marked}::TIMESTAMPTZ AS _missing_since)
                FROM raw."{table}" o ANTI JOIN {LOADED}."{resource}" l ON l.id = o."{of}"
                """)
        sql = f'CREATE OR REPLACE TABLE raw."{table}" AS {" UNION ALL BY NAME ".join(parts)}'
        build.execute(sql, {name: value for name, value in parameters.items() if f"${name}" in sql})
    return change


def _children(build: duckdb.DuckDBPyConnection, resource: str) -> list[str]:
    sql = "SELECT table_name FROM duckdb_tables() WHERE schema_name = 'raw' AND starts_with(table_name, $1)"
    return [name for (name,) in build.execute(sql, [f"{resource}__"]).fetchall()]


def columns_of(build: duckdb.DuckDBPyConnection, table: str) -> dict[str, str]:
    """Names and types of a table's columns, in order."""
    return {name: kind for name, kind, *_ in build.execute(f"DESCRIBE {table}").fetchall()}


def _change(build: duckdb.DuckDBPyConnection, resource: str, complete: bool) -> MergeCounts:
    old, new = columns_of(build, f'raw."{resource}"'), columns_of(build, f'{LOADED}."{resource}"')
    shared = [name for name in new if name in old and name != "id"]
    added = [name for name in new if name not in old]
    differs = [f'l."{name}"::VARCHAR IS DISTINCT FROM o."{name}"::VARCHAR' for name in shared]
    differs += [f'l."{name}" IS NOT NULL' for name in added]
    sql = f"""
        SELECT count(*) FILTER (o.id IS NULL),
            count(*) FILTER (o.id IS NOT NULL AND ({" OR ".join(differs) or "false"})),
            count(*) FILTER (o._missing_since IS NOT NULL), count(*)
        FROM {LOADED}."{resource}" l LEFT JOIN raw."{resource}" o USING (id)"""
    new_rows, changed, returned, came = build.execute(sql).fetchone() or (0, 0, 0, 0)
    missing, _ = newly_missing(build, resource)
    return MergeCounts(new_rows, changed, returned, missing if complete else 0, came + (0 if complete else missing))


def _align(build: duckdb.DuckDBPyConnection, table: str, resource: str, key: str) -> None:
    """Gives a column whose type changed between runs the type that holds its new values and those that are kept.

    Only undocumented fields change type (design §6); text holds what nothing narrower holds exactly. What replaced
    rows held does not count: a column is as narrow again as its values are.

    Args:
        build: the build, with dlt's rows attached as `load`.
        table: of `resource`, or one of its child tables.
        resource: the list.
        key: the column of `table` that holds the ids of `resource`.
    """
    old, new = columns_of(build, f'raw."{table}"'), columns_of(build, f'{LOADED}."{table}"')
    kept = f'FROM raw."{table}" o ANTI JOIN {LOADED}."{resource}" l ON l.id = o."{key}"'
    for name, kind in new.items():
        if name not in old or old[name] == kind:
            continue
        exact = f'try_cast("{name}" AS {kind})'
        unfit = f'SELECT count("{name}") FILTER ({exact} IS NULL OR {exact}::VARCHAR <> "{name}"::VARCHAR) {kept}'
        if not _number(build, unfit.replace(f'"{name}"', f'o."{name}"')):
            build.execute(f'ALTER TABLE raw."{table}" ALTER "{name}" SET DATA TYPE {kind} USING {exact}')
            continue
        common = "VARCHAR"
        if {old[name], kind} == {"BIGINT", "DOUBLE"}:
            integers = f'raw."{table}"' if old[name] == "BIGINT" else f'{LOADED}."{table}"'
            largest = _number(build, f'SELECT coalesce(max(abs("{name}"::HUGEINT)), 0) FROM {integers}')
            common = "DOUBLE" if largest <= _EXACT_DOUBLE else common
        elif {old[name], kind} == {"INTEGER", "BIGINT"}:
            common = "BIGINT"
        for which in (f'raw."{table}"', f'{LOADED}."{table}"'):
            build.execute(f'ALTER TABLE {which} ALTER "{name}" SET DATA TYPE {common}')


def _number(build: duckdb.DuckDBPyConnection, sql: str) -> int:
    ((number,),) = build.execute(sql).fetchall()
    return int(number)
