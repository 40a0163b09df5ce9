"""The values of each column of the raw tables, counted at every whole read of a list.

In: a build whose raw tables were just merged. Out: `ops.column_values`, and the columns and child tables that had
values and have none any more. No value is kept but the least and the largest of numbers and dates.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

import duckdb
import msgspec

from pipelines.warehouse.accepted import Accepted
from pipelines.warehouse.field_kinds import place
from pipelines.warehouse.merge import columns_of
from pipelines.warehouse.ops import record_totals
from pipelines.warehouse.schema_changes import field_names
from pipelines.warehouse.sql import sql_text
from sources.decode.schema_inference import CHILD_TABLES, RESERVED, path_text
from sources.errors import BridgeError
from sources.extract.result import ListResult

HAD_MIN: Final = 5
"""Values that a column must have had to be missed, or values in half of the rows: rare ones go with their orders."""
_NUMBERS: Final = ("BIGINT", "INTEGER", "DOUBLE", "DECIMAL")
_ORDERED: Final = (*_NUMBERS, "DATE", "TIMESTAMP")
_GONE: Final = f"""
    WITH counted AS (FROM ops.column_values WHERE resource = $resource),
    now AS (FROM counted WHERE run_id = (
        SELECT arg_max(run_id, rowid) FROM ops.column_values WHERE resource = $resource))
    SELECT h.table_name, h.column_name, max(h.rows - h.nulls), max(h.recorded_at),
        (SELECT max(rows) FROM now WHERE table_name = h.table_name)
    FROM counted h ANTI JOIN (FROM now WHERE rows > nulls) n USING (table_name, column_name)
    WHERE h.rows > h.nulls AND EXISTS (FROM now WHERE table_name = $resource AND rows > 0)
    GROUP BY ALL HAVING bool_or(h.rows - h.nulls >= {HAD_MIN} OR (h.rows - h.nulls) * 2 >= h.rows) ORDER BY ALL"""


def record_column_values(build: duckdb.DuckDBPyConnection, run_id: str, at: datetime, walked: ListResult) -> None:
    """Counts the rows that a walk brought into the raw tables of its list, and after a whole read their values.

    Raises:
        BridgeError: a raw table does not have the rows that were loaded.
    """
    for table, files in walked.files.items():
        ((rows,),) = build.execute(f'SELECT count(*) FROM raw."{table}" WHERE _run_id = $1', [run_id]).fetchall()
        if rows != (loaded := sum(count for _, count in files)):
            raise BridgeError(f"{table}: {loaded} rows were loaded, {rows} of them are in its raw table")
        record_totals(build, run_id, f"raw.{table}", {"loaded": loaded, "raw": rows})
        if not walked.is_whole:
            continue
        own = {name: kind for name, kind in columns_of(build, f'raw."{table}"').items() if name not in RESERVED}
        counts = ", ".join(_counts(name, kind) for name, kind in own.items())
        build.execute(
            f"""INSERT INTO ops.column_values BY NAME
            SELECT $run AS run_id, $list AS resource, $table AS table_name, *, $at AS recorded_at
            FROM (SELECT unnest([{counts}], recursive := true) FROM raw."{table}" WHERE _run_id = $run)""",
            {"run": run_id, "list": walked.resource, "table": table, "at": at},
        )


def _counts(name: str, kind: str) -> str:
    """What is counted of a column, as a struct in SQL; an empty text, list or object is no value."""
    column = f'"{name}"'
    is_empty = f"{column} IS NULL" + (f" OR {column} IN ('', '[]', '{{}}')" if kind == "VARCHAR" else "")
    zeros = f"count_if({column} = 0)" if kind.startswith(_NUMBERS) else "NULL::BIGINT"
    least, largest = (f"{limit}({column})" if kind.startswith(_ORDERED) else "NULL" for limit in ("min", "max"))
    return (
        f"{{column_name: {sql_text(name)}, rows: count(*), nulls: count_if({is_empty}), zeros: {zeros}, "
        f'"distinct": approx_count_distinct({column}), minimum: {least}::VARCHAR, maximum: {largest}::VARCHAR}}'
    )


def gone_values(build: duckdb.DuckDBPyConnection, resource: str, accepted: Accepted) -> Iterator[tuple[str, str]]:
    """The columns and child tables of a list that had values and have none, until a person accepts it.

    Yields:
        The place, as findings name it (`field_kinds.place`), and what it had.
    """
    names, gone = field_names(build, resource), list[list[str]]()
    tables = {name: path for path, name in names.get(CHILD_TABLES, {}).items()}
    for table, column, filled, at, rows in build.execute(_GONE, {"resource": resource}).fetchall():
        if not rows and column != "position":
            continue  # of a child table without rows one column stands for all
        paths = [tables.get(table, "[]")]
        if rows:
            paths += [path for path, name in names.get(table, {}).items() if name == column][-1:]
        keys = [key for path in paths for key in msgspec.json.decode(path, type=list[str])]
        # The field itself, after the objects and lists that hold it: in another form they have other columns.
        places = [place(resource, path_text(keys[: n + 1]), names) for n in range(len(keys))]
        where = places[-1] if places else f"{table}: {column}" if rows else table
        is_accepted = accepted.is_changed(f"{resource}.values_gone", where, at) or any(
            accepted.is_changed(f"{resource}.form_changed", one, at) for one in places
        )
        if not is_accepted and not any(keys[: len(holder)] == holder for holder in gone):
            yield where, f"{filled} {f'values before, none in {rows} rows' if rows else 'rows before, none'} now"
        if not rows and keys:
            gone.append(keys)
