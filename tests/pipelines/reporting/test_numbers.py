"""The report's numbers, computed again from the raw tables; and reports of very small and very large warehouses."""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

from pipelines.warehouse.build import open_warehouse
from tests.pipelines.reporting.page import change, made
from transforms.rules import RULES


def words_of(path: Path) -> str:
    return " ".join(made(path).words.split())


def test_the_numbers_of_orders_are_those_of_the_raw_table(warehouse: Path) -> None:
    with open_warehouse(warehouse) as connection:
        orders = connection.execute(
            "SELECT created_at, status, total, customer__id::VARCHAR FROM raw.orders"
        ).fetchall()
        customers = {key for (key,) in connection.execute("SELECT id FROM raw.customers").fetchall()}
        ((ended,),) = connection.execute("SELECT max(ended_at) FROM ops.runs").fetchall()
        ((bi_orders, bi_cancelled, bi_revenue),) = connection.execute(
            "SELECT sum(orders), sum(cancelled_orders), sum(revenue) FROM bi.revenue_by_day"
        ).fetchall()
    today = ended.astimezone(UTC).date()
    first = today - timedelta(days=29)
    days: Counter[date] = Counter()
    revenue: dict[date, Decimal] = {}
    known = cancelled = 0
    for created_at, status, total, customer in orders:
        if status == "CANCELLED":
            cancelled += 1
            continue
        day = datetime.fromisoformat(created_at).astimezone(UTC).date()
        days[day] += 1
        revenue[day] = revenue.get(day, Decimal(0)) + Decimal(str(total))
        known += customer in customers
    assert cancelled
    recent = [day for day in days if first <= day <= today]
    words = words_of(warehouse)
    assert f"{sum(days[day] for day in recent)} orders in the 30 days before the run" in words
    for day in recent:
        assert f"{day}{' so far' if day == today else ''}: {revenue[day]:,.2f} PEN" in words
    lately, before = (
        sum((amount for day, amount in revenue.items() if begin <= day < begin + timedelta(days=30)), Decimal(0))
        for begin in (first, first - timedelta(days=30))
    )
    change_percent = f"{100 * (lately / before - 1):+.0f} %"
    assert f"PEN {sum(revenue.values()):,.2f} {days.total()} {lately:,.2f} {change_percent}" in words
    assert f"Orders: {known} by a known customer" in words
    assert f"{days.total()} orders are counted below. {cancelled} more are listed and cancelled" in words
    assert (bi_orders, bi_cancelled, bi_revenue) == (days.total(), cancelled, sum(revenue.values()))


def test_joins_of_the_views_add_and_lose_no_row(warehouse: Path) -> None:
    change(
        warehouse,
        """UPDATE reconciled.orders SET customer_id = 'nobody', customer_status = 'unknown'
        WHERE order_id = (SELECT max(order_id) FROM reconciled.orders);
        UPDATE reconciled.order_lines SET line_total = 10""",
    )
    with open_warehouse(warehouse) as connection:
        cancelled = "SELECT min(revenue), max(revenue) FROM bi.order_lines WHERE is_cancelled"
        assert connection.execute(cancelled).fetchall() == [(0, 0)]
        for view, table in {
            "customers": "raw.customers",
            "orders": "raw.orders",
            "promotions": "raw.promotions",
            "price_lists": "raw.price_lists",
            "order_lines": "raw.orders__lines",
        }.items():
            ((rows, expected),) = connection.execute(
                f"SELECT (SELECT count(*) FROM bi.{view}), (SELECT count(*) FROM {table})"
            ).fetchall()
            assert rows == expected, view


def test_the_view_of_lists_shows_what_the_reconciled_tables_were_made_from(warehouse: Path) -> None:
    sql = "SELECT resource, verdict, rows, read_at, tail_read_at FROM bi.lists ORDER BY read_at NULLS LAST, resource"
    with open_warehouse(warehouse) as connection:
        before = {row[0]: row for row in connection.execute(sql).fetchall()}
        ((last,),) = connection.execute("SELECT max(read_number) FROM ops.coverage").fetchall()
    assert {row[1:3] for row in before.values()} == {("complete", n) for n in (40, 9, 6, 30)}
    add = """INSERT INTO ops.coverage BY NAME SELECT 'r' AS run_id, resource, '{}' AS verdict, 7 AS "distinct",
        ended_at + INTERVAL 1 HOUR AS ended_at, {} AS published, {} AS read_number
        FROM ops.coverage WHERE resource = '{}' AND verdict = 'complete'"""
    change(
        warehouse,
        f"""DELETE FROM ops.coverage WHERE resource = 'promotions';
        {add.format("complete", "false", last + 1, "price_lists")};
        {add.format("tail", "true", last + 1, "orders")};
        UPDATE ops.control_totals SET value = {last + 1} WHERE measure = 'read_number';
        {add.format("unproven", "true", last + 2, "customers")}""",
    )
    with open_warehouse(warehouse) as connection:
        after = {row[0]: row for row in connection.execute(sql).fetchall()}
    assert after.pop("promotions") == ("promotions", "never_read", None, None, None)
    *orders, tail = after.pop("orders")
    assert (*orders, None) == before["orders"]
    assert tail == before["orders"][3] + timedelta(hours=1)
    assert after == {name: before[name] for name in ("customers", "price_lists")}


def test_the_share_of_a_limit_is_not_shown_where_the_limit_means_nothing(warehouse: Path) -> None:
    change(warehouse, "UPDATE reconciled.promotions SET use_count = 9000000000000000000, usage_limit = -1")
    with open_warehouse(warehouse) as connection:
        assert connection.execute("SELECT DISTINCT used_percent FROM bi.promotions").fetchall() == [(None,)]


def test_a_warehouse_with_one_customer_has_a_short_report(warehouse: Path) -> None:
    for table in ("promotions", "price_lists", "orders", "exceptions", "erp_customers", "erp_differences"):
        change(warehouse, f"DELETE FROM reconciled.{table}")
    change(warehouse, "DELETE FROM reconciled.customers WHERE customer_id <> (SELECT min(id) FROM raw.customers)")
    words = words_of(warehouse)
    assert "findings by severity 1 customers 0 promotions" in words
    assert re.search(r"Price lists and their customers Customers: 1 on \w+", words)
    assert warehouse.with_name("report.html").stat().st_size < 14_000


def test_a_hundred_thousand_findings_and_names_of_any_length_have_a_report_of_bounded_size(warehouse: Path) -> None:
    rules = ", ".join(f"('{rule.entity}', '{rule.name}', '{rule.severity}')" for rule in RULES)
    change(
        warehouse,
        f"""INSERT INTO reconciled.exceptions BY NAME
        SELECT entity, i::VARCHAR AS entity_id, rule, severity, 'detail ' || i AS detail, false AS is_accepted
        FROM (VALUES {rules}) AS rules(entity, rule, severity), range({100_000 // len(RULES) + 1}) numbers(i);
        INSERT INTO reconciled.price_lists BY NAME SELECT 'L' || i AS price_list_id, repeat('name ', 99) AS name,
            'root' AS chain_status, 1234567 AS customer_count, FALSE AS is_missing FROM range(3000) numbers(i);
        UPDATE reconciled.promotions SET status = 'running', name = repeat('name ', 99),
            expires_at = (SELECT max(ended_at) FROM ops.runs) + INTERVAL 1 DAY;
        UPDATE reconciled.orders SET total = total * 1000000, currency = chr(65 + (number % 20)::INTEGER) || 'BC',
            ordered_at = (SELECT max(ended_at) FROM ops.runs), order_status = 'CONFIRMED'""",
    )
    words = words_of(warehouse)
    assert re.search(r"\d{2},\d{3} errors \d{2},\d{3} warnings", words)
    assert "more currencies" in words
    assert "name name…" in words.replace(" …", "…")
    assert len(RULES) > 40
    assert f"And {len(RULES) - 40} more." in words
    assert warehouse.with_name("report.html").stat().st_size < 150_000
