"""Lines and revenue never add up what must not be added up."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pandas.testing import assert_frame_equal

from pipelines.reconcile.order_totals import CUSTOMER_ORDERS
from tests.pipelines.reconcile.in_parts import Orders, customer_orders, order_lines, orders
from transforms.customer_index import ORDERING_CUSTOMERS
from transforms.dates import DateContext
from transforms.findings import FINDINGS
from transforms.frames import BIGINT, MONEY, TEXT, TIMESTAMP, frame
from transforms.order_fields import OrderFields
from transforms.order_lines import ORDER_LINES, line_sums, lines_tables

AS_OF = datetime(2026, 3, 1, 12, tzinfo=UTC)
BOOKS = {"_run_id": TEXT, "_first_seen_at": TIMESTAMP, "_last_seen_at": TIMESTAMP, "_missing_since": TIMESTAMP}
COLUMNS = {"id": TEXT, "who": BIGINT, "at": TEXT, "sum": MONEY, "state": TEXT, "money": TEXT, **BOOKS}
CONTEXT = DateContext(AS_OF, timezone="UTC")
FIELDS = OrderFields("who", "at", "sum", "state", "money")
CUSTOMERS = frame(ORDERING_CUSTOMERS, [{"customer_id": str(n), "is_missing": False} for n in range(1, 5)])


def reconciled(*rows: tuple[Any, ...], last_matched_share: float | None = None) -> Orders:
    names = ("who", "at", "sum", "state", "money")
    made = [{"id": f"o{n}", **dict(zip(names, row, strict=False))} for n, row in enumerate(rows)]
    raw = frame(COLUMNS, [{**one, "sum": Decimal(one["sum"]) if one.get("sum") else None} for one in made])
    return orders(raw, CUSTOMERS, FIELDS, CONTEXT, last_matched_share=last_matched_share)


ORDERS = (
    (1, "2026-02-28T10:00:00", "10.50", "paid", "PEN"),
    (1, "2026-01-05T10:00:00", "2.25", "Paid", "PEN"),
    (1, "2026-02-20T10:00:00", "99", "CANCELLED", "PEN"),
    (2, "2025-06-01T10:00:00", "5", "paid", "USD"),
    (2, "2025-05-01T10:00:00", "7", "paid", "pen"),
    (3, "2026-02-01T10:00:00", "8", "anulado", "PEN"),
    (9, "2026-02-01T10:00:00", "8", "paid", "PEN"),
)


def test_revenue_is_by_customer_and_currency_without_cancelled_and_missing_orders() -> None:
    gone = reconciled((1, "2026-02-28T10:00:00", "3", "paid", "PEN")).orders.assign(is_missing=True, order_id="gone")
    made = customer_orders(pd.concat([reconciled(*ORDERS).orders, gone]), CUSTOMERS, CONTEXT)
    active = ("is_active_30_days", "is_active_90_days", "is_active_365_days")
    expected = [
        {
            "customer_id": "1", "order_count": 2, "cancelled_count": 1, "currency": "PEN", "revenue": Decimal("12.75"),
            "revenue_by_currency": '{"PEN": "12.75"}', "first_ordered_at": datetime(2026, 1, 5, 10, tzinfo=UTC),
            "last_ordered_at": datetime(2026, 2, 28, 10, tzinfo=UTC), **dict.fromkeys(active, True),
        },
        {
            "customer_id": "2", "order_count": 2, "cancelled_count": 0,
            "revenue_by_currency": '{"PEN": "7", "USD": "5"}', "first_ordered_at": datetime(2025, 5, 1, 10, tzinfo=UTC),
            "last_ordered_at": datetime(2025, 6, 1, 10, tzinfo=UTC),
            **dict(zip(active, (False, False, True), strict=True)),
        },
        {"customer_id": "3", "order_count": 0, "cancelled_count": 1, **dict.fromkeys(active, False)},
        {"customer_id": "4", "order_count": 0, "cancelled_count": 0, **dict.fromkeys(active, False)},
    ]  # fmt: skip
    assert_frame_equal(made, frame(CUSTOMER_ORDERS, expected))


@pytest.mark.parametrize(
    ("rows", "active"),
    [
        ([], [False, False]),
        ([(1, "2026-02-28T10:00:00"), (2, None)], [True, pd.NA]),
        ([(1, "2026-02-28T10:00:00"), (1, None), (2, "2025-01-05T10:00:00"), (2, None)], [True, pd.NA]),
        ([(1, None), (2, None)], [pd.NA, pd.NA]),
        # an order of the future makes nobody active
        ([(1, "2027-01-01T10:00:00"), (2, "2027-01-01T10:00:00"), (2, "2026-02-01T13:00:00")], [False, True]),
    ],
)
def test_whether_a_customer_is_active_is_unknown_where_an_order_has_no_date(
    rows: list[tuple[Any, ...]], active: list[Any]
) -> None:
    made = customer_orders(reconciled(*rows).orders, CUSTOMERS[:2], CONTEXT)
    assert made["is_active_365_days"].tolist() == active
    assert made["order_count"].tolist() == [sum(row[0] == customer for row in rows) for customer in (1, 2)]
    has_date = {customer: any(row[1] for row in rows if row[0] == customer) for customer, *_ in rows}
    assert made["last_ordered_at"].notna().tolist() == [has_date.get(customer, False) for customer in (1, 2)]


def test_days_are_those_of_the_time_zone() -> None:
    night = DateContext(datetime(2026, 3, 1, 3, tzinfo=UTC), timezone="America/Lima")  # there it is February 28
    at = ["2026-01-30T04:59:00Z", "2026-01-30T05:00:00Z", None]
    raw = frame(COLUMNS, [{"id": str(n), "who": n + 1, "at": one} for n, one in enumerate(at)])
    made = orders(raw, CUSTOMERS, FIELDS, night).orders
    assert made["ordered_date"].tolist() == [date(2026, 1, 29), date(2026, 1, 30), pd.NA]
    assert customer_orders(made, CUSTOMERS[:2], night)["is_active_30_days"].tolist() == [False, True]
    in_utc = orders(raw, CUSTOMERS, FIELDS, DateContext(AS_OF)).orders
    assert in_utc["ordered_date"].tolist() == [date(2026, 1, 30), date(2026, 1, 30), pd.NA]


def test_orders_whose_customers_are_not_known_are_not_counted_as_none() -> None:
    made = customer_orders(
        reconciled((1, "2026-02-28T10:00:00")).orders, CUSTOMERS, CONTEXT, {"customer_id": "who is lost"}
    )
    assert made["customer_id"].tolist() == CUSTOMERS["customer_id"].tolist()
    assert made.drop(columns=["customer_id", "unknown_because"]).isna().all(axis=None)
    assert made["unknown_because"].unique().tolist() == ["who is lost"]


def test_sums_of_the_largest_amounts_do_not_overflow() -> None:
    largest = "9" * 20 + "." + "9" * 9
    rows = reconciled(*[(1, None, largest, "paid", "PEN")] * 5, (1, None, "1" + "0" * 20, "paid", "PEN"))
    (totals,) = customer_orders(rows.orders, CUSTOMERS[:1], CONTEXT).to_dict("records")
    assert totals["revenue"] == Decimal("499999999999999999999.999999995")
    assert "total_unreadable" in set(rows.findings["rule"])


def test_a_falling_share_of_known_customers_is_an_error() -> None:
    rows = [(1,), (2,), (3,), (9,)]
    assert reconciled(*rows).matched_share == 0.75
    assert reconciled(*rows, last_matched_share=0.8).findings["rule"].tolist() == ["customer_unknown"]
    findings = reconciled(*rows, last_matched_share=1.0).findings
    fell = findings[findings["rule"] == "matched_share_fell"]
    assert fell[["severity", "detail"]].to_records(index=False).tolist() == [
        ("error", "who: 75% of 4 orders are of a known customer, 100% before")
    ]


@pytest.mark.parametrize(
    ("texts", "totals", "rules"),
    [
        (["1.234", "12.500", "3"], [None, None, "3"], ["total_notation"]),
        (["1.234", "15.990", "1.250.000"], [None, None, None], ["total_notation"]),
        (["1.234", "12,50", "7"], [None, None, "7"], ["total_notation"]),
        (["1.234", "1,250.00", "12.5"], ["1.234", None, "12.5"], ["total_unreadable"]),
        (["1.234", "12,50", "12.5"], [None, None, "12.5"], ["total_unreadable", "total_unreadable"]),
    ],
)
def test_a_decimal_comma_is_no_proof_of_a_decimal_point(
    texts: list[str], totals: list[str | None], rules: list[str]
) -> None:
    """One total over a million made all the thousands of a platform without decimals fractions."""
    raw = frame({**COLUMNS, "sum": TEXT}, [{"id": f"o{n}", "sum": text} for n, text in enumerate(texts)])
    result = orders(raw, CUSTOMERS, OrderFields(total="sum"), DateContext(AS_OF))
    assert result.orders["total"].tolist() == [pd.NA if total is None else Decimal(total) for total in totals]
    assert result.findings["rule"].tolist() == rules
    if rules == ["total_notation"]:
        found = result.findings[["severity", "detail"]].to_records(index=False).tolist()
        assert found == [("error", f"sum: {totals.count(None)} texts such as 1.234")]


def test_revenue_by_currency_is_json_whatever_the_orders_hold() -> None:
    rows = [(1, "0", 'U"D\\'), (1, "0.5", "usd"), (2, "0", None)]
    raw = frame(
        {**COLUMNS, "sum": TEXT}, [{"id": str(n), "who": w, "sum": s, "money": m} for n, (w, s, m) in enumerate(rows)]
    )
    made = orders(raw, CUSTOMERS, FIELDS, DateContext(AS_OF)).orders
    by_currency = customer_orders(made, CUSTOMERS, CONTEXT)["revenue_by_currency"].tolist()[:2]
    assert [json.loads(text) for text in by_currency] == [{'U"D\\': "0", "USD": "0.5"}, {"": "0"}]


def test_lines_have_customer_date_and_currency_of_their_order() -> None:
    schema = {
        "order_id": TEXT,
        "position": BIGINT,
        "sku": TEXT,
        "quantity": BIGINT,
        "price": pa.float64(),
        "customer_id": TEXT,
    }
    lines = frame(
        schema,
        [
            {"order_id": "o1", "position": 2, "sku": "B", "quantity": 2, "price": 0.1},
            {"order_id": "o1", "position": 1, "sku": "A", "quantity": 1, "price": 2.5, "customer_id": "x"},
            {"order_id": "gone", "position": 1},
        ],
    )
    made, findings = order_lines(lines, reconciled(*ORDERS[:2]).orders)
    common = {"order_id": "o1", "customer_id": "1", "currency": "PEN", "is_cancelled": False}
    common["ordered_at"] = datetime(2026, 1, 5, 10, tzinfo=UTC)
    expected = [
        {**common, "line_number": 1, "product": "A", "quantity": Decimal(1), "unit_price": Decimal("2.5"), "sku": "A",
         "raw_quantity": 1, "price": 2.5, "raw_customer_id": "x"},
        {**common, "line_number": 2, "product": "B", "quantity": Decimal(2), "unit_price": Decimal("0.1"), "sku": "B",
         "raw_quantity": 2, "price": 0.1},
    ]  # fmt: skip
    others = {"sku": TEXT, "raw_quantity": BIGINT, "price": pa.float64(), "raw_customer_id": TEXT}
    assert_frame_equal(made, frame({**ORDER_LINES, **others}, expected))
    rule = {"entity": "order_lines", "entity_id": "gone", "rule": "order_missing", "severity": "error", "detail": ""}
    assert_frame_equal(findings, frame(FINDINGS, [rule]))


def test_columns_of_lines_keep_their_values_next_to_ours_and_an_empty_one_is_no_amount() -> None:
    schema = {"order_id": TEXT, "position": BIGINT, "quantity": BIGINT, "raw_quantity": BIGINT, "line_total": BIGINT,
              "total": BIGINT}  # fmt: skip
    line = {"order_id": "o0", "position": 1, "quantity": 2, "raw_quantity": 7, "total": 5}
    made, findings = order_lines(frame(schema, [line]), reconciled((1, None, "5", "paid", "PEN")).orders)
    (row,) = made.to_dict("records")
    assert (row["quantity"], row["raw_raw_quantity"], row["raw_quantity"]) == (2, 2, 7)
    assert (row["line_total"], len(findings)) == (5, 0)


def test_amounts_of_lines_that_cannot_be_read_are_found() -> None:
    orders_ = reconciled((1, None, "5", "paid", "PEN")).orders
    schema = {"order_id": TEXT, "position": BIGINT, "qty": TEXT, "price": TEXT, "amount": BIGINT}
    rows = [("2", "1,50", 3), ("1", "2.5", None), (None, None, 4)]
    lines = frame(
        schema,
        [
            {"order_id": "o0", "position": n, **dict(zip(("qty", "price", "amount"), row, strict=True))}
            for n, row in enumerate(rows)
        ],
    )
    made, findings = order_lines(lines, orders_)
    assert made["unit_price"].tolist() == [pd.NA, Decimal("2.5"), pd.NA]
    assert findings[["rule", "severity", "detail"]].to_records(index=False).tolist() == [
        ("amounts_unreadable", "warning", "unit_price: 1 of 2 values")
    ]
    orphan = frame(schema, [{"order_id": "gone", "position": 0, "price": "1,50"}])
    assert order_lines(orphan, orders_)[1]["rule"].tolist() == ["order_missing"]


def test_a_column_that_only_has_values_of_orders_no_longer_listed_is_not_read() -> None:
    made = reconciled((1, None, "5", "paid", "PEN"), (1, None, "5", "paid", "PEN")).orders
    made["is_missing"] = made["order_id"] == "o0"
    schema = {"order_id": TEXT, "position": BIGINT, "quantity": BIGINT, "qty": BIGINT}
    lines = frame(schema, [{"order_id": "o0", "quantity": 3}, {"order_id": "o1", "qty": 4}])
    assert order_lines(lines, made)[0]["quantity"].tolist() == [pd.NA, 4]
    made["is_missing"] = True
    assert order_lines(lines, made)[0]["quantity"].tolist() == [3, pd.NA]


def test_the_tables_of_lines_are_found_by_their_names() -> None:
    assert lines_tables(["orders__items", "orders__discounts", "orders__lines"]) == ["orders__lines", "orders__items"]


def test_an_order_with_a_line_of_no_amount_comes_to_nothing_known() -> None:
    schema = {"order_id": TEXT, "quantity": BIGINT, "unit_price": BIGINT, "line_total": BIGINT}
    rows = [("a", 2, 3, None), ("a", 1, None, 4), ("b", 2, 3, None), ("b", 1, None, None)]
    made = line_sums(frame(schema, [dict(zip(schema, row, strict=True)) for row in rows]))
    assert made["order_id"].tolist() == ["a", "b"]
    assert made["line_amount"].tolist() == [10, pd.NA]
    assert made["line_pieces"].tolist() == [3, 3]
