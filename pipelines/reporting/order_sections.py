"""The sections of the report about time: what changed since the run before, orders and revenue.

In: `ReportData`. Out: tables, charts and figures for the templates.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, date, timedelta
from decimal import Decimal
from typing import Final

from pipelines.reporting.charts import TimeChart, time_chart
from pipelines.reporting.match_outcomes import count_outcomes
from pipelines.reporting.report_data import ReportData, Rows
from pipelines.reporting.tables import bars, build_table, name_column, spaced

RECENT_DAYS: Final = 30
_ORDER_CUSTOMERS: Final = {
    "matched": "by a known customer",
    "unknown": "by a customer who is not in the table",
    "none": "without a customer",
    "guest": "by guests",
    "not looked for": "not matched with customers",
}


def changes(data: ReportData) -> dict[str, object]:
    """What is new since the run before: records, revenue by day, the match with the ERP."""
    as_of = data.as_of.astimezone(UTC).date()
    first = as_of - timedelta(days=RECENT_DAYS - 1)
    recent = [row for row in data.order_days if first <= row["day"] <= as_of]
    totals = _totals(recent)
    return {
        "is_first_run": all(row["previous_run_id"] is None for row in data.changes),
        "changes": build_table(
            data.changes,
            {
                "list": spaced("resource"),
                "new": "new",
                "changed": "changed",
                "no longer listed": "missing",
                "compared with the run of (UTC)": "previous_at",
            },
        ),
        "match_rate": _match_rate(data),
        "recent_days": RECENT_DAYS,
        "recent_revenue": _revenue_charts(recent, f"Revenue, last {RECENT_DAYS} days,", as_of, (first, as_of))
        if recent
        else [],
        "recent_orders": {
            "orders": sum(row["orders"] for row in recent),
            "totals": " and ".join(_money(total, currency) for currency, total in totals.items()),
        },
        "latest_order_day": str(max((row["day"] for row in data.order_days), default="")),
    }


def _match_rate(data: ReportData) -> dict[str, object] | None:
    if not data.matches:
        return None
    counts = count_outcomes(data.matches)
    matched = sum(count for (status, _), count in counts.items() if status == "matched")
    lines = sum(count for (status, step), count in counts.items() if status == "matched" or step == "erp")
    return {"percent": f"{100 * matched / lines:.1f}", "matched": matched, "lines": lines} if lines else None


def _totals(rows: Rows) -> dict[str | None, Decimal]:
    """Revenue by currency, the largest first; without orders that have no total."""
    totals: Counter[str | None] = Counter()
    for row in rows:
        if row["total"] is not None:
            totals[row["currency"]] += row["total"]
    return {currency: Decimal(total) for currency, total in totals.most_common()}


def _money(total: Decimal, currency: str | None) -> str:
    return f"{total:,.2f} {currency or '(currency unknown)'}"


def _revenue_charts(
    rows: Rows, title: str, as_of: date, days: tuple[date, date] | None = None, most: int = 2
) -> list[TimeChart]:
    """A chart per currency."""
    charts = []
    for currency in list(_totals(rows))[:most]:
        values = {
            row["day"]: Decimal(row["total"])
            for row in rows
            if row["currency"] == currency and row["total"] is not None
        }
        unit = f" in {currency}" if currency else ""
        charts.append(time_chart(f"{title}{unit}".replace(",  in", " in"), values, as_of, _tooltip_of(currency), days))
    return charts


def _tooltip_of(currency: str | None) -> Callable[[Decimal], str]:
    return lambda total: _money(total, currency)


def orders(data: ReportData) -> dict[str, object]:
    """Orders by their customers and over time, and revenue by currency."""
    as_of = data.as_of.astimezone(UTC).date()
    by_day: Counter[date] = Counter()
    for row in data.order_days:
        by_day[row["day"]] += row["orders"]
    counts = {day: Decimal(count) for day, count in by_day.items()}
    charts = [time_chart("Orders", counts, as_of, lambda count: f"{count:,} orders")] if counts else []
    totals = [
        {"currency": currency or "unknown", "total": total} for currency, total in _totals(data.order_days).items()
    ]
    return {
        "order_customer_words": _ORDER_CUSTOMERS,
        "order_charts": [*charts, *_revenue_charts(data.order_days, "Revenue", as_of, most=1)],
        "order_totals": build_table(totals, {"currency": "currency", "revenue": "total"}),
        "order_states": build_table(
            data.order_states,
            {
                "status": name_column("status"),
                "orders": "orders",
                "total": "total",
                "": bars(data.order_states, "orders"),
            },
        ),
        "undated_orders": sum(row["orders"] - row["dated"] for row in data.order_status),
    }
