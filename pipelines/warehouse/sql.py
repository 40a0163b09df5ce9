"""Quoted names and texts of SQL, and whether a table exists."""

from __future__ import annotations

import duckdb


def sql_text(value: object) -> str:
    """A text literal of SQL."""
    return "'" + str(value).replace("'", "''") + "'"


def sql_name(*parts: str) -> str:
    """A quoted name of SQL; `parts` are schema, table and column, as far as it has them."""
    return ".".join('"' + part.replace('"', '""') + '"' for part in parts)


def has_table(connection: duckdb.DuckDBPyConnection, schema: str, name: str) -> bool:
    """Whether a warehouse has this table."""
    sql = "FROM duckdb_tables() WHERE schema_name = $1 AND table_name = $2"
    return bool(connection.execute(sql, [schema, name]).fetchall())
