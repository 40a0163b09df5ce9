"""Orders, their lines and what customers ordered: read through known fields, and never added up what must not be."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import product
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pandas.testing import assert_frame_equal

from orderbridge.pipelines.reconcile.orders.duplicates import duplicate_orders
from orderbridge.pipelines.reconcile.orders.totals import CUSTOMER_ORDERS
from orderbridge.transforms.frames import BIGINT, MONEY, TEXT, column, frame
from orderbridge.transforms.orders.amount_unit import in_units
from orderbridge.transforms.orders.columns import AmountEvidence, money
from orderbridge.transforms.orders.customer_index import (
    ORDERING_CUSTOMERS,
    CustomerIndex,
    CustomerNotation,
)
from orderbridge.transforms.orders.fields import OrderFields
from orderbridge.transforms.orders.lines import ORDER_LINES, line_sums
from orderbridge.transforms.orders.orders import ORDERS, order_customers
from orderbridge.transforms.questions import ASSUMPTION, Answer
from orderbridge.transforms.values.dates import DateContext
from orderbridge.transforms.values.keys import BOOKKEEPING
from tests.pipelines.reconcile.in_parts import (
    Orders,
    build_of,
    customer_orders,
    order_lines,
    orders,
)
from tests.transforms.rows import values

AS_OF = datetime(2026, 3, 1, 12, tzinfo=UTC)
IN_UTC = DateContext(AS_OF, timezone="UTC")
KINDS = {"who": BIGINT, "at": TEXT, "sum": MONEY, "state": TEXT, "money": TEXT}
FIELDS = OrderFields("who", "at", "sum", "state", "money")
CODES = enumerate(("E1", "E2", "E2", "E4", "E4"), 1)
CUSTOMERS = frame(
    ORDERING_CUSTOMERS,
    [{"customer_id": str(n), "erp_code": code, "is_missing": n == 2} for n, code in CODES],
)


def raw(*rows: Mapping[str, Any] | tuple[Any, ...], **kinds: pa.DataType) -> pd.DataFrame:
    """Raw orders `o0`, `o1` …, as dicts or as tuples in the order of `KINDS`; `kinds` are of other columns."""
    named = [
        row if isinstance(row, Mapping) else dict(zip(KINDS, row, strict=False)) for row in rows
    ]
    schema = {"id": TEXT, **(kinds or KINDS), **BOOKKEEPING}
    money = [name for name, kind in schema.items() if kind == MONEY]
    texts = [
        {name: Decimal(row[name]) for name in money if row.get(name) is not None} for row in named
    ]
    return frame(
        schema,
        [
            {"id": f"o{n}", **row, **of}
            for n, (row, of) in enumerate(zip(named, texts, strict=True))
        ],
    )


def made(
    *rows: Mapping[str, Any] | tuple[Any, ...],
    fields: OrderFields = FIELDS,
    known: pd.DataFrame = CUSTOMERS,
    context: DateContext = IN_UTC,
    kinds: Mapping[str, pa.DataType] | None = None,
    **options: Any,
) -> Orders:
    return orders(raw(*rows, **(kinds or {})), known, fields, context, **options)


def found(result: Orders) -> list[tuple[Any, ...]]:
    return values(result.findings, "entity_id", "rule")


def test_a_column_named_like_one_of_ours_is_kept_next_to_it() -> None:
    kinds = {"Total": TEXT, "raw_total": TEXT, "customer_id": BIGINT}
    result = made({"Total": "x", "customer_id": 1}, fields=OrderFields("customer_id"), kinds=kinds)
    assert list(result.orders) == [
        *ORDERS,
        "raw_raw_Total",
        "raw_customer_id",
        "raw_total",
        *BOOKKEEPING,
    ]
    assert (found(result), result.form) == ([], "empty"), (
        "fields that are not known cause no findings"
    )


@pytest.mark.parametrize(
    ("who", "known", "gap", "expected", "rules"),
    [
        ((2, 9, None), CUSTOMERS, "", [("2", "matched"), ("9", "unknown"), (None, "none")],
         [("o2", "customer_missing"), ("o1", "customer_unknown")]),
        # who was not read is unknown, and no finding is made of the order
        ((2, 9, None), CUSTOMERS, "customers: unproven", [("2", "matched"), ("9", "unknown"), (None, "none")],
         [("o2", "customer_missing"), (None, "customers_unproven")]),
        # a code that one customer has, a listed one before a missing one
        (("E1", "E2", "E4", "E9"), CUSTOMERS, "",
         [("1", "matched"), ("3", "matched"), (None, "unknown"), (None, "unknown")],
         [("o2", "customer_ambiguous"), ("o3", "customer_unknown")]),
        (("E7",), frame(ORDERING_CUSTOMERS, [{"customer_id": "7", "erp_code": "E7", "is_missing": True}]), "",
         [("7", "matched")], []),
        # zero is a guest, unless a customer has that id
        ((0, 1), CUSTOMERS, "", [(None, "none"), ("1", "matched")], [("o0", "customer_missing")]),
        ((0,), frame(ORDERING_CUSTOMERS, [{"customer_id": "0", "is_missing": False}]), "", [("0", "matched")], []),
    ],
)  # fmt: skip
def test_customers_are_matched_unknown_or_none(
    who: tuple[Any, ...], known: pd.DataFrame, gap: str, expected: list[Any], rules: list[Any]
) -> None:
    kinds = {"who": TEXT if isinstance(who[0], str) else BIGINT}
    result = made(
        *({"who": one} for one in who),
        fields=OrderFields("who"),
        known=known,
        kinds=kinds,
        coverage_gap=gap,
    )
    assert values(result.orders, "customer_id", "customer_status") == expected
    assert found(result) == rules


def coded(*codes: tuple[str, str | None]) -> pd.DataFrame:
    return frame(
        ORDERING_CUSTOMERS, [{"customer_id": one, "erp_code": code} for one, code in codes]
    )


def reversed_codes(listed: int) -> pd.DataFrame:
    """100 customers whose codes are their ids in reverse; from one on, they have other ids."""
    return coded(*((str(n) if n <= listed else f"x{n}", str(101 - n)) for n in range(1, 101)))


def shifted_codes(count: int) -> pd.DataFrame:
    """10 customers, of whose codes so many are the id of the next."""
    return coded(*((str(n), str(n % 10 + 1 + 90 * (n > count))) for n in range(1, 11)))


READINGS: list[
    tuple[str, pd.DataFrame, CustomerNotation | None, str | None, CustomerNotation | None, str]
] = [
    # column, customers, as the last run read it; the customer of the second order, as it is read now, finding
    # With 9 codes of 10 the name decides, with 4 the ids; between them either reading gives orders to others.
    ("customer_code", shifted_codes(9), None, "1", "codes", ""),
    ("customer_code", shifted_codes(8), None, None, None, "customer_notation"),
    ("customer_code", shifted_codes(5), None, None, None, "customer_notation"),
    ("customer_code", shifted_codes(4), None, "2", "ids", ""),
    # One customer is not listed yet: ids stay ids, though more values are codes.
    ("customer_id", reversed_codes(99), None, "2", "ids", ""),
    ("customer_id", reversed_codes(80), None, None, None, "customer_notation"),
    ("customer_id", reversed_codes(40), None, "x99", "codes", ""),
    ("buyer", reversed_codes(100), None, "2", "ids", ""),
    ("buyer", reversed_codes(99), None, None, None, "customer_notation"),
    ("buyer", reversed_codes(80), None, "x99", "codes", ""),
    # As the last run read them: else all orders would go to others when some are not listed, or get a code.
    # 80 of 100 values are ids, all are codes
    (
        "buyer",
        reversed_codes(80),
        "ids",
        "2",
        "ids",
        "field_changed",
    ),
    ("buyer", reversed_codes(100), "codes", "99", "codes", ""),  # all are both
    # Not pinned while some have no code: the next run would report a change although nothing changed.
    (
        "customer_code",
        coded(*((str(n), str(n) if n < 9 else None) for n in range(1, 11))),
        None,
        "2",
        None,
        "",
    ),
]


def test_a_column_of_customers_is_read_as_name_values_or_the_last_run_prove() -> None:
    for (name, known, pinned, customer, notation, rule), is_set in product(READINGS, (False, True)):
        numbers = column(pa.array([str(n) for n in range(1, len(known) + 1)]))
        answer = None
        if pinned is not None:
            answer = Answer(pinned, "config.toml") if is_set else Answer(pinned, ASSUMPTION, AS_OF)
        made = order_customers(
            numbers, column(pa.array([1] * len(known))), CustomerIndex.of(known), name, answer
        )
        assert values(made.table, "customer_id", "customer_status")[1] == (
            customer,
            customer and "matched",
        )
        value = made.notation.value if made.notation is not None else None
        assert (value, bool(made.unknown)) == (notation, customer is None)
        is_found = bool(rule) and not (is_set and rule == "field_changed")
        assert values(made.findings, "rule") == [rule] * is_found


def test_a_falling_share_of_known_customers_is_an_error() -> None:
    rows = [(1,), (2,), (3,), (9,)]
    assert made(*rows).matched_share == 0.75
    assert made(*rows, last_matched_share=0.8).findings["rule"].tolist() == ["customer_unknown"]
    result = made(*rows, last_matched_share=1.0)
    assert values(result.orders, "customer_status") == ["matched"] * 3 + [None]
    fell = (
        "matched_share_fell",
        "error",
        "who: 75% of 4 orders are of a known customer, 100% before",
    )
    assert fell in values(result.findings, "rule", "severity", "detail")


@pytest.mark.parametrize(
    ("kind", "totals"),
    [
        (pa.float64(), [(0.1 + 0.2, "0.3"), (1234567890.1, "1234567890.1"), (100.0, "100"), (float("nan"), None),
                        (1e30, None), (4e15, "4000000000000000"), (1.5e-12, "0"), (-0.0, "0"), (9e19, "9e19"),
                        (8.264462809917356, "8.26446281"), (-1e-7, "-1e-7"), (5.0000000005, "5.000000001")]),
        (BIGINT, [(2**63 - 1, "9223372036854775807")]), (pa.bool_(), [(True, None)]),
        (TEXT, [(" 12.50 ", "12.5"), ("0.12345678901", "0.123456789"), ("1 234,50", None), ("1e3", "1000"),
                ("9E+11", "9e11"), ("-0.0", "0"), ("1.5e-12", "0"), ("-0.0000000005", "-1e-9"), ("5e-10", "1e-9"),
                ("0.00000000049999999999999999999999999999999999999999", "0"), ("1e20", None), ("e5", None),
                ("99999999999999999999.1234567895", "99999999999999999999.12345679"), ("1e999", None)]),
    ],
)  # fmt: skip
def test_totals_are_decimal(kind: pa.DataType, totals: list[tuple[Any, str | None]]) -> None:
    given = frame({"total": kind}, [{"total": one} for one, _ in totals])["total"]
    evidence = AmountEvidence()
    evidence.add(given)
    for made in (money(given), money(given, evidence)):
        assert made.dtype == pd.ArrowDtype(MONEY)
        assert values(made.to_frame()) == [total and Decimal(total) for _, total in totals]


@pytest.mark.parametrize(
    ("texts", "totals", "rules"),
    [
        (["1.234", "12,50", "-7"], ["1234", "12.5", "-7"], ["total_negative"]),
        (["1.234", "1.234.567,5", "7"], ["1234", "1234567.5", "7"], []),
        (["1.234", "7", "1,234"], [None, "7", None], ["total_notation"]),
        (["1.234", "1,250.00", "12.5"], ["1.234", "1250", "12.5"], []),
        (["7", "1,250"], ["7", None], ["total_notation"]),
        (
            ["1.234", "12,50", "12.5"],
            [None, None, "12.5"],
            ["total_unreadable", "total_unreadable"],
        ),
    ],
)
def test_the_column_proves_how_its_totals_are_written(
    texts: list[str], totals: list[str | None], rules: list[str]
) -> None:
    """One total over a million made all the thousands of a platform without decimals fractions."""
    result = made(
        *({"sum": text} for text in texts), fields=OrderFields(total="sum"), kinds={"sum": TEXT}
    )
    assert values(result.orders, "total") == [total and Decimal(total) for total in totals]
    assert result.findings["rule"].tolist() == rules


def test_totals_in_hundredths_are_divided() -> None:
    result = made((1, None, "1251"), (1,), fields=OrderFields(total="sum", is_in_cents=True))
    assert values(result.orders, "total") == [Decimal("12.51"), None]


def test_amounts_in_the_smallest_unit_are_divided_by_the_decimals_of_their_currency() -> None:
    amounts = column(
        pa.array([Decimal(1999), Decimal(1999), Decimal(1999), None, Decimal(7)], MONEY)
    )
    currencies = column(pa.array(["EUR", "JPY", "KWD", "EUR", None]))
    made = values(in_units(amounts, currencies).to_frame())
    assert made == [Decimal("19.99"), Decimal(1999), Decimal("1.999"), None, Decimal("0.07")]


def test_tax_and_shipping_of_a_total_are_columns_that_somebody_names() -> None:
    fields = OrderFields(total="sum", tax="vat", shipping="freight")
    kinds = {"sum": MONEY, "vat": TEXT, "freight": MONEY}
    rows = [{"sum": "121", "vat": "21.00", "freight": "5"}, {"sum": "10"}, {"sum": "9", "vat": "x"}]
    result = made(*rows, fields=fields, kinds=kinds)
    assert values(result.orders, "tax_in_total", "shipping_in_total", "charges_in_total") == [
        (21, 5, 26),
        (0, 0, 0),
        (None, 0, None),
    ]
    found = ("charges_unreadable", "tax in vat of 1 of 3 orders")
    assert found in values(result.findings, "rule", "detail")
    in_cents = replace(fields, is_in_cents=True)
    result = made(rows[0], fields=in_cents, kinds=kinds)
    assert values(result.orders, "total", "tax_in_total") == [(Decimal("1.21"), Decimal("0.21"))]
    unnamed = made(rows[0], fields=OrderFields(total="sum"), kinds=kinds)
    none = values(unnamed.orders, "tax_in_total", "shipping_in_total", "charges_in_total")
    assert none == [(None, None, None)]
    one = made(rows[0], fields=replace(fields, shipping=None), kinds=kinds)
    assert values(one.orders, "shipping_in_total", "charges_in_total") == [(None, 21)]


def test_dates_and_totals_that_cannot_be_right_are_found() -> None:
    good, late = "2026-01-01T10:00:00Z", "2026-03-02T02:00:00Z"  # 14 hours ahead
    result = made(
        (1, good, "1"), (1, "soon", "1"), (1, "2026-03-04", "1"), (1, good, "-1"), (1, late, "0")
    )
    assert found(result) == [
        ("o2", "ordered_at_future"),
        ("o1", "ordered_at_unreadable"),
        ("o3", "total_negative"),
    ]
    assert made((1, "01/02/2026", "1")).findings["rule"].tolist() == ["ordered_at_form"]


def test_orders_that_are_no_longer_listed_cause_no_findings() -> None:
    listed = [
        (1, "2026-03-02T01:00:00Z", "0", "CANCELLED", "eur"),
        (1, "2026-01-01T10:00:00Z", "5", "paid", "EUR"),
    ]
    others = [
        (9, "2026-03-02T03:00:00Z", "-5", "Cancelled", "USD"),
        (None, "2026-01-01T10:00:00Z", "5", "paid", "USD"),
    ]
    gone = [{**dict(zip(KINDS, row, strict=True)), "_missing_since": AS_OF} for row in others]
    result = made(*listed, *gone)
    assert (found(result), result.matched_share) == ([], 1.0)
    assert values(result.orders, "currency") == ["EUR", "EUR", "USD", "USD"]
    assert values(made(*listed, *others).findings, "rule", "detail") == [
        ("cancelled_with_total", "1 of 4 orders with a total are cancelled"),
        ("currencies_mixed", "2 currencies"),
        ("customer_missing", "who"),
        ("customer_unknown", "who"),
        ("ordered_at_future", "at 2026-03-02"),
        ("total_negative", "sum"),
    ]


def test_days_are_those_of_the_time_zone_and_a_column_named_after_utc_is_in_utc() -> None:
    # there it is February 28
    night = DateContext(datetime(2026, 3, 1, 3, tzinfo=UTC), timezone="America/Lima")
    rows = [(1, "2026-01-30T04:59:00Z"), (2, "2026-01-30T05:00:00Z"), (3, None)]
    local = made(*rows, context=night).orders
    assert values(local, "ordered_date") == [date(2026, 1, 29), date(2026, 1, 30), None]
    assert values(customer_orders(local, CUSTOMERS[:2], night), "is_active_30_days") == [
        False,
        True,
    ]
    assert values(made(*rows, context=DateContext(AS_OF)).orders, "ordered_date")[0] == date(
        2026, 1, 30
    )
    madrid = DateContext(AS_OF, timezone="Europe/Madrid")
    for name, hour, day in (("created_gmt", 23, 2), ("created_utc", 23, 2), ("created_at", 22, 1)):
        row, fields = {name: "2026-01-01 23:00:00"}, OrderFields(ordered_at=name)
        result = made(row, fields=fields, context=madrid, kinds={name: TEXT}).orders
        assert values(result, "ordered_at") == [datetime(2026, 1, 1, hour, tzinfo=UTC)]
        assert values(result, "ordered_date") == [date(2026, 1, day)]


ORDERED = (
    (1, "2026-02-28T10:00:00", "10.50", "paid", "PEN"),
    (1, "2026-01-05T10:00:00", "2.25", "Paid", "PEN"),
    (1, "2026-02-20T10:00:00", "99", "CANCELLED", "PEN"),
    (2, "2025-06-01T10:00:00", "5", "paid", "USD"),
    (2, "2025-05-01T10:00:00", "7", "paid", "pen"),
    (3, "2026-02-01T10:00:00", "8", "anulado", "PEN"),
    (9, "2026-02-01T10:00:00", "8", "paid", "PEN"),
)


def test_revenue_is_by_customer_and_currency_without_cancelled_and_missing_orders() -> None:
    gone = dict(zip(KINDS, ORDERED[0], strict=True)) | {"_missing_since": AS_OF}
    ordered = customer_orders(made(*ORDERED, gone).orders, CUSTOMERS[:4], IN_UTC)
    dates = ("2026-01-05", "2026-02-28", "2025-05-01", "2025-06-01")
    days = [date.fromisoformat(day) for day in dates]
    *ana, first, last = (datetime.fromisoformat(f"{day}T10:00:00Z") for day in dates)
    yes, no, year = (True,) * 3, (False,) * 3, (False, False, True)
    expected = [
        (
            "1",
            2,
            1,
            "PEN",
            Decimal("12.75"),
            '{"PEN": "12.75"}',
            *ana,
            *yes,
            *days[:2],
            0,
            None,
            None,
        ),
        (
            "2",
            2,
            0,
            None,
            None,
            '{"PEN": "7", "USD": "5"}',
            first,
            last,
            *year,
            *days[2:],
            0,
            None,
            None,
        ),
        ("3", 0, 1, None, None, None, None, None, *no, None, None, 0, None, None),
        ("4", 0, 0, None, None, None, None, None, *no, None, None, 0, None, None),
    ]
    rows = [dict(zip(CUSTOMER_ORDERS, row, strict=True)) for row in expected]
    assert_frame_equal(ordered, frame(CUSTOMER_ORDERS, rows))


def test_orders_of_an_unknown_status_are_in_no_sum_and_stand_beside_it() -> None:
    at, old = "2026-02-01T10:00:00", "2025-01-05T10:00:00"
    rows = (
        (1, at, "10", "paid", "PEN"), (1, at, "5", "7", "PEN"), (1, at, "3", "pending", "PEN"),
        (2, at, "8", "7", "PEN"),
        (3, old, "9", "7", "PEN"), (3, at, "2", "cancelled", "PEN"), (3, at, "4", "draft", "PEN"),
    )  # fmt: skip
    result = made(*rows)
    assert values(result.orders, "status_class", "is_sale", "is_cancelled") == [
        ("sale", True, False), ("unknown", None, None), ("open", False, False), ("unknown", None, None),
        ("unknown", None, None), ("cancelled", False, True), ("open", False, False),
    ]  # fmt: skip
    ordered = customer_orders(result.orders, CUSTOMERS[:4], IN_UTC)
    names = (
        "order_count",
        "cancelled_count",
        "revenue",
        "is_active_30_days",
        "unknown_orders",
        "unknown_total",
    )
    assert values(ordered, *names) == [
        (1, 0, Decimal(10), True, 1, Decimal(5)),
        (None, None, None, None, 1, Decimal(8)),  # nothing is known of the only order
        (0, 1, None, False, 1, Decimal(9)),
        (0, 0, None, False, 0, None),
    ]
    unknown = "order_status: 1 of {} has one of unknown meaning".format
    reasons = ordered["unknown_because"].fillna("").tolist()
    assert reasons == [unknown("3 orders"), unknown("1 order"), unknown("3 orders"), ""]
    assert "status_unknown" in set(result.findings["rule"])


def test_a_negative_order_is_a_refund_that_is_no_revenue_and_makes_nobody_active() -> None:
    recent, old = "2026-02-28T10:00:00", "2025-01-05T10:00:00"
    result = made(
        (1, old, "10", "paid", "PEN"), (1, recent, "-4", "paid", "PEN"), (3, recent, "-1")
    )
    assert values(result.orders, "status_class", "is_sale", "refunded") == [
        ("sale", True, None), ("refunded", False, Decimal(4)), ("refunded", False, Decimal(1)),
    ]  # fmt: skip
    ordered = customer_orders(result.orders, CUSTOMERS[:3], IN_UTC)
    assert values(ordered, "order_count", "revenue", "is_active_365_days") == [
        (1, Decimal(10), False), (0, None, False), (0, None, False),
    ]  # fmt: skip


def test_refunds_nested_in_orders_are_a_figure_of_their_own() -> None:
    row = {
        "who": 1,
        "at": "2026-01-05T10:00:00Z",
        "sum": "10",
        "state": "completed",
        "money": "PEN",
    }
    kinds = {**KINDS, "total_refunded": MONEY}
    rows = [{**row, "total_refunded": None} for _ in range(4)]
    rows[3]["total_refunded"] = "1"
    refunds = frame(
        {"order_id": TEXT, "position": BIGINT, "amount": TEXT},
        [
            {"order_id": "o1", "position": 1, "amount": "-2.50"},
            {"order_id": "o1", "position": 2, "amount": "1"},
            {"order_id": "o2", "position": 1, "amount": "10.00"},
        ],
    )
    payments = frame(
        {"order_id": TEXT, "position": BIGINT, "status": TEXT},
        [
            {"order_id": "o0", "position": 1, "status": "paid"},
            {"order_id": "o3", "position": 1, "status": "paid"},
            {"order_id": "o3", "position": 2, "status": "refunded"},
        ],
    )
    nested = {"raw__orders__refunds": refunds}
    figures = ("status_class", "refunded")
    result = made(*rows, kinds=kinds, children=nested)
    assert values(result.orders, *figures) == [
        ("sale", None), ("sale", Decimal("3.5")), ("refunded", Decimal(10)), ("sale", Decimal(1)),
    ]  # fmt: skip
    result = made(*rows, kinds=kinds, children={**nested, "raw__orders__transactions": payments})
    assert values(result.orders, *figures)[3] == ("refunded", Decimal(1))
    assert values(result.orders, *figures)[0] == ("sale", None)


def test_all_of_an_order_went_back_if_less_than_a_cent_of_it_is_left() -> None:
    kinds = {**KINDS, "total_refunded": MONEY}
    row = {"who": 1, "at": "2026-01-05T10:00:00Z", "state": "completed", "total_refunded": "10.01"}
    result = made(*({**row, "sum": total} for total in ("10.014", "10.02")), kinds=kinds)
    assert values(result.orders, "status_class") == ["refunded", "sale"]


def test_what_is_left_of_an_order_after_a_larger_refund_is_a_sale() -> None:
    kinds = {**KINDS, "current_total_price": MONEY, "total_refunded": MONEY}
    row = {"who": 1, "at": "2026-01-05T10:00:00Z", "state": "completed", "money": "PEN"}
    left = {**row, "current_total_price": "30", "total_refunded": "70"}
    fields = OrderFields("who", "at", "current_total_price", "state", "money")
    result = made(left, kinds=kinds, fields=fields)
    figures = ("status_class", "total", "refunded")
    assert values(result.orders, *figures) == [("sale", Decimal(30), Decimal(70))]


def test_a_column_of_midnights_in_utc_has_the_same_days_in_every_zone() -> None:
    in_lima = DateContext(AS_OF, timezone="America/Lima")
    midnights = ("2026-01-05T00:00:00Z", "2026-01-06 00:00:00+00:00", "2026-01-07T00:00:00.000Z")
    for last, first_day in ((midnights[2], 5), ("2026-01-07T00:00:01Z", 4)):
        rows = ((1, at, "1") for at in (*midnights[:2], last))
        days = made(*rows, context=in_lima).orders["ordered_date"]
        assert days.tolist() == [date(2026, 1, first_day + n) for n in range(3)]


def test_a_time_that_the_clocks_show_twice_has_a_certain_day() -> None:
    in_madrid = DateContext(AS_OF, timezone="Europe/Madrid")
    times = ("2025-10-26T02:30:00", "2025-10-26T01:30:00", "2025-03-30T02:30:00")
    result = made(*((1, at, "1") for at in times), context=in_madrid)
    (twice, _), once, never = values(result.orders, "ordered_date", "ordered_at")
    assert twice == once[0] == date(2025, 10, 26)
    assert result.orders["ordered_at"].notna().tolist() == [False, True, False]
    assert never == (None, None)
    assert found(result) == [("o0", "ordered_at_unreadable"), ("o2", "ordered_at_unreadable")]


def test_an_order_under_two_ids_is_found() -> None:
    kinds = {**KINDS, "number": TEXT}
    order = {"who": 1, "at": "2026-01-05T10:00:00Z", "sum": "5", "state": "paid", "number": "A-1"}
    rows = (
        order, order, {**order, "number": "A-2"}, {**order, "sum": "6"}, {**order, "state": "cancelled"},
        {**order, "at": "2026-01-05T10:00:01Z"}, {**order, "number": None}, {**order, "number": None},
    )  # fmt: skip
    with build_of(reconciled__orders=made(*rows, kinds=kinds).orders) as tables:
        (copies,) = duplicate_orders(tables.build)
    assert values(copies, "entity_id", "detail") == [
        ("o1", "the same number, customer, time and total as o0")
    ]


def test_whether_a_customer_is_active_is_unknown_where_an_order_has_no_date() -> None:
    recent, old, future = "2026-02-28T10:00:00", "2025-01-05T10:00:00", "2027-01-01T10:00:00"
    cases: list[tuple[list[str | None], bool | None]] = [
        ([], False), ([recent], True), ([None], None), ([recent, None], True), ([old, None], None),
        ([future], False), ([future, "2026-02-01T13:00"], True),  # an order of the future makes nobody active
    ]  # fmt: skip
    known = frame(ORDERING_CUSTOMERS, [{"customer_id": str(n)} for n in range(len(cases))])
    rows = [(n, at) for n, (times, _) in enumerate(cases) for at in times]
    ordered = customer_orders(made(*rows, known=known).orders, known, IN_UTC)
    assert values(ordered, "is_active_365_days", "order_count") == [
        (active, len(times)) for times, active in cases
    ]
    assert ordered["last_ordered_at"].notna().tolist() == [any(times) for times, _ in cases]


def test_sums_of_the_largest_amounts_do_not_overflow_and_revenue_is_json() -> None:
    largest = "9" * 20 + "." + "9" * 9
    result = made(
        *[(1, None, largest, "paid", "PEN")] * 5, (1, None, "1" + "0" * 20, "paid", "PEN")
    )
    assert customer_orders(result.orders, CUSTOMERS[:1], IN_UTC)["revenue"].tolist() == [
        Decimal("499999999999999999999.999999995")
    ]
    assert "total_unreadable" in set(result.findings["rule"])
    odd = made((1, None, "0", None, 'U"D\\'), (1, None, "0.5", None, "usd"), (2, None, "0"))
    by_currency = customer_orders(odd.orders, CUSTOMERS[:2], IN_UTC)["revenue_by_currency"]
    assert [json.loads(text) for text in by_currency] == [{'U"D\\': "0", "USD": "0.5"}, {"": "0"}]


def lines(*rows: tuple[Any, ...], **kinds: pa.DataType) -> pd.DataFrame:
    """Raw lines of orders; `kinds` are those of the columns after `order_id` and `position`."""
    schema = {"order_id": TEXT, "position": BIGINT, **kinds}
    return frame(schema, [dict(zip(schema, row, strict=False)) for row in rows])


def test_lines_have_customer_date_and_currency_of_their_order_beside_own_columns() -> None:
    own = {
        "sku": TEXT,
        "quantity": BIGINT,
        "price": pa.float64(),
        "customer_id": TEXT,
        "raw_quantity": BIGINT,
    }
    given = lines(("o1", 2, "B", 2, 0.1), ("o1", 1, "A", 1, 2.5, "x", 7), ("gone", 1), **own)
    table, findings = order_lines(given, made(*ORDERED[:2]).orders)
    at = datetime(2026, 1, 5, 10, tzinfo=UTC)
    common = {
        "order_id": "o1",
        "customer_id": "1",
        "currency": "PEN",
        "is_cancelled": False,
        "status_class": "sale",
        "is_sale": True,
        "ordered_at": at,
        "line_kind": "product",
    }
    expected = [
        {**common, "line_number": 1, "product": "A", "quantity": Decimal(1), "unit_price": Decimal("2.5"), "sku": "A",
         "line_amount": Decimal("2.5"),
         "raw_raw_quantity": 1, "raw_quantity": 7, "price": 2.5, "raw_customer_id": "x"},
        {**common, "line_number": 2, "product": "B", "quantity": Decimal(2), "unit_price": Decimal("0.1"), "sku": "B",
         "line_amount": Decimal("0.2"),
         "raw_raw_quantity": 2, "price": 0.1},
    ]  # fmt: skip
    others = {
        "sku": TEXT,
        "raw_raw_quantity": BIGINT,
        "price": pa.float64(),
        "raw_customer_id": TEXT,
    }
    assert_frame_equal(table, frame({**ORDER_LINES, **others, "raw_quantity": BIGINT}, expected))
    assert values(findings, "entity", "entity_id", "rule") == [
        ("order_lines", "gone", "order_missing")
    ]


def test_amounts_of_lines_that_cannot_be_read_are_found() -> None:
    kinds = {"qty": TEXT, "price": TEXT, "amount": BIGINT, "line_total": BIGINT}
    given = lines(
        ("o0", 0, "2", "1,50", 3), ("o0", 1, "1", "2.5"), ("o0", 2, None, None, 4), **kinds
    )
    table, findings = order_lines(given, made(ORDERED[0]).orders)
    assert values(table, "unit_price", "line_total") == [
        (None, 3),
        (Decimal("2.5"), None),
        (None, 4),
    ]
    detail = "unit_price: 1 of 2 values"
    assert values(findings, "rule", "severity", "detail") == [
        ("amounts_unreadable", "warning", detail)
    ]


def test_a_column_that_only_has_values_of_orders_no_longer_listed_is_not_read() -> None:
    of_orders = made(*ORDERED[:2]).orders
    given = lines(("o0", 0, 3, None), ("o1", 0, None, 4), quantity=BIGINT, qty=BIGINT)
    for is_missing, quantities in ((["o0"], [None, 4]), (["o0", "o1"], [3, None])):
        of_orders["is_missing"] = of_orders["order_id"].isin(is_missing)
        assert values(order_lines(given, of_orders)[0], "quantity") == quantities


def test_an_order_with_a_line_of_no_amount_comes_to_nothing_known() -> None:
    schema = {"order_id": TEXT, "quantity": MONEY, "unit_price": MONEY, "line_total": MONEY}
    rows = [("a", 2, 3, None), ("a", 1, None, 4), ("b", 2, 3, None), ("b", 1, None, None)]
    sums = line_sums(frame(schema, [dict(zip(schema, row, strict=True)) for row in rows]))
    assert values(sums, "order_id", "line_amount", "line_pieces") == [("a", 10, 3), ("b", None, 3)]
