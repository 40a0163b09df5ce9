"""The data dictionary as a page, docs/data-dictionary.md, written by `make docs`.

In: the tables of an empty warehouse, which the contract and the transforms make, with the comments that every warehouse
has. Out: Markdown with each table's columns, their types, meanings and sources; a diagram of the keys.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import duckdb

from pipelines.reconcile.entities import ENTITIES
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
_BOX: Final = (170, 64)
_STEP: Final = (230, 120)
_STYLE: Final = (
    "text{font:13px sans-serif;fill:#1c2126}.t{font-weight:600}.k{fill:#5b6570;font-size:12px}rect{fill:#f4f6f8;"
    "stroke:#5b6570}line{stroke:#5b6570}@media(prefers-color-scheme:dark){text{fill:#e4e8ec}.k{fill:#a4adb7}"
    "rect{fill:#23282d}}"
)
Column = tuple[str, str]


def tables() -> dict[tuple[str, str], list[Column]]:
    """Columns with their types by schema and table, as an empty warehouse has them."""
    with duckdb.connect() as build:
        result = ReconcileResult("", Path())
        build_tables(build, result, ReconcileSettings(), datetime.now(UTC), ErpInputs())
        columns: dict[tuple[str, str], list[Column]] = {}
        for schema, table, column, kind in build.execute(
            """SELECT schema_name, table_name, column_name, data_type FROM duckdb_columns()
            WHERE list_contains($schemas, schema_name)
            ORDER BY list_position($schemas, schema_name), table_oid, column_index""",
            {"schemas": list(SCHEMAS)},
        ).fetchall():
            columns.setdefault((schema, table), []).append((column, kind))
        return columns


def markdown() -> str:
    """The page: the diagram, then the tables by schema."""
    columns_by_table = tables()
    lines = ["## How the reconciled tables belong together", "", "![Tables and keys](images/tables.svg)"]
    last_schema = ""
    for (schema, table), columns in columns_by_table.items():
        if schema != last_schema:
            last_schema = schema
            lines += ["", f"## {schema}"]
        lines += ["", f"### {schema}.{table}", "", f"{table_description(schema, table).capitalize()}.", ""]
        lines += ["| column | type | meaning | source |", "|---|---|---|---|"]
        raw = [name for name, _ in columns_by_table.get(("raw", table), ())]
        for name, kind in columns:
            source = column_source(table, name) if schema == "raw" else _raw_source(schema, table, name, raw)
            type_name = kind.replace("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ")
            lines.append(f"| `{name}` | {type_name} | {column_description(schema, table, name)} | {source} |")
    return _HEAD + "\n".join(lines) + "\n"


def _raw_source(schema: str, table: str, column: str, raw: list[str]) -> str:
    name = "id" if column == f"{table.removesuffix('s')}_id" else column.removesuffix("_text")
    is_copied = schema == "reconciled" and name in raw and not (column == name == "created_at")
    return f"`raw.{table}.{name}`" if is_copied else ""


def diagram() -> str:
    """The reconciled tables with their keys and relations, as SVG."""
    (width, height), (right, down) = _BOX, _STEP
    lines, boxes = [], []
    for parent, cardinality, child, _ in RELATIONS:
        (x1, y1), (x2, y2) = (
            (10 + x * right + width // 2, 10 + y * down + height // 2) for x, y in (_PLACES[parent], _PLACES[child])
        )
        lines.append(f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>')
        lines.append(f'<text class="k" x="{(x1 + x2) // 2 + 4}" y="{(y1 + y2) // 2 - 4}">{cardinality}</text>')
    for table, (x, y) in _PLACES.items():
        keys = [f"{table.removesuffix('s')}_id"] if table in ENTITIES else []
        keys += [column for _, _, child, column in RELATIONS if child == table]
        left, top = 10 + x * right, 10 + y * down
        boxes.append(f'<rect x="{left}" y="{top}" width="{width}" height="{height}" rx="4"/>')
        boxes.append(f'<text class="t" x="{left + 10}" y="{top + 20}">{table}</text>')
        boxes += [f'<text class="k" x="{left + 10}" y="{top + 38 + 16 * n}">{key}</text>' for n, key in enumerate(keys)]
    size = f"0 0 {20 + 3 * right + width} {20 + 2 * down + height}"
    shapes = "\n".join([*lines, *boxes])
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{size}">\n<style>{_STYLE}</style>\n{shapes}\n</svg>\n'
