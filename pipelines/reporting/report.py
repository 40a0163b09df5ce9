"""The report: one HTML page about the published warehouse, for a mail or a shared folder.

In: the published warehouse. Out: a file that needs no other file and has no scripts, with counts, ids and the names of
promotions, price lists and fields, and no personal data. The same warehouse gives the same bytes: every age is the age
at the end of the run that reconciled it.
"""

from __future__ import annotations

from collections import Counter
from datetime import date, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, Final

from pipelines.reporting.charts import TimeChart, time_chart
from pipelines.reporting.report_data import RECENT_DAYS, SOON_DAYS, ReportData, Rows, read_report_data
from pipelines.reporting.tables import (
    Cell,
    Table,
    anchor,
    bar_column,
    build_table,
    name_column,
    render,
    words,
)
from pipelines.warehouse.build import open_warehouse
from pipelines.warehouse.finding_history import in_words
from sources.contract import LISTS
from sources.disk import PRIVATE_FILE, disk_errors, replace_file
from sources.errors import UsageError
from sources.settings import own_path
from transforms.rules import RULES, SEVERITIES

OUT_HINT: Final = "Name a file in an existing, writable folder: orderbridge report --out FILE"
START: Final = "<!doctype html>\n<!-- orderbridge report -->\n"
"""The first bytes of every report, by which a file is recognised as one."""
_HOUR: Final = timedelta(hours=1)
_DAY: Final = timedelta(days=1)
MAX_CURRENCIES: Final = 3


def report(out: Path) -> ReportData:
    """Writes the report, whole or not at all, and returns what it shows.

    A new file can be read by its owner only: business figures are for the owner to share. An existing report keeps its
    mode; a link stays a link.

    Raises:
        UsageError: there is no reconciled warehouse; `out` cannot be written, is not a report, or others can write to
            its folder.
    """
    target, mode = report_target(out)
    with open_warehouse() as warehouse:
        data = read_report_data(warehouse)
    content = page(data).encode()
    with disk_errors(f"{target} cannot be written", OUT_HINT), replace_file(target, mode) as file:
        file.write(content)
    return data


def report_target(out: Path) -> tuple[Path, int]:
    """The file to write, and the mode that it gets.

    Raises:
        UsageError: it is a file that is not a report (a typo must not cost a warehouse), or others can write to its
            folder.
    """
    target = own_path(out.absolute())
    if not target.exists():
        return target, PRIVATE_FILE
    if target.is_file():
        with disk_errors(f"{target} cannot be read", OUT_HINT), target.open("rb") as file:
            if file.read(len(START)) in (START.encode(), b""):
                return target, target.stat().st_mode & 0o777
    raise UsageError(f"{target} exists and is not a report", "Name another file: orderbridge report --out FILE")


def page(data: ReportData) -> str:
    """The whole page."""
    by_severity, by_entity = dict.fromkeys(SEVERITIES, 0), dict.fromkeys((*LISTS, "erp_customers"), 0)
    accepted = sum(row["accepted"] for row in data.rows["findings"])
    findings = [row for row in data.rows["findings"] if row["findings"]]
    before = {_rule_key(row): row["findings"] for row in data.rows["findings_before"]}
    for row in findings:
        row["before"] = before.get(_rule_key(row), 0) if before else None
        by_severity[row["severity"]] += row["findings"]
        by_entity[row["entity"]] = by_entity.get(row["entity"], 0) + row["findings"]
    rules = {(rule.entity, rule.name): rule for rule in RULES}
    read = {row["resource"] for row in data.rows["lists"] if row["taken_at"] is not None}
    content = {
        "listed": {
            name: data.counts[name][0] - (data.counts[name][1] or 0) if name in read else None for name in LISTS
        },
        "never_read": [name for name in LISTS if name not in read],
        "by_severity": by_severity,
        "findings": findings,
        "accepted": accepted,
        "news": in_words(data.new_findings),
        "tables": [
            {"name": name, "rows": rows, "missing": missing, "findings": by_entity.get(name)}
            for name, (rows, missing) in data.counts.items()
        ],
        "verdict": _verdict,
        "age": lambda row: row["taken_at"] and Cell(_age(data.as_of - row["taken_at"]), "short"),
        "severities": SEVERITIES,
        "rule_link": lambda row: Cell(words(row["rule"]), href=f"#{anchor(row['entity'], row['rule'])}"),
        # a warehouse written by another version may have other rules
        "rules": [
            (row, rules.get((row["entity"], row["rule"])), anchor(row["entity"], row["rule"])) for row in findings
        ],
        "empty": lambda name: _empty(data, name),
        "soon_days": SOON_DAYS,
    }
    return START + render("report.html.j2", data=data, **content, **_changes(data), **_orders(data))


def _rule_key(row: dict[str, Any]) -> tuple[str, ...]:
    return row["entity"], row["rule"], row["severity"]


def _verdict(row: dict[str, Any]) -> Cell:
    """The verdict of a list's last walk, in its colour."""
    if not row["was_taken"]:
        return Cell(f"{row['verdict']}, not published", "error")
    return Cell(row["verdict"], "good" if row["verdict"] == "complete" else "warning")


def _age(duration: timedelta) -> str:
    if duration < 2 * _HOUR:
        return f"{max(duration, timedelta()) // timedelta(minutes=1)} min"
    return f"{duration // _HOUR} h" if duration < 2 * _DAY else f"{duration // _DAY} days"


def _empty(data: ReportData, name: str) -> str:
    """What an empty table means: nothing is listed only where the list was read whole."""
    walks = [row for row in data.rows["lists"] if row["resource"] == name and row["was_taken"]]
    is_proven = any(row["verdict"] == "complete" and row["taken_at"] <= data.as_of for row in walks)
    singular = words(name.removesuffix("s"))
    return f"No {singular} is listed." if is_proven else f"No {singular} was read."


def _changes(data: ReportData) -> dict[str, object]:
    """Orders and revenue of the last days."""
    first = data.first_recent_day
    recent = [row for row in data.rows["order_days"] if first <= row["day"] <= data.today]
    totals = _totals(recent)
    shown = list(totals.items())[:MAX_CURRENCIES]
    return {
        "recent_days": RECENT_DAYS,
        "recent_revenue": _revenue_charts(recent, f", the last {RECENT_DAYS} days", data.today, (first, data.today)),
        "recent_orders": {
            "orders": sum(row["orders"] for row in recent),
            "cancelled": sum(row["cancelled"] for row in recent),
            "totals": " and ".join(_money(total, currency) for currency, total in shown)
            + (f" (and {len(totals) - len(shown)} more currencies)" if len(totals) > len(shown) else ""),
        },
    }


def _totals(rows: Rows) -> dict[str | None, Decimal]:
    """Sums by currency, the largest first; without rows that have none."""
    totals: Counter[str | None] = Counter()
    for row in rows:
        if row["total"] is not None:
            totals[row["currency"]] += row["total"]
    return {currency: Decimal(total) for currency, total in totals.most_common()}


def _money(total: Decimal, currency: str | None) -> str:
    return f"{total:,.2f} {currency or '(currency unknown)'}"


def _revenue_charts(
    rows: Rows, span: str, as_of: date, days: tuple[date, date] | None = None, most: int = 2
) -> list[TimeChart]:
    """A chart per currency."""
    charts = []
    for currency in list(_totals(rows))[:most]:
        own = [row for row in rows if row["currency"] == currency and row["total"] is not None]
        values = {row["day"]: Decimal(row["total"]) for row in own}
        title = f"Revenue by {{period}}{f' in {currency}' if currency else ''}{span}"
        charts.append(time_chart(title, values, as_of, partial(_money, currency=currency), days))
    return charts


def _orders(data: ReportData) -> dict[str, object]:
    """Orders and revenue over time, and orders by status."""
    by_day: Counter[date] = Counter()
    for row in data.rows["order_days"]:
        by_day[row["day"]] += row["orders"]
    counts = {day: Decimal(count) for day, count in by_day.items()}
    charts = [time_chart("Orders by {period}", counts, data.today, lambda count: f"{count:,} orders")] if counts else []
    return {
        "order_charts": [*charts, *_revenue_charts(data.rows["order_days"], "", data.today, most=1)],
        "order_states": _order_states(data.rows["order_states"]),
    }


def _order_states(rows: Rows) -> Table:
    """Orders by status, the most frequent first, with their totals by currency."""
    states: dict[str, dict[str, Any]] = {}
    for row in rows:
        state = states.setdefault(row["status"], {"status": row["status"], "orders": 0})
        state["orders"] += row["orders"]
        state[f"total {row['currency'] or '(currency unknown)'}"] = row["total"]
    shown = sorted(states.values(), key=lambda state: (-state["orders"], state["status"]))
    headings = [f"total {currency or '(currency unknown)'}" for currency in list(_totals(rows))[:MAX_CURRENCIES]]
    return build_table(
        [{**dict.fromkeys(headings), **state} for state in shown],
        {
            "status": name_column("status"),
            "orders": "orders",
            **{heading: heading for heading in headings},
            "": bar_column(shown, "orders"),
        },
    )
