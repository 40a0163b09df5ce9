"""Fields of an order are chosen by name and value, pinned, and never taken from other people or other times."""

from __future__ import annotations

from typing import Any, Final

import pandas as pd
import pyarrow as pa
import pytest

from tests.pipelines.reconcile.in_parts import choose_fields
from transforms.customer_index import ORDERING_CUSTOMERS
from transforms.frames import BIGINT, TEXT, TIMESTAMP, frame
from transforms.order_fields import OrderFields

BOOKS = {"_run_id": TEXT, "_first_seen_at": TIMESTAMP, "_last_seen_at": TIMESTAMP, "_missing_since": TIMESTAMP}
CUSTOMERS = frame(
    ORDERING_CUSTOMERS,
    [{"customer_id": str(n), "erp_code": f"C-{900 - n}", "is_missing": False} for n in range(1, 61)],
)
COUNT = 60
NUMBERS = range(COUNT)
DAYS = ("Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed")
VALUES: Final[dict[str, tuple[pa.DataType, list[Any]]]] = {
    # Sixty values of a kind: the customer's id of an order is its number plus one.
    "id": (BIGINT, [n + 1 for n in NUMBERS]),
    "code": (TEXT, [f"C-{899 - n}" for n in NUMBERS]),
    "guest": (BIGINT, [0 if n % 3 == 0 else n + 1 for n in NUMBERS]),
    "small": (BIGINT, [(n * 7) % 12 + 1 for n in NUMBERS]),
    "money": (pa.float64(), [n + 0.5 for n in NUMBERS]),
    "text": (TEXT, [f"{n}.50" for n in NUMBERS]),
    "four": (TEXT, [f"{n}.5000" for n in NUMBERS]),
    "state": (TEXT, ["paid" if n % 3 else "cancelled" for n in NUMBERS]),
    "number": (BIGINT, [n % 4 + 1 for n in NUMBERS]),
    "currency": (TEXT, ["PEN"] * COUNT),
    "other": (TEXT, [f"x{n}" for n in NUMBERS]),
    "rare": (TEXT, ["2026-01-01 10:00:00" if n == 7 else None for n in NUMBERS]),
    "comma": (TEXT, ["1,5"] * COUNT),
    "none": (TEXT, [None] * COUNT),
    "unproven": (TEXT, ["01/02/2026"] * COUNT),
    "seconds": (BIGINT, [1_700_000_000 + n for n in NUMBERS]),
    "when": (TEXT, [f"2026-01-{n % 28 + 1:02d} 10:{n:02d}:00" for n in NUMBERS]),
    "offset": (TEXT, [f"2026-01-{n % 28 + 1:02d}T10:{n:02d}:00-05:00" for n in NUMBERS]),
    "rfc": (TEXT, [f"{DAYS[n % 28 % 7]}, {n % 28 + 1:02d} Jan 2026 10:{n:02d}:00 +0000" for n in NUMBERS]),
}


def orders(columns: str) -> pd.DataFrame:
    """Columns by their kind: `id: customer_id; when: created_at updated_at`."""
    kinds = {name: kind for part in columns.split("; ") for kind, names in [part.split(": ")] for name in names.split()}
    schema = {"id": TEXT, **{name: VALUES[kind][0] for name, kind in kinds.items()}, **BOOKS}
    rows = [{"id": f"o{n}", **{name: VALUES[kind][1][n] for name, kind in kinds.items()}} for n in NUMBERS]
    return frame(schema, rows)


SCHEMAS: Final[dict[str, tuple[str, str]]] = {
    # Columns as a platform documents the fields of an order, in the form of raw.orders, by their kind in `VALUES`; then
    # customer, date, total, status and currency as they have to be chosen. First fourteen platforms.
    "woocommerce v3": (
        "guest: customer_id; when: date_created date_created_gmt date_modified date_paid; text: total total_tax "
        "shipping_total; state: status; currency: currency",
        "customer_id date_created_gmt total status currency",
    ),
    "shopify": (
        "id: customer__id; small: user_id; offset: created_at updated_at processed_at customer__created_at; rare: "
        "cancelled_at; text: total_price subtotal_price total_tax; currency: currency presentment_currency; state: "
        "financial_status",
        "customer__id created_at total_price - currency",
    ),
    "magento 2": (
        "id: customer_id; when: created_at updated_at; money: grand_total base_grand_total subtotal total_paid; "
        "state: state status; currency: order_currency_code base_currency_code",
        "customer_id created_at grand_total status order_currency_code",
    ),
    "bigcommerce v2": (
        "id: customer_id; rfc: date_created date_modified; rare: date_shipped; number: status_id; state: status; "
        "four: total_inc_tax total_ex_tax; currency: currency_code; other: staff_notes",
        "customer_id date_created total_inc_tax status currency_code",
    ),
    "prestashop": (
        "id: id_customer; small: id_cart id_currency; number: current_state; when: date_add date_upd invoice_date "
        "delivery_date; text: total_paid total_paid_real total_products",
        "id_customer date_add total_paid current_state -",
    ),
    "odoo sale.order": (
        "id: partner_id; small: user_id currency_id; when: date_order create_date write_date commitment_date; "
        "money: amount_total amount_untaxed; state: state",
        "partner_id date_order amount_total state -",
    ),
    "vtex": (
        "code: client_profile_data__user_profile_id; offset: creation_date last_change authorized_date "
        "invoiced_date; id: value; state: status; currency: store_preferences_data__currency_code",
        "client_profile_data__user_profile_id creation_date - status store_preferences_data__currency_code",
    ),
    "mercadolibre": (
        "id: buyer__id; small: seller__id; offset: date_created date_closed last_updated; money: total_amount "
        "paid_amount; state: status; currency: currency_id",
        "buyer__id date_created total_amount status currency_id",
    ),
    "olist": (
        "code: customer_id; state: order_status; when: order_purchase_timestamp order_approved_at "
        "order_delivered_carrier_date order_delivered_customer_date order_estimated_delivery_date",
        "customer_id order_purchase_timestamp - order_status -",
    ),
    "opencart": (
        "id: customer_id; small: customer_group_id affiliate_id language_id; when: date_added date_modified; four: "
        "total; state: order_status; currency: currency_code",
        "customer_id date_added total order_status currency_code",
    ),
    "medusa": (
        "id: customer_id; offset: created_at updated_at; rare: canceled_at; money: total; state: status; currency: "
        "currency_code",
        "customer_id created_at total status currency_code",
    ),
    "shopware 6": (
        "other: order_customer__customer_id; offset: order_date_time created_at; money: amount_total amount_net; "
        "state: state_machine_state__technical_name; currency: currency__iso_code",
        "- order_date_time amount_total state_machine_state__technical_name currency__iso_code",
    ),
    "tiendanube": (
        "id: customer__id; offset: created_at updated_at completed_at; rare: cancelled_at; text: total subtotal; "
        "state: status payment_status; currency: currency",
        "customer__id created_at total status currency",
    ),
    "amazon": (
        "offset: purchase_date last_update_date earliest_ship_date; state: order_status; text: order_total__amount; "
        "currency: order_total__currency_code; other: buyer_info__buyer_email",
        "- purchase_date order_total__amount order_status order_total__currency_code",
    ),
    "spanish": (
        "id: id_cliente; when: fecha_pedido; money: importe_total; state: estado; currency: moneda",
        "id_cliente fecha_pedido importe_total estado moneda",
    ),
    "spanish, code": (
        "code: cliente__codigo; when: fecha; money: monto; state: estado_pedido; currency: divisa",
        "cliente__codigo fecha monto estado_pedido divisa",
    ),
    "nested customer": ("id: customer__id; when: created_at", "customer__id created_at - - -"),
    "ids by chance": ("id: line_count", ""),
    "dates of a form that is not proven": ("unproven: created_at", "- created_at - - -"),
    "seconds": ("seconds: created_at", "- created_at - - -"),
    "totals that are none": ("comma: total; none: amount; id: amount_total_id", ""),
    "user only": ("id: user_id", ""),
    "camel user": ("id: user__id usuario_id", ""),
    "staff": ("id: created_by_user_id", ""),
    "approver": ("id: approved_by__user__id", ""),
    "referrer": ("id: referrer_customer_id", ""),
    "sales person": ("id: salesperson_id seller__id agent_id", ""),
    "customer and a user": ("id: customer__id; small: user_id", "customer__id - - - -"),
    "id by chance and a code": ("small: customer__id; code: customer__code", "customer__code - - - -"),
    "id and code of the same": ("id: customer__id; code: customer__code", "customer__id - - - -"),
    "two that differ": ("id: customer_id; small: buyer_id", ""),
    "unknown customers": ("other: customer_id", ""),
    "delivery date": ("when: delivery_date", ""),
    "update": ("when: updated_at shipped_at paid_at", ""),
    "customer's creation": ("when: customer__created_at", ""),
    "cancellation of one": ("rare: cancelled_at", ""),
    "rare order date": ("rare: ordered_at; when: created_at", "- created_at - - -"),
    "unreadable creation": ("other: created_at; when: updated_at", "- created_at - - -"),
    "parts of a total": ("money: total_tax shipping_total discount_total", ""),
    "cents": ("id: value total_cents", ""),
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_each_schema_is_chosen_right_or_reported(name: str) -> None:
    columns, expected = SCHEMAS[name]
    choice = choose_fields(orders(columns), CUSTOMERS)
    assert choice.fields == OrderFields(*(None if name == "-" else name for name in expected.split()))
    details = choice.findings.loc[choice.findings["rule"].isin(["field_not_found", "field_disputed"]), "detail"]
    unknown = {"customer_id", "ordered_at", "total"} - choice.fields.columns().keys()
    assert [detail.partition(":")[0] for detail in details] == sorted(unknown)
    assert not choice.findings["detail"].str.contains("x7|C-8", regex=True).any()


def test_a_finding_names_the_candidates_and_their_evidence() -> None:
    choice = choose_fields(orders("id: user_id; other: customer_id; when: delivery_date"), CUSTOMERS)
    details = dict(choice.findings["detail"].str.split(": ", n=1).tolist())
    assert details["customer_id"].startswith(
        "candidates: customer_id (0 of 60 are ids of customers, 0 are ERP codes), user_id (60 of 60 are "
        "ids of customers, 0 are ERP codes);"
    )
    assert details["ordered_at"] == "candidates: delivery_date; set reconcile.order_ordered_at"
    assert details["total"] == "no column with a related name; set reconcile.order_total"
    assert "error" not in set(choice.findings["severity"])


def test_a_pinned_choice_is_kept_when_a_column_is_added_and_the_change_is_an_error() -> None:
    before = choose_fields(orders("id: buyer_id"), CUSTOMERS)
    assert before.fields.customer_id == "buyer_id"
    grown = orders("id: buyer_id customer_id; small: user_id")
    after = choose_fields(grown, CUSTOMERS, pinned=before.fields)
    assert after.fields.customer_id == "buyer_id"
    assert _changes(after) == [
        ("error", "customer_id: buyer_id is kept, customer_id fits better now; set reconcile.order_customer_id")
    ]
    with_setting = choose_fields(grown, CUSTOMERS, OrderFields(customer_id="customer_id"), before.fields)
    assert (with_setting.fields.customer_id, _changes(with_setting)) == ("customer_id", [])


def test_a_column_of_customers_with_few_values_is_not_chosen() -> None:
    rows = orders("id: buyer_id customer_id")
    rows["buyer_id"] = rows["buyer_id"].where(rows.index < 20)
    assert choose_fields(rows, CUSTOMERS).fields.customer_id == "customer_id"
    assert choose_fields(rows.drop(columns="customer_id"), CUSTOMERS).fields.customer_id is None


def test_the_notation_that_is_set_decides_which_column_names_the_customers() -> None:
    rows = orders("id: customer_id; code: customer_code")
    codes, ids = (
        choose_fields(rows, CUSTOMERS, OrderFields(customer_notation=one)).fields.customer_id
        for one in ("codes", "ids")
    )
    assert (codes, ids) == ("customer_code", "customer_id")
    choice = choose_fields(rows.drop(columns="customer_code"), CUSTOMERS, OrderFields(customer_notation="codes"))
    assert choice.fields.customer_id is None, "read as codes, ids are those of others by chance"
    assert "field_not_found" in set(choice.findings["rule"])


@pytest.mark.parametrize(
    ("columns", "detail"),
    [
        ("number: status_id", "values without a letter; candidates: status_id (60 of 60 have one of 4 values)"),
        ("rare: cancel_reason", "no column is proven; candidates: cancel_reason"),
        ("rare: cancelled_at", None),
        ("state: status", None),
    ],
)
def test_cancelled_orders_that_cannot_be_recognized_are_found(columns: str, detail: str | None) -> None:
    findings = choose_fields(orders(columns), CUSTOMERS).findings
    details = findings.loc[findings["rule"] == "cancelled_unknown", "detail"].tolist()
    assert details == ([f"order_status: {detail}; set reconcile.order_status"] if detail else [])


@pytest.mark.parametrize(
    ("missing", "unlike", "found"),
    [(0, 0, []), (0, 6, ["lines_differ"]), (0, 7, []), (3, 0, ["total_missing"])],
)
def test_totals_that_are_missing_or_unlike_their_lines_are_found_where_nearly_all_are_right(
    missing: int, unlike: int, found: list[str]
) -> None:
    rows = orders("money: total")
    rows["total"] = rows["total"].where(rows.index >= missing)
    lines = rows[["id", "total"]].rename(columns={"id": "order_id", "total": "price"})
    lines["price"] = lines["price"].where(rows.index < COUNT - unlike, lines["price"] + 1).fillna(1.0)
    choice = choose_fields(rows, CUSTOMERS, lines=lines.assign(quantity=1))
    details = choice.findings[choice.findings["rule"].isin(["lines_differ", "total_missing"])]
    assert details["rule"].tolist() == found
    if unlike and found:
        assert "in 6 of 60 orders" in details["detail"].iloc[0]


def test_totals_that_were_in_hundredths_are_so_without_lines() -> None:
    rows = orders("id: total amount")
    for column, expected in (("total", True), ("amount", False)):
        pinned = OrderFields(total=column, is_in_cents=True)
        configured = OrderFields(total="total")
        assert choose_fields(rows, CUSTOMERS, configured, pinned).fields.is_in_cents is expected


def test_one_order_with_a_user_changes_nothing() -> None:
    rows = orders("id: customer__id; small: user_id; when: created_at; money: total; state: status")
    rows["user_id"] = rows["user_id"].where(rows.index == 7)
    choice = choose_fields(rows, CUSTOMERS, pinned=OrderFields("customer__id", "created_at", "total", "status"))
    assert choice.fields == OrderFields("customer__id", "created_at", "total", "status")
    assert choice.findings.empty


def test_a_pinned_column_that_is_gone_is_an_error() -> None:
    choice = choose_fields(orders("id: customer_id"), CUSTOMERS, pinned=OrderFields("buyer_id", "placed_at"))
    assert choice.fields == OrderFields("customer_id")
    assert _changes(choice) == [
        ("error", "customer_id: buyer_id is gone, customer_id is used; set reconcile.order_customer_id"),
        ("error", "ordered_at: placed_at is gone, no column is used; set reconcile.order_ordered_at"),
    ]


def test_a_pinned_column_that_has_become_empty_stays_without_an_error_of_its_own() -> None:
    choice = choose_fields(orders("other: buyer_id"), CUSTOMERS, pinned=OrderFields("buyer_id"))
    assert (choice.fields.customer_id, _changes(choice)) == ("buyer_id", [])


@pytest.mark.parametrize(("given", "is_error"), [(0, True), (30, True), (53, True), (54, False)])
def test_a_pinned_column_that_many_orders_have_no_value_in_is_kept_and_an_error(given: int, is_error: bool) -> None:
    rows = orders("other: currency; money: total")
    rows["total"] = rows["total"].where(rows.index < given)
    pinned = OrderFields(total="total", currency="currency")
    choice = choose_fields(rows, CUSTOMERS, pinned=pinned)
    assert choice.fields == pinned
    detail = f"total: total is kept, but {given} of 60 orders have a value; set reconcile.order_total"
    assert _changes(choice) == ([("error", detail)] if is_error else [])
    assert _changes(choose_fields(rows, CUSTOMERS, OrderFields(total="total"), pinned)) == []
    assert _changes(choose_fields(rows[:0], CUSTOMERS, pinned=pinned)) == []


def test_texts_with_three_decimals_prove_no_total() -> None:
    rows = orders("other: total")
    rows["total"] = pd.Series(["1.234", "12.500"] * 30, dtype=rows["total"].dtype)
    proposal = choose_fields(rows, CUSTOMERS)
    assert proposal.fields.total is None
    assert proposal.evidence["total"] == "texts such as 1.234, thousands or decimals"
    rows["total"] = pd.Series(["1.234", "12.50"] * 30, dtype=rows["total"].dtype)
    assert choose_fields(rows, CUSTOMERS).fields.total == "total"


def _changes(choice: Any) -> list[tuple[str, str]]:
    rows = choice.findings[choice.findings["rule"] == "field_changed"]
    return list(rows[["severity", "detail"]].itertuples(index=False, name=None))
