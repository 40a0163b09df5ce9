"""Quoted names and texts of SQL, which tables exist, settings of DuckDB, and frames as tables of a build."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import duckdb
    import pandas as pd


def sql_text(value: object) -> str:
    """A text literal of SQL."""
    return "'" + str(value).replace("'", "''") + "'"


def sql_name(*parts: str) -> str:
    """A quoted name of SQL; `parts` are schema, table and column, as far as it has them."""
    return ".".join('"' + part.replace('"', '""') + '"' for part in parts)


def table_names(connection: duckdb.DuckDBPyConnection, schema: str) -> list[str]:
    """The tables of a schema, sorted."""
    sql = "SELECT table_name FROM duckdb_tables() WHERE schema_name = $1"
    return sorted(name for (name,) in connection.execute(sql, [schema]).fetchall())


def has_tables(connection: duckdb.DuckDBPyConnection, schema: str, *names: str) -> bool:
    """Whether these tables of a schema exist. DuckDB takes eight times as long to list them.

    Where there is no table of a name, a SELECT from it would read a file of the current folder that is called so.
    """
    import duckdb

    tables = [sql_text(sql_name(schema, name)) for name in names]
    columns = ", ".join(f"pragma_table_info({table})" for table in tables)
    try:
        connection.execute(f"SELECT NULL FROM {columns} LIMIT 0")
    except duckdb.CatalogException:
        return False
    return True


def insert_rows(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    rows: Sequence[Mapping[str, object]],
    on_conflict: str = "",
) -> None:
    """Inserts rows, which have the same columns, in one statement: one for each of 100 rows takes 90 times as long."""
    if not rows:
        return
    values = {name: [row[name] for row in rows] for name in rows[0]}
    columns = ", ".join(f"unnest(${name}) AS {sql_name(name)}" for name in values)
    connection.execute(f"INSERT INTO {table} BY NAME SELECT {columns} {on_conflict}", values)


def change_settings(
    connection: duckdb.DuckDBPyConnection, settings: Mapping[str, object]
) -> dict[str, object]:
    """Changes settings of DuckDB, and returns them as they were.

    Change them back with what this returns: after `RESET memory_limit`, DuckDB 1.5 reports the default but still
    enforces the limit that was set before.
    """
    before: dict[str, object] = {}
    for name, value in settings.items():
        ((before[name],),) = connection.execute(
            f"SELECT current_setting({sql_text(name)})"
        ).fetchall()
        connection.execute(f"SET {name} = {sql_text(value)}")
    return before


def columns_of(connection: duckdb.DuckDBPyConnection, table: str) -> dict[str, str]:
    """Names and types of a table's columns, in order."""
    return {name: kind for name, kind, *_ in connection.execute(f"DESCRIBE {table}").fetchall()}


def is_one_select(connection: duckdb.DuckDBPyConnection, sql: str) -> bool:
    """Whether a text is one statement that only reads. Raises duckdb.ParserException."""
    import duckdb

    kinds = [statement.type for statement in connection.extract_statements(sql)]
    return kinds == [duckdb.StatementType.SELECT]


def failure_words(error: duckdb.Error) -> str:
    """What DuckDB says about the names and the syntax of a statement; of other errors their kind alone.

    The others may repeat values of rows, which are personal data.
    """
    import duckdb

    if isinstance(error, duckdb.BinderException | duckdb.CatalogException | duckdb.ParserException):
        return str(error).splitlines()[0]
    return f"{type(error).__name__}; its message is not shown, because it may repeat values"


Rows = list[dict[str, Any]]
"""Rows of a query, by the names of its columns."""


def read_rows(connection: duckdb.DuckDBPyConnection, sql: str, **values: object) -> Rows:
    """The rows of a query; `values` are those of its parameters."""
    cursor = connection.execute(sql, values or None)
    names = [column[0] for column in cursor.description or ()]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def replace(build: duckdb.DuckDBPyConnection, table: str, frame: pd.DataFrame) -> None:
    """Creates or replaces a table of `reconciled`."""
    import pyarrow as pa

    build.register("reconciled_frame", pa.Table.from_pandas(frame, preserve_index=False))
    build.execute(f'CREATE OR REPLACE TABLE reconciled."{table}" AS FROM reconciled_frame')
    build.unregister("reconciled_frame")
