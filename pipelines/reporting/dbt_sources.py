"""The tables of the warehouse as sources of a dbt project: descriptions, tests of keys, and freshness.

In: the published warehouse. Out: `sources.yml`, as dbt 1.10 and dbt-duckdb read it. The database of the sources is the
name of the warehouse's file, which a profile attaches for reading only.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import duckdb
import yaml

from orderbridge.pipelines.reporting.outputs import output_target
from orderbridge.pipelines.warehouse.bi.descriptions import primary_keys
from orderbridge.pipelines.warehouse.build import open_warehouse
from orderbridge.sources.contract import LISTS
from orderbridge.sources.disk import disk_errors, write_private
from orderbridge.sources.errors import UsageError
from orderbridge.sources.settings import warehouse_path

START: Final = "# The warehouse of orderbridge as dbt sources. Made by: orderbridge export dbt --out sources.yml\n"
_SCHEMAS: Final = ("raw", "reconciled", "bi")
_STALE_HOURS: Final = 26
"""Age of a list that dbt warns of: a night, and two hours for a run that takes long."""
_HINT: Final = "Name the file in your dbt project: --out models/sources.yml"
_COLUMNS: Final = """
    SELECT c.schema_name, c.table_name, t.comment, c.column_name, c.comment
    FROM duckdb_columns() c JOIN (
        SELECT schema_name, table_name, comment FROM duckdb_tables()
        UNION ALL SELECT schema_name, view_name, comment FROM duckdb_views()) t USING (schema_name, table_name)
    WHERE c.database_name = current_database() AND list_contains($1, c.schema_name)
    ORDER BY list_position($1, c.schema_name), c.table_name, c.column_index"""


def write_dbt_sources(out: Path) -> tuple[Path, int]:
    """Writes the file; one that this made before is replaced.

    Returns:
        The file, and the number of tables.

    Raises:
        UsageError: there is no warehouse; the file is not one of this function's, or its ending is not .yml.
    """
    if out.suffix not in (".yml", ".yaml"):
        raise UsageError(f"{out.name} does not end with .yml", _HINT)
    target = output_target(out, "a file of this command", _HINT, _is_ours)
    with open_warehouse() as warehouse:
        sources = dbt_sources(warehouse, warehouse_path().stem)
    text = START + yaml.safe_dump(sources, sort_keys=False, allow_unicode=True, width=120)
    with disk_errors(target, _HINT):
        write_private(target, text.encode())
    return target, sum(len(source["tables"]) for source in sources["sources"])


def _is_ours(file: Path) -> bool:
    with file.open("rb") as content:
        return content.read(len(START)) == START.encode()


def dbt_sources(warehouse: duckdb.DuckDBPyConnection, database: str) -> dict[str, Any]:
    """The content of `sources.yml`: a source for each schema, with its tables and columns."""
    tables: dict[str, dict[str, dict[str, Any]]] = {schema: {} for schema in _SCHEMAS}
    for schema, table, about, column, meaning in warehouse.execute(
        _COLUMNS, [list(_SCHEMAS)]
    ).fetchall():
        found = tables[schema].setdefault(table, _table(schema, table, about))
        found["columns"].append(_column(schema, table, column, meaning))
    return {
        "version": 2,
        "sources": [
            {
                "name": schema,
                "database": database,
                "schema": schema,
                "tables": list(of_schema.values()),
            }
            for schema, of_schema in tables.items()
        ],
    }


def _table(schema: str, table: str, about: str | None) -> dict[str, Any]:
    made: dict[str, Any] = {"name": table, "description": about or ""}
    if schema == "raw" and table in LISTS:
        made["config"] = {
            "loaded_at_field": "_last_seen_at",
            "freshness": {"warn_after": {"count": _STALE_HOURS, "period": "hour"}},
        }
    return {**made, "columns": []}


def _column(schema: str, table: str, column: str, meaning: str | None) -> dict[str, Any]:
    made: dict[str, Any] = {"name": column, "description": meaning or ""}
    if (column,) == primary_keys(schema, table):
        made["data_tests"] = ["unique", "not_null"]
    return made
