"""Fields of an order are chosen by name and value, pinned, and never taken from other people or other times."""

from __future__ import annotations

from typing import Any, Final

import pandas as pd
import pyarrow as pa
import pytest

from tests.pipelines.reconcile.in_parts import choose_fields, propose_fields
from transforms.customer_index import ORDERING_CUSTOMERS
from transforms.frames import BIGINT, TEXT, TIMESTAMP, frame
from transforms.order_fields import OrderFields

BOOKS = {"_run_id": TEXT, "_first_seen_at": TIMESTAMP, "_last_seen_at": TIMESTAMP, "_missing_since": TIMESTAMP}
CUSTOMERS = frame(
    ORDERING_CUSTOMERS,
    [{"customer_id": str(n), "erp_code": f"C-{900 - n}", "is_missing": False} for n in range(1, 61)],
)
COUNT = 60
WHEN, OFFSET = "2026-01-{d:02d} 10:{n:02d}:00", "2026-01-{d:02d}T10:{n:02d}:00-05:00"
RFC = "{w}, {d:02d} Jan 2026 10:{n:02d}:00 +0000"
ID, CODE, GUEST_ID, SMALL = "id", "code", "guest", "small"
MONEY, TEXT_MONEY, FOUR = "money", "text money", "four decimals"
STATE, CURRENCY, OTHER, RARE, NUMBER_STATE = "state", "currency", "other", "rare", "number state"


def values(kind: str) -> tuple[pa.DataType, list[Any]]:
    """Sixty values of a kind: the customer's id of an order is its number plus one."""
    numbers = range(COUNT)
    texts: dict[str, tuple[pa.DataType, list[Any]]] = {
        ID: (BIGINT, [n + 1 for n in numbers]),
        CODE: (TEXT, [f"C-{899 - n}" for n in numbers]),
        GUEST_ID: (BIGINT, [0 if n % 3 == 0 else n + 1 for n in numbers]),
        SMALL: (BIGINT, [(n * 7) % 12 + 1 for n in numbers]),
        MONEY: (pa.float64(), [n + 0.5 for n in numbers]),
        TEXT_MONEY: (TEXT, [f"{n}.50" for n in numbers]),
        FOUR: (TEXT, [f"{n}.5000" for n in numbers]),
        STATE: (TEXT, ["paid" if n % 3 else "cancelled" for n in numbers]),
        NUMBER_STATE: (BIGINT, [n % 4 + 1 for n in numbers]),
        CURRENCY: (TEXT, ["PEN"] * COUNT),
        OTHER: (TEXT, [f"x{n}" for n in numbers]),
        RARE: (TEXT, [WHEN.format(d=1, n=0) if n == 7 else None for n in numbers]),
    }
    if kind in texts:
        return texts[kind]
    days = ("Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed")
    return TEXT, [kind.format(d=n % 28 + 1, n=n, w=days[n % 28 % 7]) for n in numbers]


def orders(columns: dict[str, str]) -> pd.DataFrame:
    made = {name: values(kind) for name, kind in columns.items()}
    schema = {"id": TEXT, **{name: kind for name, (kind, _) in made.items()}, **BOOKS}
    rows = [{"id": f"o{n}", **{name: data[n] for name, (_, data) in made.items()}} for n in range(COUNT)]
    return frame(schema, rows)


PLATFORMS: Final[dict[str, tuple[dict[str, str], tuple[str | None, ...]]]] = {
    # Columns as the platform documents the fields of an order, in the form of raw.orders; then customer, date, total,
    # status and currency as they have to be chosen.
    "woocommerce v3": (
        {"customer_id": GUEST_ID, "date_created": WHEN, "date_created_gmt": WHEN, "date_modified": WHEN,
         "date_paid": WHEN,
         "total": TEXT_MONEY, "total_tax": TEXT_MONEY, "shipping_total": TEXT_MONEY, "status": STATE,
         "currency": CURRENCY},
        ("customer_id", "date_created_gmt", "total", "status", "currency"),
    ),
    "shopify": (
        {"customer__id": ID, "user_id": SMALL, "created_at": OFFSET, "updated_at": OFFSET, "cancelled_at": RARE,
         "processed_at": OFFSET, "customer__created_at": OFFSET, "total_price": TEXT_MONEY,
         "subtotal_price": TEXT_MONEY,
         "total_tax": TEXT_MONEY, "currency": CURRENCY, "presentment_currency": CURRENCY, "financial_status": STATE},
        ("customer__id", "created_at", "total_price", None, "currency"),
    ),
    "magento 2": (
        {"customer_id": ID, "created_at": WHEN, "updated_at": WHEN, "grand_total": MONEY, "base_grand_total": MONEY,
         "subtotal": MONEY, "total_paid": MONEY, "state": STATE, "status": STATE, "order_currency_code": CURRENCY,
         "base_currency_code": CURRENCY},
        ("customer_id", "created_at", "grand_total", "status", "order_currency_code"),
    ),
    "bigcommerce v2": (
        {"customer_id": ID, "date_created": RFC, "date_modified": RFC, "date_shipped": RARE, "status_id": NUMBER_STATE,
         "status": STATE, "total_inc_tax": FOUR, "total_ex_tax": FOUR, "currency_code": CURRENCY, "staff_notes": OTHER},
        ("customer_id", "date_created", "total_inc_tax", "status", "currency_code"),
    ),
    "prestashop": (
        {"id_customer": ID, "id_cart": SMALL, "id_currency": SMALL, "current_state": NUMBER_STATE, "date_add": WHEN,
         "date_upd": WHEN, "invoice_date": WHEN, "delivery_date": WHEN, "total_paid": TEXT_MONEY,
         "total_paid_real": TEXT_MONEY, "total_products": TEXT_MONEY},
        ("id_customer", "date_add", "total_paid", "current_state", None),
    ),
    "odoo sale.order": (
        {"partner_id": ID, "user_id": SMALL, "date_order": WHEN, "create_date": WHEN, "write_date": WHEN,
         "commitment_date": WHEN, "amount_total": MONEY, "amount_untaxed": MONEY, "state": STATE, "currency_id": SMALL},
        ("partner_id", "date_order", "amount_total", "state", None),
    ),
    "vtex": (
        {"client_profile_data__user_profile_id": CODE, "creation_date": OFFSET, "last_change": OFFSET, "value": ID,
         "authorized_date": OFFSET, "invoiced_date": OFFSET, "status": STATE,
         "store_preferences_data__currency_code": CURRENCY},
        ("client_profile_data__user_profile_id", "creation_date",
         None, "status", "store_preferences_data__currency_code"),
    ),
    "mercadolibre": (
        {"buyer__id": ID, "seller__id": SMALL, "date_created": OFFSET, "date_closed": OFFSET, "last_updated": OFFSET,
         "total_amount": MONEY, "paid_amount": MONEY, "status": STATE, "currency_id": CURRENCY},
        ("buyer__id", "date_created", "total_amount", "status", "currency_id"),
    ),
    "olist": (
        {"customer_id": CODE, "order_status": STATE, "order_purchase_timestamp": WHEN, "order_approved_at": WHEN,
         "order_delivered_carrier_date": WHEN, "order_delivered_customer_date": WHEN,
         "order_estimated_delivery_date": WHEN},
        ("customer_id", "order_purchase_timestamp", None, "order_status", None),
    ),
    "opencart": (
        {"customer_id": ID, "customer_group_id": SMALL, "date_added": WHEN, "date_modified": WHEN, "total": FOUR,
         "order_status": STATE, "currency_code": CURRENCY, "affiliate_id": SMALL, "language_id": SMALL},
        ("customer_id", "date_added", "total", "order_status", "currency_code"),
    ),
    "medusa": (
        {"customer_id": ID, "created_at": OFFSET, "updated_at": OFFSET, "canceled_at": RARE, "total": MONEY,
         "status": STATE, "currency_code": CURRENCY},
        ("customer_id", "created_at", "total", "status", "currency_code"),
    ),
    "shopware 6": (
        {"order_customer__customer_id": OTHER, "order_date_time": OFFSET, "created_at": OFFSET, "amount_total": MONEY,
         "amount_net": MONEY, "state_machine_state__technical_name": STATE, "currency__iso_code": CURRENCY},
        (None, "order_date_time", "amount_total", "state_machine_state__technical_name", "currency__iso_code"),
    ),
    "tiendanube": (
        {"customer__id": ID, "created_at": OFFSET, "updated_at": OFFSET, "completed_at": OFFSET, "cancelled_at": RARE,
         "total": TEXT_MONEY, "subtotal": TEXT_MONEY, "status": STATE, "payment_status": STATE, "currency": CURRENCY},
        ("customer__id", "created_at", "total", "status", "currency"),
    ),
    "amazon": (
        {"purchase_date": OFFSET, "last_update_date": OFFSET, "earliest_ship_date": OFFSET, "order_status": STATE,
         "order_total__amount": TEXT_MONEY, "order_total__currency_code": CURRENCY, "buyer_info__buyer_email": OTHER},
        (None, "purchase_date", "order_total__amount", "order_status", "order_total__currency_code"),
    ),
}  # fmt: skip
"""Fourteen platforms."""
MADE: Final[dict[str, tuple[dict[str, str], tuple[str | None, ...]]]] = {
    "spanish": (
        {"id_cliente": ID, "fecha_pedido": WHEN, "importe_total": MONEY, "estado": STATE, "moneda": CURRENCY},
        ("id_cliente", "fecha_pedido", "importe_total", "estado", "moneda"),
    ),
    "spanish, code": (
        {"cliente__codigo": CODE, "fecha": WHEN, "monto": MONEY, "estado_pedido": STATE, "divisa": CURRENCY},
        ("cliente__codigo", "fecha", "monto", "estado_pedido", "divisa"),
    ),
    "nested customer": ({"customer__id": ID, "created_at": WHEN}, ("customer__id", "created_at", None, None, None)),
    "user only": ({"user_id": ID}, (None,) * 5),
    "camel user": ({"user__id": ID, "usuario_id": ID}, (None,) * 5),
    "staff": ({"created_by_user_id": ID}, (None,) * 5),
    "approver": ({"approved_by__user__id": ID}, (None,) * 5),
    "referrer": ({"referrer_customer_id": ID}, (None,) * 5),
    "sales person": ({"salesperson_id": ID, "seller__id": ID, "agent_id": ID}, (None,) * 5),
    "customer and a user": ({"customer__id": ID, "user_id": SMALL}, ("customer__id", None, None, None, None)),
    "id by chance and a code": (
        {"customer__id": SMALL, "customer__code": CODE}, ("customer__code", None, None, None, None),
    ),
    "id and code of the same": ({"customer__id": ID, "customer__code": CODE}, ("customer__id", None, None, None, None)),
    "two that differ": ({"customer_id": ID, "buyer_id": SMALL}, (None,) * 5),
    "unknown customers": ({"customer_id": OTHER}, (None,) * 5),
    "delivery date": ({"delivery_date": WHEN}, (None,) * 5),
    "update": ({"updated_at": WHEN, "shipped_at": WHEN, "paid_at": WHEN}, (None,) * 5),
    "customer's creation": ({"customer__created_at": WHEN}, (None,) * 5),
    "cancellation of one": ({"cancelled_at": RARE}, (None,) * 5),
    "rare order date": ({"ordered_at": RARE, "created_at": WHEN}, (None, "created_at", None, None, None)),
    "unreadable creation": ({"created_at": OTHER, "updated_at": WHEN}, (None, "created_at", None, None, None)),
    "parts of a total": ({"total_tax": MONEY, "shipping_total": MONEY, "discount_total": MONEY}, (None,) * 5),
    "cents": ({"value": ID, "total_cents": ID}, (None,) * 5),
}  # fmt: skip
SCHEMAS = PLATFORMS | MADE


def test_there_are_36_schemas_of_which_14_are_platforms() -> None:
    assert (len(PLATFORMS), len(SCHEMAS)) == (14, 36)


@pytest.mark.parametrize("name", SCHEMAS)
def test_each_schema_is_chosen_right_or_reported(name: str) -> None:
    columns, expected = SCHEMAS[name]
    choice = choose_fields(orders(columns), CUSTOMERS)
    assert choice.fields == OrderFields(*expected)
    details = choice.findings.loc[choice.findings["rule"].isin(["field_not_found", "field_disputed"]), "detail"]
    unknown = {"customer_id", "ordered_at", "total"} - choice.fields.columns().keys()
    assert [detail.partition(":")[0] for detail in details] == sorted(unknown)
    assert not choice.findings["detail"].str.contains("x7|C-8", regex=True).any()


def test_a_finding_names_the_candidates_and_their_evidence() -> None:
    choice = choose_fields(orders({"user_id": ID, "customer_id": OTHER, "delivery_date": WHEN}), CUSTOMERS)
    details = dict(choice.findings["detail"].str.split(": ", n=1).tolist())
    assert details["customer_id"].startswith(
        "candidates: customer_id (0 of 60 are ids of customers, 0 are ERP codes), user_id (60 of 60 are "
        "ids of customers, 0 are ERP codes);"
    )
    assert details["ordered_at"] == "candidates: delivery_date; set reconcile.order_ordered_at"
    assert details["total"] == "no column with a related name; set reconcile.order_total"
    assert "error" not in set(choice.findings["severity"])


def test_a_pinned_choice_is_kept_when_a_column_is_added_and_the_change_is_an_error() -> None:
    before = choose_fields(orders({"buyer_id": ID}), CUSTOMERS)
    assert before.fields.customer_id == "buyer_id"
    grown = orders({"buyer_id": ID, "customer_id": ID, "user_id": SMALL})
    after = choose_fields(grown, CUSTOMERS, pinned=before.fields)
    assert after.fields.customer_id == "buyer_id"
    assert _changes(after) == [
        ("error", "customer_id: buyer_id is kept, customer_id fits better now; set reconcile.order_customer_id")
    ]
    with_setting = choose_fields(grown, CUSTOMERS, OrderFields(customer_id="customer_id"), before.fields)
    assert (with_setting.fields.customer_id, _changes(with_setting)) == ("customer_id", [])


def test_a_column_of_customers_with_few_values_is_not_chosen() -> None:
    rows = orders({"buyer_id": ID, "customer_id": ID})
    rows["buyer_id"] = rows["buyer_id"].where(rows.index < 20)
    assert propose_fields(rows, CUSTOMERS).fields.customer_id == "customer_id"
    assert propose_fields(rows.drop(columns="customer_id"), CUSTOMERS).fields.customer_id is None


def test_the_notation_that_is_set_decides_which_column_names_the_customers() -> None:
    rows = orders({"customer_id": ID, "customer_code": CODE})
    codes, ids = (propose_fields(rows, CUSTOMERS, one).fields.customer_id for one in ("codes", "ids"))
    assert (codes, ids) == ("customer_code", "customer_id")
    choice = choose_fields(rows.drop(columns="customer_code"), CUSTOMERS, OrderFields(customer_notation="codes"))
    assert choice.fields.customer_id is None, "read as codes, ids are those of others by chance"
    assert "field_not_found" in set(choice.findings["rule"])


@pytest.mark.parametrize(
    ("columns", "detail"),
    [
        ({"status_id": NUMBER_STATE}, "values without a letter; candidates: status_id (60 of 60 have one of 4 values)"),
        ({"cancel_reason": RARE}, "no column is proven; candidates: cancel_reason"),
        ({"cancelled_at": RARE}, None),
        ({"status": STATE}, None),
    ],
)
def test_cancelled_orders_that_cannot_be_recognized_are_found(columns: dict[str, str], detail: str | None) -> None:
    findings = choose_fields(orders(columns), CUSTOMERS).findings
    details = findings.loc[findings["rule"] == "cancelled_unknown", "detail"].tolist()
    assert details == ([f"order_status: {detail}; set reconcile.order_status"] if detail else [])


def test_totals_that_were_in_hundredths_are_so_without_lines() -> None:
    rows = orders({"total": ID, "amount": ID})
    for column, expected in (("total", True), ("amount", False)):
        pinned = OrderFields(total=column, is_in_cents=True)
        configured = OrderFields(total="total")
        assert choose_fields(rows, CUSTOMERS, configured, pinned).fields.is_in_cents is expected


def test_one_order_with_a_user_changes_nothing() -> None:
    rows = orders({"customer__id": ID, "user_id": SMALL, "created_at": WHEN, "total": MONEY, "status": STATE})
    rows["user_id"] = rows["user_id"].where(rows.index == 7)
    choice = choose_fields(rows, CUSTOMERS, pinned=OrderFields("customer__id", "created_at", "total", "status"))
    assert choice.fields == OrderFields("customer__id", "created_at", "total", "status")
    assert choice.findings.empty


def test_a_pinned_column_that_is_gone_is_an_error() -> None:
    choice = choose_fields(orders({"customer_id": ID}), CUSTOMERS, pinned=OrderFields("buyer_id", "placed_at"))
    assert choice.fields == OrderFields("customer_id")
    assert _changes(choice) == [
        ("error", "customer_id: buyer_id is gone, customer_id is used; set reconcile.order_customer_id"),
        ("error", "ordered_at: placed_at is gone, no column is used; set reconcile.order_ordered_at"),
    ]


def test_a_pinned_column_that_has_become_empty_stays_without_an_error_of_its_own() -> None:
    choice = choose_fields(orders({"buyer_id": OTHER}), CUSTOMERS, pinned=OrderFields("buyer_id"))
    assert (choice.fields.customer_id, _changes(choice)) == ("buyer_id", [])


@pytest.mark.parametrize(("given", "is_error"), [(0, True), (30, True), (53, True), (54, False)])
def test_a_pinned_column_that_many_orders_have_no_value_in_is_kept_and_an_error(given: int, is_error: bool) -> None:
    rows = orders({"currency": OTHER, "total": MONEY})
    rows["total"] = rows["total"].where(rows.index < given)
    pinned = OrderFields(total="total", currency="currency")
    choice = choose_fields(rows, CUSTOMERS, pinned=pinned)
    assert choice.fields == pinned
    detail = f"total: total is kept, but {given} of 60 orders have a value; set reconcile.order_total"
    assert _changes(choice) == ([("error", detail)] if is_error else [])
    assert _changes(choose_fields(rows, CUSTOMERS, OrderFields(total="total"), pinned)) == []
    assert _changes(choose_fields(rows[:0], CUSTOMERS, pinned=pinned)) == []


def test_texts_with_three_decimals_prove_no_total() -> None:
    rows = orders({"total": OTHER})
    rows["total"] = pd.Series(["1.234", "12.500"] * 30, dtype=rows["total"].dtype)
    proposal = propose_fields(rows, CUSTOMERS)
    assert proposal.fields.total is None
    assert proposal.evidence["total"] == "texts such as 1.234, thousands or decimals"
    rows["total"] = pd.Series(["1.234", "12.50"] * 30, dtype=rows["total"].dtype)
    assert propose_fields(rows, CUSTOMERS).fields.total == "total"


def _changes(choice: Any) -> list[tuple[str, str]]:
    rows = choice.findings[choice.findings["rule"] == "field_changed"]
    return list(rows[["severity", "detail"]].itertuples(index=False, name=None))
