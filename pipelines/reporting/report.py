"""The report: one HTML page about the published warehouse, for a mail or a shared folder.

In: the published warehouse. Out: a file that needs no other file and has no scripts, with counts, ids and the names of
promotions, price lists and fields, and no personal data. The same warehouse gives the same bytes: every age is the age
at the end of the run that reconciled it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Final

from orderbridge.pipelines.reporting.charts import TimeChart, time_chart
from orderbridge.pipelines.reporting.outputs import output_target
from orderbridge.pipelines.reporting.report_data import ReportData, read_report_data
from orderbridge.pipelines.reporting.tables import anchor, render, tag, words
from orderbridge.pipelines.warehouse.build import open_warehouse
from orderbridge.pipelines.warehouse.finding_history import in_words
from orderbridge.pipelines.warehouse.marks import MARK
from orderbridge.pipelines.warehouse.sql import Rows
from orderbridge.sources.contract import LISTS
from orderbridge.sources.disk import PRIVATE_FILE, disk_errors, replace_file
from orderbridge.transforms.rules import SEVERITIES, find_rule

OUT_HINT: Final = "Name another file, in a writable folder: orderbridge report --out FILE"
START: Final = "<!doctype html>\n<!-- orderbridge report -->\n"
"""The first bytes of every report, by which a file is recognised as one."""
_UNITS: Final = (
    (timedelta(days=1), "days"),
    (timedelta(hours=1), "h"),
    (timedelta(minutes=1), "min"),
)


def report(out: Path) -> ReportData:
    """Writes the report, whole or not at all, and returns what it shows.

    A new file can be read by its owner only: business figures are for the owner to share. An existing report keeps its
    mode; a link stays a link.

    Raises:
        UsageError: there is no reconciled warehouse; `out` cannot be written, or see `output_target`.
    """
    target = report_target(out)
    with open_warehouse() as warehouse:
        data = read_report_data(warehouse)
    content = page(data).encode()
    mode = target.stat().st_mode & 0o777 if target.exists() else PRIVATE_FILE
    with disk_errors(f"{target} cannot be written", OUT_HINT), replace_file(target, mode) as file:
        file.write(content)
    return data


def report_target(out: Path) -> Path:
    """The file to write. Raises UsageError, see `output_target`."""
    return output_target(out, "a report", OUT_HINT, _is_report)


def _is_report(file: Path) -> bool:
    with file.open("rb") as content:
        return content.read(len(START)) in (START.encode(), b"")


def page(data: ReportData) -> str:
    """The whole page."""
    by_severity, by_entity = (
        dict.fromkeys(SEVERITIES, 0),
        Counter[str](dict.fromkeys((*LISTS, "erp_customers"), 0)),
    )
    findings = [row for row in data.rows["findings"] if row["findings"]]
    for row in findings:
        by_severity[row["severity"]] += row["findings"]
        by_entity[row["entity"]] += row["findings"]
    read = {row["resource"] for row in data.rows["lists"] if row["taken_at"] is not None}
    content = {
        "listed": {
            name: data.counts[name][0] - data.counts[name][1] if name in read else None
            for name in LISTS
        },
        "never_read": [name for name in LISTS if name not in read],
        "by_severity": by_severity,
        "findings": findings,
        "accepted": sum(row["accepted"] for row in data.rows["findings"]),
        "news": _news(data),
        "tables": [
            {"name": name, "rows": rows, "missing": missing, "findings": by_entity.get(name)}
            for name, (rows, missing) in data.counts.items()
        ],
        "age": lambda row: row["taken_at"] and _age(data.run["as_of"] - row["taken_at"]),
        "mark": lambda *tables: _mark(data, tables),
        "severities": SEVERITIES,
        "rule_link": lambda row: tag(
            '<a href="#{}">{}</a>', anchor(row["entity"], row["rule"]), words(row["rule"])
        ),
        # a warehouse written by another version may have other rules
        "rules": [
            (row, find_rule(f"{row['entity']}.{row['rule']}"), anchor(row["entity"], row["rule"]))
            for row in findings
        ],
        "proven": [row["resource"] for row in data.rows["lists"] if row["is_proven"]],
    }
    return START + render("report.html.j2", data=data, **content, **_orders(data))


def _news(data: ReportData) -> list[str]:
    """The new findings as lines, with the names of rules as words."""
    counts = in_words(data.new_findings)[:1]
    return counts + [
        f"{one.severity}, {words(one.entity)}: {words(one.rule)}: {one.detail or one.findings}"
        for one in data.new_findings
        if one.severity != "info"
    ]


def _mark(data: ReportData, tables: Sequence[str]) -> str:
    """The sign that a column of these tables rests on an assumption; empty where none does."""
    return f" {MARK}" if any(one.startswith(tuple(tables)) for one in data.assumed_columns) else ""


def _age(duration: timedelta) -> str:
    unit, name = next(((unit, name) for unit, name in _UNITS if duration >= 2 * unit), _UNITS[-1])
    return tag('<span class="short">{} {}</span>', max(duration, timedelta()) // unit, name)


def _orders(data: ReportData) -> dict[str, list[TimeChart]]:
    """Charts of orders and revenue: of the last days, and by day, month or year."""
    first, today, rows = data.run["first_day"], data.run["today"], data.rows
    recent = [row for row in rows["order_days"] if first <= row["day"] <= today]
    span = f", the last {data.run['recent_days']} days"
    counts: Counter[date] = Counter()
    for row in rows["order_days"]:
        counts[row["day"]] += row["orders"]
    orders = {day: Decimal(count) for day, count in counts.items()}
    charts = (
        [time_chart("Orders by {period}", orders, today, lambda count: f"{count:,} orders")]
        if orders
        else []
    )
    return {
        "recent_revenue": [
            _revenue_chart(recent, row["currency"], span, today, (first, today))
            for row in rows["recent"][:2]
            if row["total"] is not None
        ],
        "order_charts": [
            *charts,
            *(
                _revenue_chart(rows["order_days"], row["currency"], "", today)
                for row in rows["order_totals"][:1]
            ),
        ],
    }


def _revenue_chart(
    rows: Rows, currency: str | None, span: str, as_of: date, days: tuple[date, date] | None = None
) -> TimeChart:
    values = {
        row["day"]: row["total"]
        for row in rows
        if row["currency"] == currency and row["total"] is not None
    }
    title = f"Revenue by {{period}}{f' in {currency}' if currency else ''}{span}"
    return time_chart(
        title, values, as_of, lambda total: f"{total:,.2f} {currency or '(currency unknown)'}", days
    )
