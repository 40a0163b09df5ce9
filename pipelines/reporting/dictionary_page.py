"""The data dictionary as a page, docs/data-dictionary.md, written by `make docs`.

In: the tables of an empty warehouse, which the contract and the transforms make, with the comments that every warehouse
has. Out: Markdown: a diagram of the keys, and for each table its columns with type, meaning and source.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import duckdb

from pipelines.reconcile.reconcile import ErpInputs, ReconcileResult, build_tables
from pipelines.warehouse.descriptions import (
    SCHEMAS,
    column_description,
    column_source,
    table_description,
)
from sources.settings import ReconcileSettings

_HEAD: Final = """\
# Data dictionary

Every table and column of the warehouse. The same texts are comments in the file (`SELECT column_name, comment FROM
duckdb_columns() WHERE table_name = 'customers'`) and in a copy that has comments, such as Postgres. `make docs`
generates this page from `pipelines/warehouse/dictionary.toml`, the interface and the transforms.

The fields of an order are not in the interface: `raw.orders`, its child tables `raw.orders__…`, `reconciled.orders` and
`reconciled.order_lines` have further columns, one for each field that the platform sends. Where such a field has the
name of a column below, the reconciled table has it with the prefix `raw_`. Timestamps are UTC.

"""
RELATIONS: Final = (
    ("customers", "||--o{", "orders", "customer_id"),
    ("orders", "||--o{", "order_lines", "order_id"),
    ("customers", "||--||", "customer_orders", "customer_id"),
    ("price_lists", "|o--o{", "customers", "price_list_id"),
    ("price_lists", "|o--o{", "price_lists", "source_price_list_id"),
    ("customers", "||--o{", "customer_history", "customer_id"),
    ("promotions", "||--o{", "promotion_history", "promotion_id"),
    ("price_lists", "||--o{", "price_list_history", "price_list_id"),
    ("customers", "|o--o|", "erp_customers", "customer_id"),
    ("customers", "|o--o{", "erp_differences", "platform_id"),
)
"""Of the reconciled tables: parent, cardinality in mermaid's notation, child, and the child's column that refers to
the parent. `exceptions.entity_id` refers to the table that `entity` names."""
Column = tuple[str, str]


def tables() -> dict[tuple[str, str], list[Column]]:
    """Columns with their types by schema and table, as an empty warehouse has them."""
    with duckdb.connect() as build:
        result = ReconcileResult("", Path())
        build_tables(build, result, ReconcileSettings(), datetime.now(UTC), ErpInputs())
        found: dict[tuple[str, str], list[Column]] = {}
        for schema, table, column, kind in build.execute(
            """SELECT schema_name, table_name, column_name, data_type FROM duckdb_columns()
            WHERE list_contains($schemas, schema_name)
            ORDER BY list_position($schemas, schema_name), table_oid, column_index""",
            {"schemas": list(SCHEMAS)},
        ).fetchall():
            found.setdefault((schema, table), []).append((column, kind))
        return found


def markdown() -> str:
    """The page: the diagram, then the tables by schema."""
    found = tables()
    lines = ["## How the reconciled tables belong together", "", *_diagram(found)]
    of = ""
    for (schema, table), columns in found.items():
        if schema != of:
            of = schema
            lines += ["", f"## {schema}"]
        lines += ["", f"### {schema}.{table}", "", f"{table_description(schema, table).capitalize()}.", ""]
        lines += ["| column | type | meaning | source |", "|---|---|---|---|"]
        raw = [name for name, _ in found.get(("raw", table), ())]
        for name, kind in columns:
            source = column_source(table, name) if schema == "raw" else _raw_source(schema, table, name, raw)
            type_name = kind.replace("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ")
            lines.append(f"| `{name}` | {type_name} | {column_description(schema, table, name)} | {source} |")
    return _HEAD + "\n".join(lines) + "\n"


def _raw_source(schema: str, table: str, column: str, raw: list[str]) -> str:
    name = "id" if column == f"{table.removesuffix('s')}_id" else column.removesuffix("_text")
    is_copied = schema == "reconciled" and name in raw and not (column == name == "created_at")
    return f"`raw.{table}.{name}`" if is_copied else ""


def _diagram(found: dict[tuple[str, str], list[Column]]) -> list[str]:
    lines = ["```mermaid", "erDiagram"]
    lines += [f"    {parent} {kind} {child} : {column}" for parent, kind, child, column in RELATIONS]
    for name in dict.fromkeys(name for parent, _, child, _ in RELATIONS for name in (parent, child)):
        keys = {column for _, _, child, column in RELATIONS if child == name} | {f"{name.removesuffix('s')}_id"}
        columns = (f"        id {column}" for column, _ in found["reconciled", name] if column in keys)
        lines += [f"    {name} {{", *columns, "    }"]
    return [*lines, "```"]


if __name__ == "__main__":
    sys.stdout.write(markdown())
