"""Quoted names and texts of SQL, and which tables exist."""

from __future__ import annotations

import duckdb


def sql_text(value: object) -> str:
    """A text literal of SQL."""
    return "'" + str(value).replace("'", "''") + "'"


def sql_name(*parts: str) -> str:
    """A quoted name of SQL; `parts` are schema, table and column, as far as it has them."""
    return ".".join('"' + part.replace('"', '""') + '"' for part in parts)


def table_names(connection: duckdb.DuckDBPyConnection, schema: str) -> list[str]:
    """The tables of a schema, sorted."""
    sql = "SELECT table_name FROM duckdb_tables() WHERE schema_name = $1 ORDER BY ALL"
    return [name for (name,) in connection.execute(sql, [schema]).fetchall()]
