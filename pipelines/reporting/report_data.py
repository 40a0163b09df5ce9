"""What the report shows, read from the published warehouse.

In: an open warehouse. Out: `ReportData`, rows of counts. No column that may hold personal data is read: of customers
and orders only counts, of differences only the names of fields.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, Final

import duckdb

from pipelines.warehouse.ops import last_reads
from pipelines.warehouse.schema_changes import SchemaChange, schema_changes
from sources.contract import LISTS
from sources.errors import UsageError
from transforms.order_names import CANCELLED_WORDS

Rows = list[dict[str, Any]]

SOON_DAYS: Final = 30
MAX_ORDER_STATES: Final = 12
"""A column with more values is not a status, and could hold anything."""
TABLES: Final = tuple(LISTS)
FURTHER: Final = (
    "order_lines", "customer_orders", "customer_history", "promotion_history", "price_list_history",
    "erp_customers", "erp_differences", "erp_variants",
)  # fmt: skip
"""Tables that a warehouse written by an earlier version may lack."""
_RUN: Final = """
    SELECT run_id, command, version, started_at, ended_at, exit_code FROM ops.runs
    WHERE run_id = (SELECT arg_max(run_id, rowid) FROM ops.control_totals WHERE entity LIKE 'reconciled.%')"""
_LATER: Final = (
    "SELECT run_id, ended_at FROM ops.runs WHERE ended_at > $as_of AND command = 'pull' ORDER BY ended_at DESC"
)
_ENVIRONMENT: Final = "SELECT environment FROM ops.runs WHERE environment IS NOT NULL ORDER BY ended_at DESC LIMIT 1"
_CURRENCY: Final = "CASE WHEN regexp_full_match(currency::VARCHAR, '[A-Z]{3}') THEN currency::VARCHAR END"
"""Anything else in a field that the interface does not show could be anything, and is not shown."""
_CANCELLED: Final = f"coalesce(regexp_matches(order_status, '{CANCELLED_WORDS}', 'i'), false)"

QUERIES: Final = {
    # the last whole walk of each list
    "lists": """
    WITH refused AS (
        SELECT run_id, resource, count(DISTINCT row_hash) AS quarantined FROM ops.quarantine GROUP BY run_id, resource)
    SELECT resource, run_id, verdict, "distinct", coalesce(refused.quarantined, 0) AS quarantined, ended_by
    FROM ops.coverage LEFT JOIN refused USING (run_id, resource) WHERE verdict <> 'tail'
    QUALIFY row_number() OVER (PARTITION BY resource ORDER BY ended_at DESC) = 1
    ORDER BY list_position({lists}, resource), resource""",
    # What the last published walk of each list changed, with the run before it (None for a first walk).
    "changes": """
    WITH taken AS (SELECT DISTINCT resource, run_id FROM ops.coverage WHERE {published} AND ended_at <= $as_of),
    numbered AS (SELECT *, row_number() OVER (PARTITION BY resource ORDER BY run_id DESC) AS nth FROM taken),
    last AS (
        SELECT now.resource, now.run_id, before.run_id AS previous_run_id, runs.ended_at AS previous_at
        FROM numbered now LEFT JOIN numbered before ON before.resource = now.resource AND before.nth = 2
        LEFT JOIN ops.runs runs ON runs.run_id = before.run_id WHERE now.nth = 1)
    SELECT resource, previous_run_id, previous_at, max(value) FILTER (measure = 'new') AS new,
        max(value) FILTER (measure = 'changed') AS changed, max(value) FILTER (measure = 'newly_missing') AS missing
    FROM last JOIN ops.control_totals totals ON totals.run_id = last.run_id AND totals.entity = last.resource
    GROUP BY resource, previous_run_id, previous_at
    ORDER BY list_position({lists}, resource), resource""",
    # What is unproven because a list is not complete; their details name no record.
    "doubts": """
    SELECT entity, rule, detail FROM reconciled.exceptions
    WHERE rule IN ('unproven', 'price_lists_unproven', 'sources_unproven', 'customers_unproven')
    ORDER BY entity, rule""",
    "findings": """
    SELECT entity, rule, severity, count(*) AS findings FROM reconciled.exceptions GROUP BY entity, rule, severity
    ORDER BY CASE severity WHEN 'error' THEN 0 WHEN 'warning' THEN 1 ELSE 2 END, findings DESC, entity, rule""",
    "price_lists": """
    SELECT price_list_id, name, chain_status, depth, customer_count FROM reconciled.price_lists WHERE NOT is_missing
    ORDER BY customer_count DESC, price_list_id""",
    "price_list_status": """
    SELECT price_list_status AS status, count(*) AS customers FROM reconciled.customers WHERE NOT is_missing
    GROUP BY price_list_status ORDER BY customers DESC, status""",
    "promotion_status": """
    SELECT status, count(*) AS promotions FROM reconciled.promotions WHERE NOT is_missing
    GROUP BY status ORDER BY promotions DESC, status""",
    "expiring": """
    SELECT promotion_id, name, status, expires_at, use_count, remaining_uses FROM reconciled.promotions
    WHERE NOT is_missing AND status IN ('running', 'scheduled', 'exhausted', 'unknown')
        AND expires_at >= $as_of AND expires_at < $as_of + to_days($days)
    ORDER BY expires_at, promotion_id""",
    # Orders, their total, and cancelled orders by day and currency (None if unknown).
    "order_days": """
    SELECT ordered_at::DATE AS day, {currency} AS currency, count(*) FILTER (NOT {cancelled}) AS orders,
        count(*) FILTER ({cancelled}) AS cancelled, sum(total) FILTER (NOT {cancelled}) AS total
    FROM reconciled.orders WHERE ordered_at IS NOT NULL AND NOT is_missing GROUP BY ALL ORDER BY ALL""",
    "order_status": """
    SELECT coalesce(customer_status, 'not looked for') AS status, count(*) FILTER (NOT {cancelled}) AS orders,
        count(*) FILTER ({cancelled}) AS cancelled,
        count(*) FILTER (NOT {cancelled} AND ordered_at IS NULL) AS undated
    FROM reconciled.orders WHERE NOT is_missing GROUP BY customer_status ORDER BY orders DESC, status""",
    # Orders by status and currency; empty if the column has more values than a status.
    "order_states": """
    SELECT {status} AS status, {currency} AS currency, count(*) AS orders, sum(total) AS total
    FROM reconciled.orders WHERE NOT is_missing AND {status} IS NOT NULL GROUP BY ALL ORDER BY ALL""",
    # One row: listed customers with an order in the last 30, 90 and 365 days.
    "active": """
    SELECT count(*) AS customers, count(*) FILTER (is_active_30_days) AS days_30,
        count(*) FILTER (is_active_90_days) AS days_90, count(*) FILTER (is_active_365_days) AS days_365
    FROM reconciled.customer_orders JOIN reconciled.customers USING (customer_id) WHERE NOT is_missing""",
    # The comparison with the ERP's customers, like the following; empty if there was none.
    "matches": """
    SELECT status, count(*) AS customers,
        CASE WHEN status = 'matched' THEN matched_by WHEN line IS NULL THEN 'platform' ELSE 'erp' END AS step
    FROM reconciled.erp_customers GROUP BY status, step ORDER BY status, step""",
    # Percent of the ERP's customers matched in the comparison before.
    "matched_before": """
    SELECT CAST(100.0 * sum(value) FILTER (measure = 'matched') / nullif(sum(value), 0) AS DECIMAL(4, 1)) AS percent
    FROM ops.control_totals WHERE entity = 'reconciled.erp_customers' AND run_id < $run
        AND measure IN ('matched', 'ambiguous_in_erp', 'only_in_erp')
    GROUP BY run_id ORDER BY run_id DESC LIMIT 1""",
    "differences": """
    SELECT entity, field, count(*) AS differences FROM reconciled.erp_differences
    GROUP BY entity, field ORDER BY differences DESC, entity, field""",
    "variants": """
    SELECT status, count(*) AS variants FROM reconciled.erp_variants GROUP BY status ORDER BY variants DESC, status""",
}
"""SQL of the rows of each table and chart. Those that need a table which the warehouse lacks have no rows."""


@dataclass(slots=True)
class ReportData:
    """Everything the page shows.

    Attributes:
        run: the run that reconciled: `run_id`, `command`, `version`, `started_at`, `ended_at`, `exit_code`.
        environment: of the last pull, `sandbox` or `production`; empty if unknown.
        later_pull: end of a pull published after that run: the raw tables are newer than the reconciled ones.
        counts: rows of each reconciled table, and how many are no longer listed (None for tables without a list).
        schema_changes: fields, types and values of enumerations that the last pull saw for the first time.
        rows: of each of the `QUERIES`. To `lists` is added when each list was last published, and the last tail.
    """

    run: dict[str, Any]
    environment: str = ""
    later_pull: datetime | None = None
    counts: dict[str, tuple[int, int | None]] = field(default_factory=dict)
    schema_changes: list[SchemaChange] = field(default_factory=list)
    rows: dict[str, Rows] = field(default_factory=dict)

    @property
    def as_of(self) -> datetime:
        """The end of the run that reconciled: ages and what expires soon refer to this instant."""
        ended: datetime = self.run["ended_at"]
        return ended


def read_rows(warehouse: duckdb.DuckDBPyConnection, sql: str, **values: object) -> Rows:
    """The rows of a query, by column name."""
    cursor = warehouse.execute(sql, values or None)
    names = [column[0] for column in cursor.description or ()]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def read_report_data(warehouse: duckdb.DuckDBPyConnection) -> ReportData:
    """Reads the data of the report. Raises UsageError where nothing has been reconciled."""
    rows = partial(read_rows, warehouse)
    columns: dict[str, set[str]] = {}
    for row in rows("SELECT concat(schema_name, '.', table_name) AS name, column_name FROM duckdb_columns()"):
        columns.setdefault(row["name"], set()).add(row["column_name"])
    runs = rows(_RUN) if {"ops.runs", "ops.control_totals", "reconciled.exceptions"} <= columns.keys() else []
    if not runs:
        raise UsageError("nothing has been reconciled in this warehouse", "Run `orderbridge reconcile` first.")
    data = ReportData(runs[0])
    data.environment = next((row["environment"] for row in rows(_ENVIRONMENT)), "")
    data.later_pull = next((row["ended_at"] for row in rows(_LATER, as_of=data.as_of)), None)
    for table in (*TABLES, *(name for name in FURTHER if f"reconciled.{name}" in columns)):
        missing = "count(*) FILTER (is_missing)" if table in TABLES else "NULL"
        (count,) = rows(f"SELECT count(*) AS rows, {missing} AS missing FROM reconciled.{table}")
        data.counts[table] = (count["rows"], count["missing"])
    has_status = "order_status" in columns["reconciled.orders"]
    parts = {
        "lists": str(list(LISTS)),
        "currency": _CURRENCY if "currency" in columns["reconciled.orders"] else "NULL::VARCHAR",
        "status": "order_status" if has_status else "NULL::VARCHAR",
        "cancelled": _CANCELLED if has_status else "false",
        "published": "published" if "published" in columns["ops.coverage"] else "false",
    }
    values = {"as_of": data.as_of, "days": SOON_DAYS, "run": data.run["run_id"]}
    for query, template in QUERIES.items():
        sql = template.format(**parts)
        is_possible = columns.keys() >= set(re.findall(r"\b(?:ops|reconciled)\.\w+", sql))
        own_values = {name: value for name, value in values.items() if f"${name}" in sql}
        data.rows[query] = rows(sql, **own_values) if is_possible else []
    published = last_reads(warehouse)
    for row in data.rows["lists"]:
        last_read = published.get(row["resource"])
        row["was_taken"] = last_read is not None and last_read.run_id == row["run_id"]
        row["taken_at"] = last_read.ended_at if last_read is not None else None
        row["tail_at"] = last_read.tail_ended_at if last_read is not None else None
    if "published" in columns["ops.coverage"]:
        data.schema_changes = schema_changes(warehouse, data.as_of)
    if len({row["status"] for row in data.rows["order_states"]}) > MAX_ORDER_STATES:
        data.rows["order_states"] = []
    return data
