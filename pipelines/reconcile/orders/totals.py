"""What customers ordered: the lines of the orders, and orders and revenue by customer.

In: a build with the reconciled orders and customers, and the raw child table that holds the lines. Out:
`reconciled.order_lines` and `reconciled.customer_orders`. Amounts of different currencies are never added up, and
cancelled orders do not count.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Final

import duckdb

from orderbridge.pipelines.reconcile.orders.lines import PRODUCT, RawLines, ReadLines
from orderbridge.pipelines.warehouse.sql import sql_name, sql_text
from orderbridge.transforms.frames import BIGINT, BOOLEAN, DATE, MONEY, TEXT, TIMESTAMP, from_arrow
from orderbridge.transforms.orders.lines import ORDER_LINES, lines_findings, lines_part
from orderbridge.transforms.values.currencies import DECIMALS, DECIMALS_USUAL
from orderbridge.transforms.values.dates import OFFSET_MAX, DateContext

CUSTOMER_ORDERS: Final = {
    "customer_id": TEXT,
    "order_count": BIGINT,
    "cancelled_count": BIGINT,
    "currency": TEXT,
    "revenue": MONEY,
    "revenue_by_currency": TEXT,
    "first_ordered_at": TIMESTAMP,
    "last_ordered_at": TIMESTAMP,
    "is_active_30_days": BOOLEAN,
    "is_active_90_days": BOOLEAN,
    "is_active_365_days": BOOLEAN,
    "first_ordered_date": DATE,
    "last_ordered_date": DATE,
    "unknown_orders": BIGINT,
    "unknown_total": MONEY,
    "unknown_because": TEXT,
}
"""`currency` and `revenue` are null where a customer ordered in several currencies; `revenue_by_currency` is JSON text
of the sum by currency (`""` where an order names none). Days are those of the time zone, that of the run the last one;
whether a customer is active is null where only an order without a date, or of an unknown status, may decide it.
`unknown_orders` are those of an unknown status, which nothing else counts. `unknown_because` says why something is
null, or what sums and dates leave out."""

_ACTIVE_DAYS: Final = (30, 90, 365)
_OF_ORDER: Final = (
    "customer_id",
    "ordered_at",
    "currency",
    "is_cancelled",
    "status_class",
    "is_sale",
)


def reconcile_lines(lines: RawLines, read: ReadLines) -> int:
    """Makes `reconciled.order_lines` with the fields of the reconciled orders. Returns the number of raw lines."""
    build = lines.tables.build
    values = {"order_id": "l.order_id", "line_number": "l.position::BIGINT"}
    values |= {one: f"o.{one}" for one in _OF_ORDER}
    if read.is_in_cents:
        values |= {name: _IN_UNITS.format(name=name) for name in _PRICES}
    columns = [f"{values.get(column, f'f.{column}')} AS {column}" for column in ORDER_LINES]
    raw = [f"l.{sql_name(name)} AS {sql_name(new)}" for name, new in lines.passed_on().items()]
    # The lines are many and wide: they must not be the side that a join holds in memory.
    build.execute("SET disabled_optimizers = 'build_side_probe_side,join_order'")
    build.execute(
        f"CREATE OR REPLACE TABLE reconciled.order_lines AS SELECT {', '.join([*columns, *raw])} "
        f"FROM {lines.raw} l POSITIONAL JOIN {read.made} f JOIN reconciled.orders o ON o.order_id = l.order_id"
    )
    build.execute("RESET disabled_optimizers")
    orphans = from_arrow(
        build.sql(
            f"SELECT order_id, {read.columns} FROM {lines.table} ANTI JOIN reconciled.orders USING (order_id)"
        ).to_arrow_table()
    )
    counts = Counter(read.counts)
    counts.subtract(lines_part(orphans, read.reading).counts)
    kinds = build.execute(_KINDS).fetchall() if lines.kind != PRODUCT else []
    lines.tables.findings.add(lines_findings(counts, orphans["order_id"], dict(kinds)))
    ((rows,),) = build.execute(f"SELECT count(*) FROM {lines.table}").fetchall()
    return int(rows)


_KINDS: Final = """
    SELECT line_kind, count(*) FROM reconciled.order_lines
    WHERE line_kind <> 'product' AND _missing_since IS NULL GROUP BY 1"""
_PRICES: Final = ("unit_price", "line_total", "line_amount")
_IN_UNITS: Final = f"""
    CAST(f.{{name}} * CASE {
    " ".join(
        f"WHEN o.currency IN ({', '.join(sql_text(code) for code, of in DECIMALS.items() if of == count)}) "
        f"THEN {Decimal(1).scaleb(-count):f}::DECIMAL(5, 4)"
        for count in sorted({*DECIMALS.values()} - {DECIMALS_USUAL})
    )
} ELSE {Decimal(1).scaleb(-DECIMALS_USUAL):f}::DECIMAL(5, 4) END AS DECIMAL(38, 9))"""
"""An amount in cents of its currency, in units (SQL)."""


_TOTALS: Final = """
    CREATE OR REPLACE TABLE reconciled.customer_orders AS
    WITH known AS (
        FROM reconciled.orders WHERE customer_status = 'matched' AND NOT is_missing
    ), sums AS (
        SELECT customer_id, currency, count(*) FILTER (is_sale) AS orders, count(is_sale) AS stated,
            count(*) FILTER (is_cancelled) AS cancelled, sum(total) FILTER (is_sale) AS amount,
            min(ordered_at) FILTER (is_sale) AS first_at, max(ordered_at) FILTER (is_sale) AS last_at,
            min(ordered_date) FILTER (is_sale) AS first_date, max(ordered_date) FILTER (is_sale) AS last_date,
            max(ordered_date) FILTER (is_sale AND (ordered_at <= $until) IS NOT false) AS last_past_date,
            count(ordered_date) FILTER (is_sale) AS dated, count(total) FILTER (is_sale) AS priced,
            count(*) FILTER (is_sale IS NULL) AS unknown, sum(total) FILTER (is_sale IS NULL) AS unknown_amount,
            max(coalesce(ordered_date, 'infinity'))
                FILTER (is_sale IS NULL AND (ordered_at <= $until) IS NOT false)
                AS last_unknown_date
        FROM known GROUP BY customer_id, currency
    ), totals AS (
        SELECT customer_id, sum(orders) AS orders, sum(cancelled) AS cancelled, min(first_at) AS first_at,
            max(last_at) AS last_at, min(first_date) AS first_date, max(last_date) AS last_date,
            max(last_past_date) AS last_past_date, sum(orders) - sum(dated) AS undated,
            sum(orders) - sum(priced) AS unpriced, count(amount) AS currencies, sum(stated) AS stated,
            sum(unknown)::BIGINT AS unknown, max(last_unknown_date) AS last_unknown_date,
            CASE WHEN count(unknown_amount) = 1 THEN max(unknown_amount) END AS unknown_amount,
            max(currency) FILTER (amount IS NOT NULL) AS currency, max(amount) AS amount,
            '{' || string_agg(
                to_json(coalesce(currency, ''))::VARCHAR || ': "' || rtrim(rtrim(amount::VARCHAR, '0'), '.') || '"',
                ', ' ORDER BY currency NULLS LAST
            ) FILTER (amount IS NOT NULL) || '}' AS amounts
        FROM sums GROUP BY customer_id
    ), stated AS (
        SELECT *, undated = 0 OR $dates IS NULL AS has_dates, unpriced = 0 OR $totals IS NULL AS has_totals,
            nullif(concat_ws('; ', CASE WHEN undated > 0 THEN
                coalesce($dates, 'ordered_at: ' || {undated of orders} || ' none') END,
                CASE WHEN unpriced > 0 THEN
                coalesce($totals, 'total: ' || {unpriced of orders} || ' none') END,
                CASE WHEN unknown > 0 THEN
                'order_status: ' || {unknown of unknown + stated} || ' one of unknown meaning' END),
                '') AS because
        FROM totals
    )
    SELECT c.customer_id, CASE WHEN stated = 0 THEN NULL ELSE coalesce(orders, 0) END::BIGINT AS order_count,
        CASE WHEN stated = 0 THEN NULL ELSE coalesce(cancelled, 0) END::BIGINT AS cancelled_count,
        CASE WHEN currencies = 1 AND has_totals THEN currency END AS currency,
        CASE WHEN currencies = 1 AND has_totals THEN amount END AS revenue,
        CASE WHEN has_totals THEN amounts END AS revenue_by_currency,
        CASE WHEN has_dates THEN first_at END AS first_ordered_at,
        CASE WHEN has_dates THEN last_at END AS last_ordered_at,
        {is_active}, CASE WHEN has_dates THEN first_date END AS first_ordered_date,
        CASE WHEN has_dates THEN last_date END AS last_ordered_date,
        coalesce(unknown, 0) AS unknown_orders, unknown_amount AS unknown_total,
        because AS unknown_because
    FROM reconciled.customers c LEFT JOIN stated USING (customer_id)"""
_OF_ORDERS: Final = re.compile(r"\{(\w+) of ([\w +]+)\}")
_COUNTED: Final = (
    r"\1 || ' of ' || (\2) || if((\2) = 1, ' order', ' orders') || if(\1 = 1, ' has', ' have')"
)
_IS_ACTIVE: Final = """
    CASE WHEN last_past_date > $since_{days}::DATE THEN true
        WHEN coalesce(undated, 0) = 0 AND coalesce(last_unknown_date <= $since_{days}::DATE, true) THEN false END
    AS is_active_{days}_days"""


def reconcile_customer_orders(
    build: duckdb.DuckDBPyConnection, context: DateContext, unknown: Mapping[str, str] | None = None
) -> None:
    """Makes `reconciled.customer_orders`. Orders that are no sales or no longer listed do not count.

    Args:
        build: with the reconciled orders and customers.
        context: the instant and the day that activity is relative to. Later orders are planned ones: they make nobody
            active.
        unknown: why customers, dates or totals of the orders are not known, by field: without customers, all but
            `customer_id` is null; the others where an order of the customer lacks them.
    """
    reasons = dict(unknown or {})
    active = ", ".join(_IS_ACTIVE.format(days=days) for days in _ACTIVE_DAYS)
    values: dict[str, object] = {"until": context.as_of + OFFSET_MAX}
    values |= {"dates": reasons.get("ordered_at"), "totals": reasons.get("total")}
    values |= {f"since_{days}": context.today - timedelta(days) for days in _ACTIVE_DAYS}
    totals = _OF_ORDERS.sub(_COUNTED, _TOTALS.replace("{is_active}", active))
    build.execute(totals, values)
    if reason := reasons.get("customer_id"):
        nothing = ", ".join(f"{name} = NULL" for name in list(CUSTOMER_ORDERS)[1:-1])
        build.execute(
            f"UPDATE reconciled.customer_orders SET {nothing}, unknown_because = $1", [reason]
        )
