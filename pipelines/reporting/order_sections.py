"""The sections of the report about time: what changed since the run before, orders and revenue.

In: `ReportData`. Out: tables, charts and figures for the templates.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, timedelta
from decimal import Decimal
from functools import partial
from typing import Any, Final

from pipelines.reporting.charts import TimeChart, time_chart
from pipelines.reporting.report_data import ReportData, Rows
from pipelines.reporting.tables import Table, bar_column, build_table, count_outcomes, name_column

RECENT_DAYS: Final = 30
MAX_CURRENCIES: Final = 3


def changes(data: ReportData) -> dict[str, object]:
    """What is new since the run before: records, revenue by day, the match with the ERP."""
    as_of, first = _recent_days(data)
    recent = _between(data.rows["order_days"], first, as_of)
    totals = _totals(recent)
    shown = list(totals.items())[:MAX_CURRENCIES]
    return {
        "match_rate": _match_rate(data),
        "recent_days": RECENT_DAYS,
        "recent_revenue": _revenue_charts(recent, f", the last {RECENT_DAYS} days", as_of, (first, as_of)),
        "recent_orders": {
            "orders": sum(row["orders"] for row in recent),
            "cancelled": sum(row["cancelled"] for row in recent),
            "totals": " and ".join(_money(total, currency) for currency, total in shown)
            + (f" (and {len(totals) - len(shown)} more currencies)" if len(totals) > len(shown) else ""),
        },
    }


def _recent_days(data: ReportData) -> tuple[date, date]:
    """The day of the run, and the first of the days that count as recent."""
    as_of = data.as_of.astimezone(UTC).date()
    return as_of, as_of - timedelta(days=RECENT_DAYS - 1)


def _between(rows: Rows, first: date, last: date) -> Rows:
    return [row for row in rows if first <= row["day"] <= last]


def _match_rate(data: ReportData) -> dict[str, object] | None:
    if not data.rows["matches"]:
        return None
    counts = count_outcomes(data.rows["matches"])
    matched = sum(count for (status, _), count in counts.items() if status == "matched")
    lines = sum(count for (status, step), count in counts.items() if status == "matched" or step == "erp")
    before = next((f"{row['percent']:.1f}" for row in data.rows["matched_before"] if row["percent"] is not None), "")
    rate = {"percent": f"{100 * matched / lines:.1f}", "matched": matched, "lines": lines} if lines else None
    return rate and {**rate, "before": before}


def _totals(rows: Rows, column: str = "total") -> dict[str | None, Decimal]:
    """Sums by currency, the largest first; without rows that have none."""
    totals: Counter[str | None] = Counter()
    for row in rows:
        if row[column] is not None:
            totals[row["currency"]] += row[column]
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


def orders(data: ReportData) -> dict[str, object]:
    """Orders by their customers and over time, and revenue by currency."""
    as_of, first = _recent_days(data)
    by_day: Counter[date] = Counter()
    for row in data.rows["order_days"]:
        by_day[row["day"]] += row["orders"]
    counts = {day: Decimal(count) for day, count in by_day.items()}
    charts = [time_chart("Orders by {period}", counts, as_of, lambda count: f"{count:,} orders")] if counts else []
    return {
        "order_charts": [*charts, *_revenue_charts(data.rows["order_days"], "", as_of, most=1)],
        "order_totals": _order_totals(data.rows["order_days"], first, as_of),
        "order_states": _order_states(data.rows["order_states"]),
    }


def _order_totals(days: Rows, first: date, last: date) -> Table:
    """Revenue and orders by currency, altogether and lately."""
    step = timedelta(days=RECENT_DAYS)
    counts, recent = _totals(days, "orders"), _totals(_between(days, first, last))
    before = _totals(_between(days, first - step, last - step))
    rows = [
        {
            "currency": currency or "unknown",
            "revenue": total,
            "orders": int(counts[currency]),
            f"revenue, last {RECENT_DAYS} days": recent.get(currency, Decimal(0)),
            "change": _change(recent.get(currency), before.get(currency)),
        }
        for currency, total in _totals(days).items()
    ]
    return build_table(rows, {name: name for name in rows[0]} if rows else {})


def _change(now: Decimal | None, before: Decimal | None) -> str | None:
    return f"{100 * ((now or 0) / before - 1):+.0f} %" if before and before > 0 else None


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
