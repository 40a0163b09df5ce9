"""Primary keys and descriptions of tables and columns: for the comments of the warehouse, its copies, and the docs.

In: names of tables and columns. Out: their descriptions in `dictionary.toml`, and where raw columns come from in the
interface (`sources.contract`).
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any, Final

import duckdb

from orderbridge.pipelines.warehouse.bi.marks import MARK, assumed_columns
from orderbridge.pipelines.warehouse.bi.views import SCHEMA as VIEW_SCHEMA
from orderbridge.pipelines.warehouse.sql import sql_name, sql_text
from orderbridge.sources.contract import LISTS, RECORDS, Field
from orderbridge.sources.decode.table_schema import KEY_COLUMN, parent_key, snake

DESCRIBED_SCHEMAS: Final = ("raw", "reconciled", "ops", VIEW_SCHEMA)
_UNDOCUMENTED: Final = "field of the platform's {}, which the interface does not show"
_PLAIN_TYPES: Final = (
    "BOOLEAN",
    "BIGINT",
    "INTEGER",
    "HUGEINT",
    "DECIMAL",
    "DOUBLE",
    "DATE",
    "TIMESTAMP",
)
_KEYS: Final = {("ops", "runs"): ("run_id",), ("ops", "observations"): ("what", "value")}
_COMMENTED: Final = """
    FROM (
        SELECT schema_name, table_name, NULL AS column_name, 'TABLE' AS kind, comment FROM duckdb_tables()
        UNION ALL SELECT schema_name, view_name, NULL, 'VIEW', comment FROM duckdb_views()
        UNION ALL SELECT schema_name, table_name, column_name, 'COLUMN', comment FROM duckdb_columns())
    WHERE list_contains($1, schema_name)"""


def primary_keys(schema: str, table: str) -> tuple[str, ...]:
    """The columns of a table's primary key; none where rows have no key."""
    if schema in ("raw", "reconciled") and table in RECORDS:
        return (KEY_COLUMN if schema == "raw" else parent_key(RECORDS[table]),)
    return _KEYS.get((schema, table), ())


@cache
def _dictionary() -> dict[str, Any]:
    return tomllib.loads(
        files("orderbridge.pipelines.warehouse.bi").joinpath("dictionary.toml").read_text("utf-8")
    )


def harmless_columns() -> list[str]:
    """Columns whose values are no personal data: ids of the platform, statuses, counts, times, names of price lists."""
    return list(_dictionary()["harmless"])


def may_be_personal(schema: str, table: str, column: str, kind: str) -> bool:
    """Whether a column may hold personal data: an undocumented field may, and so may any text that is not known.

    Args:
        schema: of the table.
        table: its name.
        column: its name.
        kind: its type in DuckDB; numbers, dates and yes/no of this project's own columns are no personal data.
    """
    if column in harmless_columns():
        return False
    return _is_undocumented_field(schema, table, column) or not kind.startswith(_PLAIN_TYPES)


def table_description(schema: str, table: str) -> str:
    """What a table holds."""
    name, _, child = table.partition("__")
    if schema == "raw" and child and _is_undocumented(name):
        return f"parts of {name}, one row each; fields and types are found in the walk"
    return str(_dictionary()["tables"].get(f"{schema}.{table}", ""))


def column_description(schema: str, table: str, column: str) -> str:
    """What a column holds, by the dictionary or else by the interface; empty for one that neither describes."""
    if _is_undocumented_field(schema, table, column):
        name = "orders" if schema == "reconciled" else table.partition("__")[0]
        return _UNDOCUMENTED.format(name)
    if column.endswith("_position"):
        return f"position of the row in {table.rpartition('__')[0]} that it belongs to"
    dictionary = _dictionary()
    own_text = dictionary["exceptions"].get(f"{schema}.{table}.{column}")
    text = own_text or dictionary["columns"].get(column)
    if text:
        return str(text)
    field = _field(table, column) if schema == "raw" else None
    return field.meaning if field is not None else ""


def _is_undocumented(name: str) -> bool:
    """Whether the interface does not show the fields of a list's records."""
    return name in RECORDS and not RECORDS[name].fields


def _is_undocumented_field(schema: str, table: str, column: str) -> bool:
    """Whether a column is a field that was found in a walk, and may have the name of another table's column."""
    if column.startswith("_"):
        return False
    name = table.partition("__")[0]
    if schema == "raw" and _is_undocumented(name):
        own = ("id", "position", parent_key(RECORDS[name]))
        return column not in own and not column.endswith("_position")
    if schema != "reconciled" or table not in ("orders", "order_lines"):
        return False
    from orderbridge.transforms.orders.lines import ORDER_LINES
    from orderbridge.transforms.orders.orders import ORDERS

    return column not in (ORDERS if table == "orders" else ORDER_LINES)


def column_source(table: str, column: str) -> str:
    """The field of the interface that a raw column is filled from; empty for columns of this project."""
    field = _field(table, column)
    if field is None:
        return ""
    name, _, child = table.partition("__")
    where = f"{child}[].{field.name}" if child else field.name
    source = f"{where} of {LISTS[name].verb} {LISTS[name].path}"
    if field.meaning in ("", column_description("raw", table, column)):
        return source
    return f"{source} ({field.meaning})"


def _field(table: str, column: str) -> Field | None:
    name, _, child = table.partition("__")
    fields = RECORDS[name].fields if name in RECORDS else ()
    if child:
        fields = next((field.fields for field in fields if snake(field.name) == child), ())
    for field in fields:
        is_column = field.type != "array" or field.items
        if is_column and snake(field.name) == column:
            return field
    return None


def write_comments(build: duckdb.DuckDBPyConnection) -> None:
    """Describes the tables, views and columns of a build; tables of earlier runs get the texts of this version."""
    statements = []
    assumed = assumed_columns(build)
    described = build.execute(_COMMENTED, [list(DESCRIBED_SCHEMAS)]).fetchall()
    for schema, table, column, kind, comment in described:
        is_table = column is None
        text = (
            table_description(schema, table) if is_table else column_comment(schema, table, column)
        )
        marks = assumed.get(f"{schema}.{table}.{column}")
        if marks:
            text = f"{text} {MARK} assumed, not confirmed: {', '.join(marks)}"
        if text and text != comment:
            name = sql_name(*filter(None, (schema, table, column)))
            statements.append(f"COMMENT ON {kind} {name} IS {sql_text(text)};")
    if statements:  # one transaction: each of its own would be written to disk; a third of the time is the optimizer's
        build.execute(
            "BEGIN; PRAGMA disable_optimizer;"
            + "".join(statements)
            + "PRAGMA enable_optimizer; COMMIT"
        )


@cache
def column_comment(schema: str, table: str, column: str) -> str:
    """The description of a column with its source in the interface."""
    source = column_source(table, column) if schema == "raw" else ""
    return "; ".join(filter(None, (column_description(schema, table, column), source)))


def column_comments(
    warehouse: duckdb.DuckDBPyConnection,
) -> dict[tuple[str, str], dict[str, str]]:
    """The comments of the columns in the warehouse, by schema and table, for a copy of it.

    All in one query: its cost is the same for one table.
    """
    sql = """SELECT schema_name, table_name, column_name, comment FROM duckdb_columns()
        WHERE comment IS NOT NULL ORDER BY column_index"""
    comments: dict[tuple[str, str], dict[str, str]] = {}
    for schema, table, column, comment in warehouse.execute(sql).fetchall():
        comments.setdefault((schema, table), {})[column] = comment
    return comments
