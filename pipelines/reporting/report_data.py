"""What the report shows, read from the published warehouse.

In: an open warehouse. Out: `ReportData`, rows of counts. No column that may hold personal data is read: of customers
and orders only counts, of differences only the names of fields.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import partial
from importlib.resources import files
from typing import Any, Final

import duckdb

from pipelines.warehouse.finding_history import NewFindings, new_findings
from pipelines.warehouse.ops import last_reads
from pipelines.warehouse.schema_changes import SchemaChange, schema_changes
from pipelines.warehouse.source import DataSource, read_source
from sources.contract import LISTS
from sources.errors import UsageError

Rows = list[dict[str, Any]]

SOON_DAYS: Final = 30
RECENT_DAYS: Final = 30
MAX_ORDER_STATES: Final = 12
"""A column with more values is not a status, and could hold anything."""
FURTHER: Final = (
    "order_lines", "customer_orders", "customer_history", "promotion_history", "price_list_history",
    "erp_customers", "erp_differences", "erp_variants",
)  # fmt: skip
"""Tables that a warehouse written by an earlier version may lack."""
_RUN: Final = """
    SELECT run_id, command, version, started_at, ended_at, exit_code FROM ops.runs
    WHERE run_id = (SELECT arg_max(run_id, rowid) FROM ops.control_totals WHERE entity LIKE 'reconciled.%')"""
_LATER: Final = """
    SELECT run_id, ended_at FROM ops.runs
    WHERE rowid > (SELECT rowid FROM ops.runs WHERE run_id = $run) AND command = 'pull' ORDER BY rowid DESC"""
"""By `rowid`, like others: the order in which runs and reads were recorded, whatever the clock showed."""
_CURRENCY: Final = (
    r"CASE WHEN regexp_full_match(currency::VARCHAR, '[A-Z]{3}|[A-Z]{0,3}\p{Sc}') THEN currency::VARCHAR END"
)
"""Anything else in a field that the interface does not show could be anything, and is not shown."""
_TOTAL: Final = f"""CASE WHEN {_CURRENCY} IS NOT NULL OR (
    SELECT count(DISTINCT coalesce(currency::VARCHAR, '')) FROM reconciled.orders WHERE {_CURRENCY} IS NULL
) < 2 THEN total END"""
"""Totals of several currencies that are not shown would be added up as one."""


@dataclass(slots=True)
class ReportData:
    """Everything the page shows.

    Attributes:
        run: the run that reconciled: `run_id`, `command`, `version`, `started_at`, `ended_at`, `exit_code`.
        source: whose data it is, as far as it is known.
        today: the day of that run in the time zone of days, weeks and months.
        time_zone: its IANA name.
        later_pull: end of a pull published after that run: the raw tables are newer than the reconciled ones.
        counts: rows of each reconciled table, and how many are no longer listed (None for tables without a list).
        new_findings: what the run found and the one before it did not.
        schema_changes: fields, types and values of enumerations that the last pull saw for the first time.
        rows: of each query in `queries.toml`. To `lists` is added when each list was last published, and the last tail.
    """

    run: dict[str, Any]
    source: DataSource = field(default_factory=DataSource)
    today: date = date.min
    time_zone: str = "UTC"
    later_pull: datetime | None = None
    counts: dict[str, tuple[int, int | None]] = field(default_factory=dict)
    new_findings: list[NewFindings] = field(default_factory=list)
    schema_changes: list[SchemaChange] = field(default_factory=list)
    rows: dict[str, Rows] = field(default_factory=dict)

    @property
    def as_of(self) -> datetime:
        """The end of the run that reconciled: ages and what expires soon refer to this instant."""
        ended: datetime = self.run["ended_at"]
        return ended

    @property
    def first_recent_day(self) -> date:
        """The first of the days that count as recent; the day of the run is the last."""
        return self.today - timedelta(days=RECENT_DAYS - 1)


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
    data.source = read_source(warehouse)
    data.today = data.as_of.astimezone(UTC).date()
    if "reconciled.as_of" in columns:
        ((data.today, data.time_zone),) = (
            row.values() for row in rows("SELECT today, time_zone FROM reconciled.as_of")
        )
    data.later_pull = next((row["ended_at"] for row in rows(_LATER, run=data.run["run_id"])), None)
    for table in (*LISTS, *(name for name in FURTHER if f"reconciled.{name}" in columns)):
        missing = "count(*) FILTER (is_missing)" if table in LISTS else "NULL"
        (count,) = rows(f"SELECT count(*) AS rows, {missing} AS missing FROM reconciled.{table}")
        data.counts[table] = (count["rows"], count["missing"])
    data.rows = _run_queries(rows, columns, data)
    published = last_reads(warehouse)
    for row in data.rows["lists"]:
        last_read = published.get(row["resource"])
        row["was_taken"] = last_read is not None and last_read.run_id == row["run_id"]
        row["taken_at"] = last_read.ended_at if last_read is not None else None
        row["tail_at"] = last_read.tail_ended_at if last_read is not None else None
    data.new_findings = new_findings(warehouse)
    if "published" in columns["ops.coverage"]:
        data.schema_changes = schema_changes(warehouse, data.as_of)
    if len({row["status"] for row in data.rows["order_states"]}) > MAX_ORDER_STATES:
        data.rows["order_states"] = []
    return data


def _run_queries(rows: Callable[..., Rows], columns: Mapping[str, Set[str]], data: ReportData) -> dict[str, Rows]:
    """The rows of each query of `queries.toml`; none where the warehouse lacks a table of it."""
    has_status = "order_status" in columns["reconciled.orders"]
    has_currency = "currency" in columns["reconciled.orders"]
    parts = {
        "lists": str(list(LISTS)),
        "currency": _CURRENCY if has_currency else "NULL::VARCHAR",
        "total": _TOTAL if has_currency else "total",
        "status": "order_status" if has_status else "NULL::VARCHAR",
        "day": "ordered_date" if "ordered_date" in columns["reconciled.orders"] else "ordered_at::DATE",
        "unknown": "unknown_because" if "unknown_because" in columns["reconciled.orders"] else "NULL::VARCHAR",
        "cancelled": "is_cancelled" if "is_cancelled" in columns["reconciled.orders"] else "false",
        "is_accepted": "is_accepted" if "is_accepted" in columns["reconciled.exceptions"] else "false",
        "published": "published" if "published" in columns["ops.coverage"] else "false",
    }
    values = {
        "as_of": data.as_of, "zone": data.time_zone, "days": SOON_DAYS, "run": data.run["run_id"],
        "today": data.today, "first": data.first_recent_day, "before": data.first_recent_day - timedelta(RECENT_DAYS),
    }  # fmt: skip
    queries = tomllib.loads(files("pipelines.reporting").joinpath("queries.toml").read_text("utf-8"))
    result: dict[str, Rows] = {}
    for query, template in queries.items():
        sql = template.format(**parts)
        is_possible = columns.keys() >= set(re.findall(r"\b(?:ops|reconciled|bi)\.\w+", sql))
        own_values = {name: value for name, value in values.items() if f"${name}" in sql}
        result[query] = rows(sql, **own_values) if is_possible else []
    return result
