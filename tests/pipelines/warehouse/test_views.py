"""The views of `bi` answer what their names say, of small tables whose answers are known."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import permutations
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
    )
    by_customer = """
        SELECT customer_id, customer, orders, revenue, undated_orders, undated_revenue, unpriced_orders
        FROM bi.revenue_by_customer ORDER BY customer"""
    assert build.execute(by_customer).fetchall() == [
        (None, "(customers that are not listed)", 2, 20, 0, None, 0),
        (None, "(no customer)", 1, 10, 0, None, 0),
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
    first, moved = (
        datetime(2026, 4, 15, tzinfo=UTC),
        datetime(2026, 5, 20, 18, tzinfo=UTC),
    )
    insert(
        build,
        "reconciled.price_lists",
        *({"price_list_id": one, "name": n} for one, n in (("A", "Old"), ("B", "New"))),
    )
    for customer, price_list, version, begin, end in (
        ("1", "A", 1, first, moved), ("1", "B", 2, moved, None), ("2", None, 1, first, None),
        ("3", "Z", 1, first, None),
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
    )
    sql = """SELECT month, price_list, price_list_name, currency, orders, revenue, assumed_orders, unpriced_orders
        FROM bi.revenue_by_price_list ORDER BY month, price_list"""
    assert build.execute(sql).fetchall() == [
        (date(2026, 4, 1), "Old", "Old", "PEN", 1, 10, 1, 0),
        (date(2026, 5, 1), "New", "New", "PEN", 2, 20, 0, 0),
        (date(2026, 5, 1), "Old", "Old", "PEN", 1, 10, 0, 0),
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


def test_one_row_says_of_which_environment_the_data_is_and_since_when_each_list_is_complete(
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


def test_a_month_has_its_cancelled_orders_and_its_revenue_without_tax_where_that_is_known(
    build: duckdb.DuckDBPyConnection,
) -> None:
    may, june = date(2026, 5, 3), date(2026, 6, 3)
    taxed: dict[str, Any] = {"total": Decimal(118), "charges_in_total": Decimal(18)}
    insert(build, "reconciled.orders", order("a", june, **taxed), order("b", may))
    insert(build, "reconciled.orders", order("c", june, is_cancelled=True, **taxed))
    found = "SELECT revenue, net_revenue, cancelled_orders FROM bi.revenue_by_month ORDER BY month"
    assert build.execute(found).fetchall() == [(10, None, 0), (118, 100, 1)]


def test_a_schema_bi_of_somebody_else_is_left_alone_and_a_copy_has_its_own_names() -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE SCHEMA bi; CREATE TABLE bi.orders AS SELECT 'theirs' AS mine")
        create_views(connection)
        assert connection.execute("FROM bi.orders").fetchall() == [("theirs",)]
    for sql in statements("ours_")[1:]:
        assert not re.findall(r"(?<![\w'])(?:reconciled|ops|bi)\.", sql)


def random_orders(build: duckdb.DuckDBPyConnection) -> list[dict[str, Any]]:
    """Orders of 17 customers over two years, sales and others, with lines; also what they are inserted as."""
    draw = random.Random(7)
    orders = []
    for number in range(300):
        day = date(2024, 6, 1) + timedelta(draw.randrange(750))
        sale = draw.choice((True, True, True, False, None))
        customer = draw.choice([None, *map(str, range(17))])
        one = order(
            f"o{number}",
            day,
            customer,
            customer_status="none" if customer is None else "matched",
            is_sale=sale,
            is_cancelled=None if sale is None else not sale,
            total=draw.choice((None, Decimal(draw.randrange(1, 9999)) / 100)),
            currency=draw.choice(("PEN", "USD")),
        )
        products = draw.sample("ABCDE", draw.randrange(4))
        if number == 5:  # a pair that one order alone has
            one["is_sale"], products = True, ["A", "F"]
        insert(build, "reconciled.orders", one)
        for position, product in enumerate(products):
            line = {"quantity": Decimal(2), "line_amount": Decimal(3), "product": product}
            line["line_kind"] = "product"
            insert(
                build,
                "reconciled.order_lines",
                {"order_id": one["order_id"], "line_number": position, **line},
            )
        orders.append({**one, "month": day.replace(day=1), "products": products})
    return orders


def months_between(first: date, last: date) -> int:
    return 12 * (last.year - first.year) + last.month - first.month


def test_months_tell_new_from_returning_customers_as_plain_python_does(
    build: duckdb.DuckDBPyConnection,
) -> None:
    orders = random_orders(build)
    first: dict[str, date] = {}
    for one in orders:
        if one["is_sale"] and one["customer_id"] is not None:
            customer = one["customer_id"]
            first[customer] = min(first.get(customer, one["month"]), one["month"])
    expected = {}
    for month, currency in {(one["month"], one["currency"]) for one in orders}:
        of_month = [one for one in orders if (one["month"], one["currency"]) == (month, currency)]
        sales = [one for one in of_month if one["is_sale"]]
        known = [one for one in of_month if one["is_sale"] is not None]
        totals = [one["total"] for one in sales if one["total"] is not None]
        new = [one for one in sales if first.get(one["customer_id"]) == month]
        returning = [one for one in sales if first.get(one["customer_id"], month) < month]
        expected[month, currency] = (
            len(sales) if known else None,
            sum(totals) if totals else 0 if known and not sales else None,
            len({one["customer_id"] for one in new}),
            len({one["customer_id"] for one in returning}),
            sum(one["total"] or 0 for one in new),
            sum(one["total"] or 0 for one in returning),
            len([one for one in sales if one["customer_id"] is None]),
            len(of_month) - len(known),
        )
    sql = """SELECT month, currency, orders, revenue, new_customers, returning_customers, coalesce(new_revenue, 0),
        coalesce(returning_revenue, 0), orders_without_customer, unknown_orders FROM bi.revenue_by_month"""
    found = {row[:2]: row[2:] for row in build.execute(sql).fetchall()}
    assert found == expected
    averages = build.execute(
        "SELECT average_order_value * (orders - unpriced_orders) - revenue FROM bi.revenue_by_month"
        " WHERE orders > unpriced_orders"
    ).fetchall()
    assert averages
    assert all(abs(difference) < Decimal("0.1") for (difference,) in averages)

    starts = Counter(first.values())
    active = {
        (one["customer_id"], one["month"])
        for one in orders
        if one["is_sale"] and one["customer_id"] is not None
    }
    retained = Counter(
        (first[customer], months_between(first[customer], month)) for customer, month in active
    )
    sql = (
        "SELECT first_month, months_later, customers, customers_at_start FROM bi.retention_by_month"
    )
    kept = {row[:2]: row[2:] for row in build.execute(sql).fetchall()}
    expected_months = {
        (start, months_between(start, month))
        for start in starts
        for _, month in active
        if month >= start
    }
    assert kept == {key: (retained[key], starts[key[0]]) for key in expected_months}
    assert 0 in {count for count, _ in kept.values()}


def test_products_bought_together_and_customer_value_are_as_plain_python_counts(
    build: duckdb.DuckDBPyConnection,
) -> None:
    orders = random_orders(build)
    sales = [one for one in orders if one["is_sale"]]
    pairs = Counter(pair for one in sales for pair in permutations(one["products"], 2))
    alone = Counter(product for one in sales for product in one["products"])
    sql = "SELECT product, other_product, orders_together, product_orders FROM bi.bought_together"
    found = {row[:2]: row[2:] for row in build.execute(sql).fetchall()}
    assert found == {pair: (count, alone[pair[0]]) for pair, count in pairs.items() if count >= 2}
    by_month = Counter(
        (one["month"], product, one["currency"]) for one in sales for product in one["products"]
    )
    sql = "SELECT month, product, currency, orders, quantity FROM bi.products_by_month"
    monthly = {row[:3]: row[3:] for row in build.execute(sql).fetchall()}
    assert monthly == {key: (count, 2 * count) for key, count in by_month.items()}

    revenue: Counter[tuple[str, str]] = Counter()
    for one in sales:
        if one["customer_id"] is not None:
            revenue[one["customer_id"], one["currency"]] += one["total"] or 0
    priced = Counter(
        (one["customer_id"], one["currency"])
        for one in sales
        if one["customer_id"] is not None and one["total"] is not None
    )
    sql = "SELECT customer_id, currency, orders - unpriced_orders FROM bi.customer_value"
    counts = {row[:2]: row[2] for row in build.execute(sql).fetchall()}
    assert {key: count for key, count in counts.items() if count} == dict(priced)
    sql = "SELECT customer_id, currency, coalesce(revenue, 0), revenue_rank, monetary FROM bi.customer_value"
    rows = build.execute(sql).fetchall()
    assert {row[:2]: row[2] for row in rows} == dict(revenue)
    for customer, currency, amount, rank, monetary in rows:
        better = [value for key, value in revenue.items() if key[1] == currency and value > amount]
        assert rank == 1 + len(better), customer
        assert 1 <= monetary <= 5
    best = [row for row in rows if row[3] == 1]
    assert {row[4] for row in best} == {5}
