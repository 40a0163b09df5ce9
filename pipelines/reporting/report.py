"""The report: one HTML page about the published warehouse, for a mail or a shared folder.

In: the published warehouse. Out: a file that needs no other file and has no scripts, with counts, ids and the names of
promotions, price lists and fields, and no personal data. The same warehouse gives the same bytes in each language:
every age is the age at the end of the run that reconciled it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, timedelta, tzinfo
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from orderbridge.pipelines.reporting.charts import TimeChart, time_chart
from orderbridge.pipelines.reporting.outputs import output_target
from orderbridge.pipelines.reporting.report_data import ReportData, read_report_data
from orderbridge.pipelines.reporting.tables import anchor, render, tag
from orderbridge.pipelines.reporting.texts import Language, ReportTexts, report_texts
from orderbridge.pipelines.warehouse.bi.marks import MARK
from orderbridge.pipelines.warehouse.build import open_warehouse
from orderbridge.pipelines.warehouse.finding_history import NewFindings
from orderbridge.pipelines.warehouse.sql import Rows
from orderbridge.sources.command_line import typed_command
from orderbridge.sources.contract import LISTS
from orderbridge.sources.disk import PRIVATE_FILE, disk_errors, replace_file
from orderbridge.sources.errors import UsageError
from orderbridge.transforms.rules import SEVERITIES, find_rule

OUT_HINT: Final = "Name another file, in a writable folder: orderbridge report --out FILE"
START: Final = "<!doctype html>\n<!-- orderbridge report -->\n"
"""The first bytes of every report, by which a file is recognised as one."""
_OTHER_FORMATS: Final = (
    ".csv", ".doc", ".docx", ".json", ".ods", ".odt", ".parquet", ".pdf", ".png", ".pptx", ".xls", ".xlsx"
)  # fmt: skip
"""Endings of files that programs other than a browser open."""
_SHORT: Final = '<span class="short">{}</span>'
_UNITS: Final = (
    (timedelta(days=1), "report.days_old"),
    (timedelta(hours=1), "report.hours_old"),
    (timedelta(minutes=1), "report.minutes_old"),
)
_ENDINGS: Final = {
    "empty page": "ending.empty_page",
    "repeated page": "ending.repeated_page",
    "hasNextPage false": "ending.last_page",
    "hasMore false": "ending.end",
    "single response": "ending.single",
    "assumed: status 400": "ending.rejected_page",
    "assumed: status 404": "ending.no_page",
    "error": "ending.error",
}
"""How a walk ended, as the coverage has it; others are shown as they are."""


@dataclass(frozen=True, slots=True)
class News:
    """What the last run was the first to find: how many of each severity in words, and those that are not info."""

    counts: str
    findings: Sequence[NewFindings]


def report(out: Path, language: Language = "en") -> ReportData:
    """Writes the report, whole or not at all, and returns what it shows.

    A new file can be read by its owner only: business figures are for the owner to share. An existing report keeps its
    mode; a link stays a link.

    Raises:
        UsageError: there is no reconciled warehouse; `out` cannot be written, or see `output_target`.
    """
    target = report_target(out)
    with open_warehouse() as warehouse:
        data = read_report_data(warehouse)
    content = page(data, language).encode()
    mode = target.stat().st_mode & 0o777 if target.exists() else PRIVATE_FILE
    with disk_errors(f"{target} cannot be written", OUT_HINT), replace_file(target, mode) as file:
        file.write(content)
    return data


def report_target(out: Path, option: str = "--out") -> Path:
    """The file to write, which an option names. Raises UsageError, see `output_target`."""
    hint = f"Name another file, in a writable folder: {typed_command(option, 'report.html')}"
    return output_target(out, "a report", hint, _is_report)


def check_ending(out: Path, option: str = "--out") -> None:
    """Checks the name of a new report, which an option gives. An existing file is replaced whatever its name.

    Raises:
        UsageError: programs would take it for something else than HTML.
    """
    if out.suffix.casefold() in _OTHER_FORMATS and not out.exists():
        as_page = typed_command(option, str(out.with_suffix(".html")))
        raise UsageError(
            f"{out.name}: the report is an HTML page, which does not open under this name",
            f"Name it .html (a browser can print it as PDF): {as_page}",
        )


def _is_report(file: Path) -> bool:
    with file.open("rb") as content:
        return content.read(len(START)) in (START.encode(), b"")


def page(data: ReportData, language: Language = "en", zone: tzinfo | None = UTC) -> str:
    """The whole page, with its times by the clock of a zone."""
    texts = report_texts(language, zone)
    findings = [row for row in data.rows["findings"] if row["findings"]]
    by_severity = dict.fromkeys(SEVERITIES, 0)
    by_entity = Counter[str](dict.fromkeys((*LISTS, "erp_customers"), 0))
    for row in findings:
        by_severity[row["severity"]] += row["findings"]
        by_entity[row["entity"]] += row["findings"]
    read = {row["resource"] for row in data.rows["lists"] if row["taken_at"] is not None}
    never_read = [name for name in LISTS if name not in read]
    content = {
        "listed": {
            name: data.counts[name][0] - data.counts[name][1] if name in read else None
            for name in LISTS
        },
        "never_read": ", ".join(texts.named("table", name) for name in never_read),
        "by_severity": by_severity,
        "findings": findings,
        "accepted": sum(row["accepted"] for row in data.rows["findings"]),
        "news": _news(data, texts),
        "tables": [
            {"name": name, "rows": rows, "missing": missing, "findings": by_entity.get(name)}
            for name, (rows, missing) in data.counts.items()
        ],
        "mark": lambda *tables: _mark(data, tables),
        "severities": SEVERITIES,
        # a warehouse written by another version may have other rules
        "rules": [
            (row, find_rule(f"{row['entity']}.{row['rule']}"), anchor(row["entity"], row["rule"]))
            for row in findings
        ],
        "proven": [row["resource"] for row in data.rows["lists"] if row["is_proven"]],
        **_columns(data, texts),
    }
    charts = _charts(data, texts)
    return START + render("report.html.j2", language, zone, data=data, **content, **charts)


def _columns(data: ReportData, texts: ReportTexts) -> dict[str, Callable[[dict[str, Any]], object]]:
    """Columns of tables that only this page has, as functions of their rows."""

    def age(row: dict[str, Any]) -> object:
        taken_at = row["taken_at"]
        return taken_at and tag(_SHORT, _age(data.run["as_of"] - taken_at, texts))

    def verdict(row: dict[str, Any]) -> object:
        words = texts(f"list_verdict.{row['verdict']}")
        shown = words if row["was_taken"] else texts("report.not_published", verdict=words)
        return tag('<span class="{}">{}</span>', row["css"], shown)

    def ending(row: dict[str, Any]) -> str:
        ended_by = str(row["ended_by"])
        return texts.or_own(_ENDINGS.get(ended_by, ""), ended_by)

    def rule_link(row: dict[str, Any]) -> object:
        name = texts.named("rule", row["rule"])
        return tag('<a href="#{}">{}</a>', anchor(row["entity"], row["rule"]), name)

    def month(row: dict[str, Any]) -> object:
        return tag(_SHORT, texts.period("month", row["month"]))

    return {
        "age": age,
        "verdict": verdict,
        "ending": ending,
        "rule_link": rule_link,
        "month": month,
    }


def _news(data: ReportData, texts: ReportTexts) -> News:
    counts = Counter[str]()
    for one in data.new_findings:
        counts[one.severity] += one.findings
    shown = [texts(f"found.{name}", count=counts[name]) for name in SEVERITIES if counts[name]]
    return News(", ".join(shown), [one for one in data.new_findings if one.severity != "info"])


def _mark(data: ReportData, tables: Sequence[str]) -> str:
    """The sign that a column of these tables rests on an assumption; empty where none does."""
    return f" {MARK}" if any(one.startswith(tuple(tables)) for one in data.assumed_columns) else ""


def _age(duration: timedelta, texts: ReportTexts) -> str:
    unit, code = next(((unit, code) for unit, code in _UNITS if duration >= 2 * unit), _UNITS[-1])
    return texts(code, count=max(duration, timedelta()) // unit)


def _charts(data: ReportData, texts: ReportTexts) -> dict[str, list[TimeChart]]:
    """Charts of orders and revenue: of the last days, and by day, month or year."""
    first = data.run["first_day"]
    today = data.run["today"]
    rows = data.rows
    recent = [row for row in rows["order_days"] if first <= row["day"] <= today]
    counts: Counter[date] = Counter()
    for row in rows["order_days"]:
        counts[row["day"]] += row["orders"]
    orders = {day: Decimal(count) for day, count in counts.items()}
    charts: list[TimeChart] = []
    if orders:
        charts.append(
            time_chart(
                texts,
                lambda period: texts("chart.orders", period=period),
                orders,
                today,
                lambda count: texts("chart.order_count", count=int(count)),
            )
        )
    charts += [
        _revenue_chart(texts, rows["order_days"], row["currency"], today)
        for row in rows["order_totals"][:1]
    ]
    days = data.run["recent_days"]
    return {
        "recent_revenue": [
            _revenue_chart(texts, recent, row["currency"], today, (first, today), days)
            for row in rows["recent"][:2]
            if row["total"] is not None
        ],
        "order_charts": charts,
    }


def _revenue_chart(
    texts: ReportTexts,
    rows: Rows,
    currency: str | None,
    as_of: date,
    days: tuple[date, date] | None = None,
    day_count: int = 0,
) -> TimeChart:
    """The revenue in a currency over time; of the last days, if there are `days`."""
    values = {
        row["day"]: row["total"]
        for row in rows
        if row["currency"] == currency and row["total"] is not None
    }
    code = f"chart.revenue{'_recent' if days else ''}{'_in' if currency else ''}"
    shown_currency = currency or texts("report.currency_unknown")
    return time_chart(
        texts,
        lambda period: texts(code, period=period, currency=currency, days=day_count),
        values,
        as_of,
        lambda total: texts("report.amount", amount=total, currency=shown_currency),
        days,
    )
