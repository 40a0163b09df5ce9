"""The views of `bi` answer what their names say, of small tables whose answers are known."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import duckdb
import pytest

from orderbridge.pipelines.reconcile.reconcile import Reconciling
from orderbridge.pipelines.warehouse.bi.views import create_views, statements
from orderbridge.pipelines.warehouse.ops import record_promotion_uses
from orderbridge.sources.settings import ReconcileSettings

AS_OF = datetime(2026, 7, 1, 2, tzinfo=UTC)  # in Lima still the last day of June


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(str(tmp_path_factory.mktemp("views") / "build.duckdb")) as build:
        build.execute("SET TimeZone = 'UTC'")
        settings = ReconcileSettings(timezone="America/Lima")
        Reconciling(settings=settings).build_tables(build, "run", AS_OF)
        yield build


@pytest.fixture
def build(empty: duckdb.DuckDBPyConnection) -> Iterator[duckdb.DuckDBPyConnection]:
    empty.begin()
    yield empty
    empty.rollback()


def insert(build: duckdb.DuckDBPyConnection, table: str, *rows: Mapping[str, Any]) -> None:
    for row in rows:
        names, marks = ", ".join(row), ", ".join("?" * len(row))
        build.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", list(row.values()))


def order(number: str, day: date, customer: str | None = "1", **more: Any) -> dict[str, Any]:
    at = datetime(day.year, day.month, day.day, 18, tzinfo=UTC)
    values = {
        "order_id": number,
        "customer_id": customer,
        "ordered_at": at,
        "ordered_date": day,
        "currency": "PEN",
    }
    stated = {
        "customer_status": "matched",
        "total": Decimal(10),
        "is_cancelled": False,
        "is_sale": not more.get("is_cancelled", False),
        "is_missing": False,
    }
    return values | stated | more


def test_top_products_are_by_what_their_lines_come_to(
    build: duckdb.DuckDBPyConnection,
) -> None:
    day = date(2026, 6, 1)
    insert(
        build,
        "reconciled.orders",
        order("a", day),
        order("b", day),
        order("c", day, is_cancelled=True),
    )
    lines = [
        ("a", "S1", "Soap", "3", "4.005"), ("b", "S1", "Soap bar", "1", "2.50"), ("c", "S1", "Soap", "9", "81"),
        ("a", None, "Gift", "1", "5"), ("b", "S2", None, "1", None), ("b", "S1", None, "2", None),
        ("b", "S3", None, "900000000000", None), ("b", "S1", None, None, "0"),
    ]  # fmt: skip
    for number, (order_id, product, name, quantity, amount) in enumerate(lines):
        amounts = {"quantity": quantity, "line_amount": amount}
        row = {
            "order_id": order_id,
            "line_number": number,
            "line_kind": "product",
            "product": product,
            "product_name": name,
        }
        decimals = {key: None if text is None else Decimal(text) for key, text in amounts.items()}
        insert(build, "reconciled.order_lines", row | decimals)
    sold = """
        SELECT product, product_name, orders, quantity, revenue, unpriced_lines, uncounted_lines
        FROM bi.top_products ORDER BY product"""
    assert build.execute(sold).fetchall() == [
        ("Gift", "Gift", 1, 1, Decimal("5.00"), 0, 0),
        ("S1", "Soap bar", 2, 6, Decimal("6.51"), 1, 1),
        ("S2", None, 1, 1, None, 1, 0),
        ("S3", None, 1, Decimal("9e11"), None, 1, 0),
    ]
    by_month = "SELECT product, revenue, unpriced_lines, uncounted_lines FROM bi.products_by_month WHERE product = 'S1'"
    assert build.execute(by_month).fetchall() == [("S1", Decimal("6.51"), 1, 1)]
    of_cancelled = "SELECT revenue, line_total FROM bi.order_lines WHERE order_id = 'c'"
    assert build.execute(of_cancelled).fetchall() == [(0, 81)]
    computed = "SELECT line_total FROM bi.order_lines WHERE order_id = 'a' AND product = 'S1'"
    assert build.execute(computed).fetchall() == [(Decimal("4.01"),)]


def test_revenue_leaves_out_what_is_no_sale_and_says_what_is_unknown(
    build: duckdb.DuckDBPyConnection,
) -> None:
    known, mixed, unknown = (date(2026, 6, day) for day in (1, 2, 3))
    nothing: dict[str, Any] = {"is_sale": None, "is_cancelled": None, "status_class": "unknown"}
    insert(
        build,
        "reconciled.orders",
        order("open", known, is_sale=False, status_class="open"),
        order("sale", mixed, status_class="sale"),
        order("odd", mixed, **nothing),
        order("odd too", unknown, **nothing, total=Decimal(7)),
    )
    for number in ("open", "sale", "odd", "odd too"):
        amounts = {"quantity": Decimal(1), "line_amount": Decimal(3)}
        insert(
            build,
            "reconciled.order_lines",
            {"order_id": number, "product": number, "line_kind": "product", **amounts},
        )
    days = """
        SELECT ordered_date, orders, cancelled_orders, customers, revenue, unknown_orders, unknown_total
        FROM bi.revenue_by_day ORDER BY ordered_date"""
    assert build.execute(days).fetchall() == [
        (known, 0, 0, 0, 0, 0, None),
        (mixed, 1, 0, 1, 10, 1, 10),
        (unknown, None, None, None, None, 1, 7),
    ]
    months = "SELECT orders, revenue, unpriced_orders, unknown_orders, unknown_total FROM bi.revenue_by_price_list"
    assert build.execute(months).fetchall() == [(1, 10, 0, 2, 17)]
    orders = "SELECT order_id, revenue, status_class FROM bi.orders ORDER BY order_id"
    assert build.execute(orders).fetchall() == [
        ("odd", None, "unknown"), ("odd too", None, "unknown"), ("open", 0, "open"), ("sale", 10, "sale"),
    ]  # fmt: skip
    products = (
        "SELECT product, orders, revenue, unknown_orders FROM bi.top_products ORDER BY product"
    )
    assert build.execute(products).fetchall() == [
        ("odd", None, None, 1), ("odd too", None, None, 1), ("sale", 1, 3, 0),
    ]  # fmt: skip


def test_revenue_by_customer_and_by_day_are_the_same_with_a_row_for_the_gone(
    build: duckdb.DuckDBPyConnection,
) -> None:
    day = date(2026, 6, 30)
    late = datetime(2026, 7, 1, 3, tzinfo=UTC)  # in Lima still June
    listed = {"customer_id": "1", "full_name": "Ana", "is_missing": False, "created_at": late}
    gone = {"customer_id": "2", "full_name": "Eva", "is_missing": True}
    insert(build, "reconciled.customers", {**listed, "price_list_status": "default"}, gone)
    insert(
        build,
        "reconciled.orders",
        order("a", day),
        order("b", day, "2"),
        order("c", day, "9", customer_status="unknown"),
        order("d", day, customer_id=None, customer_status="none"),
        {**order("e", day), "ordered_at": None, "ordered_date": None},
        order("f", day, is_cancelled=True),
        order("g", day, total=None),
        order("h", day, customer_id=None, customer_status=None, is_sale=None),
    )
    by_customer = """
        SELECT customer_id, customer, orders, revenue, undated_orders, undated_revenue, unpriced_orders
        FROM bi.revenue_by_customer ORDER BY customer"""
    assert build.execute(by_customer).fetchall() == [
        (None, "(customers that are not listed)", 2, 20, 0, None, 0),
        (None, "(no customer)", 1, 10, 0, None, 0),
        (None, "(not known)", None, None, 0, None, 0),
        ("1", "Ana", 3, 20, 1, 10, 1),
    ]
    sums = """
        SELECT (SELECT sum(revenue) FROM bi.revenue_by_day),
            sum(revenue) - coalesce(sum(undated_revenue), 0) FROM bi.revenue_by_customer"""
    assert build.execute(sums).fetchall() == [(40, 40)]
    dates = "SELECT created_date FROM bi.customers"
    assert build.execute(dates).fetchall() == [(day,)]
    lists = "SELECT DISTINCT price_list_name FROM bi.orders WHERE customer_id = '1'"
    assert build.execute(lists).fetchall() == [("default",)]


def test_regulars_have_stopped_by_their_own_rhythm(build: duckdb.DuckDBPyConnection) -> None:
    """Of two who ordered 40 days ago, one orders weekly and one now and then; planned orders are no rhythm."""
    today = date(2026, 6, 30)
    gaps = {
        "weekly": [7, 7, 7, 40],
        "seldom": [60, 7, 7, 40],
        "active": [7, 7, 7, 7],
        "new": [7, 7, 60],
    }
    for customer, of_customer in gaps.items():
        insert(
            build,
            "reconciled.customers",
            {"customer_id": customer, "full_name": customer, "is_missing": False},
        )
        day = today
        for n, gap in enumerate(reversed(of_customer)):
            day -= timedelta(days=gap)
            insert(
                build,
                "reconciled.orders",
                *(order(f"{customer}{n}{again}", day, customer) for again in range(2)),
            )
        planned = order(f"{customer} planned", today + timedelta(days=9), customer)
        insert(
            build,
            "reconciled.orders",
            planned,
            order(f"{customer} off", today, customer, is_cancelled=True),
        )
    sql = """SELECT customer_id, order_days, usual_gap_days, longest_gap_days, days_since_last, has_stopped
        FROM bi.regular_customers ORDER BY customer_id"""
    assert build.execute(sql).fetchall() == [
        ("active", 4, 7, 7, 7, False), ("seldom", 4, 7, 60, 40, False), ("weekly", 4, 7, 7, 40, True),
    ]  # fmt: skip


def test_revenue_is_by_the_price_list_at_the_time_of_the_order(
    build: duckdb.DuckDBPyConnection,
) -> None:
    # as an order
    first, gone, moved = (
        datetime(2026, 4, 15, tzinfo=UTC),
        datetime(2026, 4, 20, tzinfo=UTC),
        datetime(2026, 5, 20, 18, tzinfo=UTC),
    )
    insert(
        build,
        "reconciled.price_lists",
        *({"price_list_id": one, "name": n} for one, n in (("A", "Old"), ("B", "New"))),
    )
    for customer, price_list, version, begin, end in (
        ("1", "A", 1, first, moved), ("1", "B", 2, moved, None), ("2", None, 1, first, None),
        ("3", "Z", 1, first, None), ("back", "A", 1, first, gone), ("back", "B", 2, moved, None),
    ):  # fmt: skip
        row = {"customer_id": customer, "price_list_id": price_list, "version": version}
        insert(build, "reconciled.customer_history", row | {"valid_from": begin, "valid_to": end})
    days = (date(2026, 4, 1), date(2026, 5, 1), date(2026, 5, 20), date(2026, 5, 21))
    orders = [order(str(day), day) for day in days]
    insert(build, "reconciled.orders", *orders, order("gone", days[0], is_missing=True))
    insert(build, "reconciled.orders", order("cancelled", days[2], "2", is_cancelled=True))
    others = [
        order(one, days[1], customer, total=None)
        for one, customer in (("x", "2"), ("y", "3"), ("z", "nobody"))
    ]
    insert(
        build,
        "reconciled.orders",
        *others,
        order("guest", days[1], customer_id=None, customer_status="none"),
        order("while not listed", days[1], "back"),
    )
    sql = """SELECT month, price_list, price_list_name, currency, orders, revenue, assumed_orders, unpriced_orders
        FROM bi.revenue_by_price_list ORDER BY month, price_list"""
    assert build.execute(sql).fetchall() == [
        (date(2026, 4, 1), "Old", "Old", "PEN", 1, 10, 1, 0),
        (date(2026, 5, 1), "New", "New", "PEN", 2, 20, 0, 0),
        (date(2026, 5, 1), "Old", "Old", "PEN", 2, 20, 1, 0),
        (date(2026, 5, 1), "default", None, "PEN", 1, None, 0, 1),
        (date(2026, 5, 1), "no known customer", None, "PEN", 2, 10, 0, 1),
        (date(2026, 5, 1), "not listed: Z", None, "PEN", 1, None, 0, 1),
    ]
    of_day = (
        "SELECT orders, cancelled_orders, customers FROM bi.revenue_by_day WHERE ordered_date = ?"
    )
    assert build.execute(of_day, [days[2]]).fetchall() == [(1, 1, 1)]


def test_revenue_is_0_without_orders_and_null_in_several_currencies(
    build: duckdb.DuckDBPyConnection,
) -> None:
    for customer, count, revenue, by_currency in (
        ("1", 0, None, None),
        ("2", 2, None, "{}"),
        ("3", 1, 5, "{}"),
    ):
        insert(build, "reconciled.customers", {"customer_id": customer, "is_missing": False})
        sums = {"order_count": count, "revenue": revenue, "revenue_by_currency": by_currency}
        insert(build, "reconciled.customer_orders", {"customer_id": customer} | sums)
    found = build.execute(
        "SELECT revenue, unknown_because FROM bi.customers ORDER BY customer_id"
    ).fetchall()
    assert found == [(0, None), (None, "revenue: several currencies"), (5, None)]


def test_each_change_of_the_uses_of_a_promotion_is_kept(build: duckdb.DuckDBPyConnection) -> None:
    insert(
        build, "reconciled.promotions", {"promotion_id": "P", "name": "Two for one", "use_count": 0}
    )
    for day, uses in ((1, 3), (2, 3), (3, 8), (4, None), (5, 7)):
        read = datetime(2026, 6, day, 3, tzinfo=UTC)
        build.execute(
            "UPDATE reconciled.promotions SET use_count = ?, _last_seen_at = ?", [uses, read]
        )
        record_promotion_uses(build, f"run {day}")
    sql = "SELECT name, read_date, use_count, uses_since_before FROM bi.promotion_uses ORDER BY read_at"
    assert build.execute(sql).fetchall() == [
        ("Two for one", date(2026, 5, 31), 3, None),
        ("Two for one", date(2026, 6, 2), 8, 5),
        ("Two for one", date(2026, 6, 4), 7, -1),
    ]


def test_open_orders_are_not_yet_sales_and_have_an_age(build: duckdb.DuckDBPyConnection) -> None:
    day = date(2026, 6, 20)
    states = {"a": "open", "b": "sale", "c": "cancelled", "d": "unknown", "e": "test", "f": "open"}
    orders = [
        order(name, day, status_class=state, order_status="PENDING", is_sale=False)
        for name, state in states.items()
    ]
    insert(build, "reconciled.orders", *orders)
    build.execute("UPDATE reconciled.orders SET is_missing = true WHERE order_id = 'f'")
    found = "SELECT order_id, order_status, age_days, currency, total FROM bi.open_orders"
    assert build.execute(found).fetchall() == [("a", "PENDING", 10, "PEN", 10)]


def test_one_row_names_the_environment_and_since_when_each_list_is_complete(
    build: duckdb.DuckDBPyConnection,
) -> None:
    build.execute("UPDATE ops.control_totals SET value = 9 WHERE entity = 'reconciled.lists'")
    insert(build, "ops.warehouse", {"environment": "sandbox"})
    reads = [
        ("customers", "complete", 1), ("customers", "complete", 2), ("customers", "unproven", 3),
        ("promotions", "complete", 4), ("price_lists", "complete", 5), ("orders", "tail", 6),
    ]  # fmt: skip
    for resource, verdict, number in reads:
        at = datetime(2026, 6, number, tzinfo=UTC)
        read = {"resource": resource, "verdict": verdict, "ended_at": at, "read_number": number}
        insert(build, "ops.coverage", read | {"published": True})
    found = """
        SELECT environment, day(customers_complete_at), day(price_lists_complete_at), orders_complete_at,
            oldest_complete_at
        FROM bi.freshness"""
    assert build.execute(found).fetchall() == [("sandbox", 2, 5, None, None)]
    orders = {"resource": "orders", "verdict": "complete", "read_number": 7, "published": True}
    insert(build, "ops.coverage", orders | {"ended_at": datetime(2026, 6, 7, tzinfo=UTC)})
    ((oldest, environment),) = build.execute(
        "SELECT day(oldest_complete_at), (SELECT environment FROM bi.as_of) FROM bi.freshness"
    ).fetchall()
    assert (oldest, environment) == (2, "sandbox")


def test_a_month_has_its_cancelled_orders_and_revenue_without_tax_where_known(
    build: duckdb.DuckDBPyConnection,
) -> None:
    may, june, july = date(2026, 5, 3), date(2026, 6, 3), date(2026, 7, 3)
    taxed: dict[str, Any] = {"total": Decimal(118), "charges_in_total": Decimal(18)}
    insert(build, "reconciled.orders", order("a", june, **taxed), order("b", may))
    insert(build, "reconciled.orders", order("c", june, is_cancelled=True, **taxed))
    unreadable = order("e", july, charges_in_total=None)
    insert(build, "reconciled.orders", order("d", july, **taxed), unreadable)
    found = "SELECT revenue, net_revenue, cancelled_orders FROM bi.revenue_by_month ORDER BY month"
    assert build.execute(found).fetchall() == [
        (10, None, 0),
        (118, 100, 1),
        (128, None, 0),
    ]


def test_a_schema_bi_of_somebody_else_is_left_alone_and_a_copy_has_its_own_names() -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE SCHEMA bi; CREATE TABLE bi.orders AS SELECT 'theirs' AS mine")
        create_views(connection)
        assert connection.execute("FROM bi.orders").fetchall() == [("theirs",)]
    for sql in statements("ours_")[1:]:
        assert not re.findall(r"(?<![\w'])(?:reconciled|ops|bi)\.", sql)
