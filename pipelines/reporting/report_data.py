"""What the report shows, read from the published warehouse.

In: an open warehouse. Out: `ReportData`, rows of counts. No column that may hold personal data is read: of customers
and orders only counts, of differences only the names of fields.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, Final

import duckdb

from orderbridge.pipelines.warehouse.bi.marks import assumed_columns, assumptions
from orderbridge.pipelines.warehouse.finding_history import NewFindings, new_findings
from orderbridge.pipelines.warehouse.raw.schema_changes import SchemaChange, schema_changes
from orderbridge.pipelines.warehouse.source import read_source
from orderbridge.pipelines.warehouse.sql import Rows, read_rows
from orderbridge.sources.contract import LISTS
from orderbridge.sources.errors import UsageError
from orderbridge.sources.settings import DataSource
from orderbridge.transforms.orders.statuses import STATUSES

FURTHER: Final = (
    "order_lines", "customer_orders", "customer_history", "promotion_history", "price_list_history",
    "erp_customers", "erp_differences", "erp_variants",
)  # fmt: skip
"""Tables that not every warehouse has."""


@dataclass(slots=True)
class ReportData:
    """Everything the page shows.

    Attributes:
        run: the run that reconciled, a row of the query `run`.
        source: whose data it is, as far as it is known.
        new_findings: what the run found and the one before it did not.
        schema_changes: fields, types and values of enumerations that the last pull saw for the first time.
        assumed: the values that nobody has confirmed, by question; without those of statuses, which may be names.
        assumed_columns: of `bi`, those that rest on it.
        counts: rows of each reconciled table, and how many are no longer listed (None for tables without a list).
        rows: of each query in `queries.toml`; none where the warehouse lacks a table of it.
    """

    run: dict[str, Any]
    source: DataSource
    new_findings: list[NewFindings]
    schema_changes: list[SchemaChange]
    assumed: Mapping[str, str] = field(default_factory=dict)
    assumed_columns: Collection[str] = ()
    counts: dict[str, tuple[int, Any]] = field(default_factory=dict)
    rows: dict[str, Rows] = field(default_factory=dict)


def read_report_data(warehouse: duckdb.DuckDBPyConnection) -> ReportData:
    """Reads the data of the report. Raises UsageError where nothing has been reconciled by this version."""
    queries = _queries()
    try:
        for run in read_rows(warehouse, queries["run"]):
            return _read(warehouse, run, queries)
    except (duckdb.CatalogException, duckdb.BinderException):
        pass  # a table or a column of this version is not there
    raise UsageError(
        "nothing has been reconciled in this warehouse, or only by another version of orderbridge",
        "Run `orderbridge reconcile` first.",
    )


def is_reconciled(warehouse: duckdb.DuckDBPyConnection) -> bool:
    """Whether there is anything for a report to show."""
    try:
        return bool(read_rows(warehouse, _queries()["run"]))
    except (duckdb.CatalogException, duckdb.BinderException):
        return False


def _queries() -> dict[str, Any]:
    text = files("orderbridge.pipelines.reporting").joinpath("queries.toml").read_text("utf-8")
    return tomllib.loads(text)


def _read(
    warehouse: duckdb.DuckDBPyConnection, run: dict[str, Any], queries: dict[str, Any]
) -> ReportData:
    sql = "SELECT DISTINCT concat(schema_name, '.', table_name) FROM duckdb_columns()"
    tables = {name for (name,) in warehouse.execute(sql).fetchall()}
    assumed = assumptions(warehouse)
    if STATUSES in assumed:
        assumed[STATUSES] = ""  # a status may be that of one order
    data = ReportData(
        run,
        read_source(warehouse),
        new_findings(warehouse),
        schema_changes(warehouse, run["as_of"]),
        assumed,
        assumed_columns(warehouse).keys(),
    )
    for table in (*LISTS, *(name for name in FURTHER if f"reconciled.{name}" in tables)):
        missing = "count(*) FILTER (is_missing)" if table in LISTS else "NULL"
        (data.counts[table],) = warehouse.execute(
            f"SELECT count(*), {missing} FROM reconciled.{table}"
        ).fetchall()
    parts = {
        "lists": str(list(LISTS)),
        "currency": queries["currency"],
    }
    parts["total"] = queries["total"].format(**parts)
    for name, template in queries["rows"].items():
        sql = template.format(**parts)
        is_possible = tables >= set(re.findall(r"\b(?:ops|reconciled|bi)\.\w+", sql))
        own_values = {key: value for key, value in run.items() if f"${key}" in sql}
        data.rows[name] = read_rows(warehouse, sql, **own_values) if is_possible else []
    return data
