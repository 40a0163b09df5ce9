"""The data dictionary, docs/data-dictionary.md and a page for each schema, written by `make docs`.

In: the tables of an empty warehouse, which the contract and the transforms make, with the comments that every warehouse
has. Out: Markdown with each table's columns, their types, meanings and sources; a diagram of the keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from tempfile import TemporaryDirectory
from typing import Final

import duckdb

from orderbridge.pipelines.reconcile.reconcile import Reconciling
from orderbridge.pipelines.warehouse.bi.descriptions import (
    DESCRIBED_SCHEMAS,
    column_description,
    column_source,
    table_description,
)
from orderbridge.sources.contract import RECORDS
from orderbridge.sources.settings import ReconcileSettings
from orderbridge.sources.words import render_text

RELATIONS: Final = (
    ("customers", "1 : n", "orders", "customer_id"),
    ("orders", "1 : n", "order_lines", "order_id"),
    ("customers", "1 : 1", "customer_orders", "customer_id"),
    ("price_lists", "1 : n", "customers", "price_list_id"),
    ("customers", "1 : n", "customer_history", "customer_id"),
    ("promotions", "1 : n", "promotion_history", "promotion_id"),
    ("price_lists", "1 : n", "price_list_history", "price_list_id"),
    ("customers", "1 : 1", "erp_customers", "customer_id"),
    ("customers", "1 : n", "erp_differences", "platform_id"),
)
"""Of the reconciled tables: parent, cardinality, child, and the child's column that refers to the parent.
`source_price_list_id` refers to its own table, `exceptions.entity_id` to the table that `entity` names."""
_PLACES: Final = {
    "price_list_history": (0, 0), "customer_history": (1, 0), "erp_customers": (2, 0), "promotions": (3, 0),
    "price_lists": (0, 1), "customers": (1, 1), "orders": (2, 1), "promotion_history": (3, 1),
    "customer_orders": (1, 2), "erp_differences": (0, 2), "order_lines": (2, 2),
}  # fmt: skip
"""Column and row of each table in the diagram."""
_Column = tuple[str, str]


@cache
def tables() -> dict[tuple[str, str], list[_Column]]:
    """Columns with their types by schema and table, as an empty warehouse has them."""
    with TemporaryDirectory() as folder, duckdb.connect(f"{folder}/build.duckdb") as build:
        Reconciling(settings=ReconcileSettings()).build_tables(build, "", datetime.now(UTC))
        columns: dict[tuple[str, str], list[_Column]] = {}
        for schema, table, column, kind in build.execute(
            """SELECT schema_name, table_name, column_name,
                replace(data_type, 'TIMESTAMP WITH TIME ZONE', 'TIMESTAMPTZ')
            FROM duckdb_columns()
            WHERE list_contains($schemas, schema_name)
            ORDER BY list_position($schemas, schema_name), table_oid, column_index""",
            {"schemas": list(DESCRIBED_SCHEMAS)},
        ).fetchall():
            columns.setdefault((schema, table), []).append((column, kind))
        return columns


def pages() -> Iterator[tuple[str, str]]:
    """The path and the text of each page: the diagram with a list of all tables, and the tables of each schema."""
    all_columns = tables()

    def source(schema: str, table: str, column: str) -> str:
        if schema == "raw":
            return column_source(table, column)
        own, raw = (
            [name for name, _ in all_columns.get((of, table), ())] for of in (schema, "raw")
        )
        name = "id" if column == f"{table.removesuffix('s')}_id" else column.removesuffix("_text")
        is_copied = schema == "reconciled" and name in raw and f"{column}_text" not in own
        return f"`raw.{table}.{name}`" if is_copied else ""

    values = {
        "tables": all_columns,
        "describe": table_description,
        "describe_column": column_description,
    }
    overview = render_text("docs", "data-dictionary.md.j2", schemas=DESCRIBED_SCHEMAS, **values)
    yield "docs/data-dictionary.md", overview
    for schema in DESCRIBED_SCHEMAS:
        text = render_text("docs", "dictionary.md.j2", schema=schema, source=source, **values)
        yield f"docs/dictionary/{schema}.md", text


def diagram() -> str:
    """The reconciled tables with their keys and relations, as SVG."""
    keys = {
        table: [f"{table.removesuffix('s')}_id"] if table in RECORDS else [] for table in _PLACES
    }
    for _, _, child, column in RELATIONS:
        keys[child].append(column)
    return render_text("docs", "tables.svg.j2", relations=RELATIONS, places=_PLACES, keys=keys)
