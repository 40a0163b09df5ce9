"""Fields of an order are chosen by name and value, and pinned; which words and columns say that one does not count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Final

import pandas as pd
import pyarrow as pa
import pytest

from orderbridge.transforms.frames import BIGINT, TEXT, column, frame
from orderbridge.transforms.orders.amount_unit import UNIT
from orderbridge.transforms.orders.cancelled import (
    Cancellation,
    Witness,
    means_cancelled,
    related_columns,
)
from orderbridge.transforms.orders.customer_index import ORDERING_CUSTOMERS
from orderbridge.transforms.orders.fields import FIELD_QUESTIONS, FieldChoice, OrderFields
from orderbridge.transforms.orders.statuses import (
    StatusEvidence,
    classes_in_force,
    proposed_classes,
)
from orderbridge.transforms.questions import Answer
from orderbridge.transforms.values.keys import BOOKKEEPING
from orderbridge.transforms.values.numbers import POINT
from tests.pipelines.reconcile.in_parts import NIGHT, choose_fields, folded

CUSTOMERS = frame(
    ORDERING_CUSTOMERS,
    [
        {"customer_id": str(n), "erp_code": f"C-{900 - n}", "is_missing": False}
        for n in range(1, 61)
    ],
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
    "another": (BIGINT, [COUNT - n for n in NUMBERS]),
    "cents": (BIGINT, [100 * n + 50 for n in NUMBERS]),
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
    "when": (TEXT, [f"2026-01-{n % 28 + 1:02d} 10:{n:02d}:00" for n in NUMBERS]),
    "offset": (TEXT, [f"2026-01-{n % 28 + 1:02d}T10:{n:02d}:00-05:00" for n in NUMBERS]),
    "rfc": (
        TEXT,
        [f"{DAYS[n % 28 % 7]}, {n % 28 + 1:02d} Jan 2026 10:{n:02d}:00 +0000" for n in NUMBERS],
    ),
}


def orders(columns: str) -> pd.DataFrame:
    """Columns by their kind: `id: customer_id; when: created_at updated_at`."""
    kinds = {
        name: kind
        for part in columns.split("; ")
        for kind, names in [part.split(": ")]
        for name in names.split()
    }
    schema = {"id": TEXT, **{name: VALUES[kind][0] for name, kind in kinds.items()}, **BOOKKEEPING}
    rows = [
        {"id": f"o{n}", **{name: VALUES[kind][1][n] for name, kind in kinds.items()}}
        for n in NUMBERS
    ]
    return frame(schema, rows)


SCHEMAS: Final[dict[str, tuple[str, str]]] = {
    # Columns as a platform documents the fields of an order, in the form of raw.orders, by their kind in `VALUES`; then
    # customer, date, total, status and currency as they have to be chosen. First platforms.
    "woocommerce v3": (
        "guest: customer_id; when: date_created date_created_gmt date_paid; text: total total_tax; state: status; "
        "currency: currency", "customer_id date_created_gmt total status currency"),
    "vtex": (
        "code: client_profile_data__user_profile_id; offset: creation_date last_change; id: value; state: status; "
        "currency: store_preferences_data__currency_code",
        "client_profile_data__user_profile_id creation_date - status store_preferences_data__currency_code"),
    "spanish, dates of RFC 2822": (
        "code: cliente__codigo; rfc: fecha; four: monto; state: estado_pedido; currency: divisa",
        "cliente__codigo fecha monto estado_pedido divisa"),
    "ids by chance": ("id: line_count", ""),
    "dates of a form that is not proven": ("unproven: created_at", "- created_at - - -"),
    "totals that are none": ("none: amount; id: amount_total_id", ""),
    "a total with a decimal comma": ("comma: total", "- - total - -"),
    "a status of ids and names": ("number: state; state: state__name", "- - - state__name -"),
    "referrer": ("id: referrer_customer_id", ""),
    "customer and a user": ("id: customer__id; small: user_id", "customer__id - - - -"),
    "id by chance and a code": ("small: customer__id; code: customer__code", "customer__code - - - -"),
    "an account of another customer": ("id: customer_id; another: account__id", ""),
    "totals that disagree without lines": ("money: total; cents: grand_total", ""),
    "unknown customers": ("other: customer_id", ""),
    "a status of sixty words": ("other: status", ""),
    "customer's creation": ("when: customer__created_at", ""),
    "cancellation of one": ("rare: cancelled_at", ""),
    "unreadable creation": ("other: created_at; when: updated_at", "- created_at - - -"),
    "parts of a total": ("money: total_tax shipping_total discount_total", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", SCHEMAS)
def test_each_schema_is_chosen_right_or_reported(name: str) -> None:
    columns, expected = SCHEMAS[name]
    choice = choose_fields(orders(columns), CUSTOMERS)
    assert choice.fields == OrderFields(
        *(None if name == "-" else name for name in expected.split())
    )
    details = choice.findings.loc[
        choice.findings["rule"].isin(["field_not_found", "field_disputed"]), "detail"
    ]
    unknown = {"customer_id", "ordered_at", "total"} - choice.fields.columns().keys()
    assert sorted(detail.partition(":")[0] for detail in details) == sorted(unknown)
    assert not choice.findings["detail"].str.contains("x7|C-8", regex=True).any()


def test_a_finding_names_the_candidates_and_their_evidence() -> None:
    choice = choose_fields(
        orders("id: user_id; other: customer_id; when: delivery_date"), CUSTOMERS
    )
    details = dict(choice.findings["detail"].str.split(": ", n=1).tolist())
    known = "candidates: customer_id (0 of 60 are ids of customers, 0 are ERP codes), user_id (60 of 60 are "
    assert details["customer_id"].startswith(known)
    seen = "delivery_date (20 of 20 have a value)"
    command = "orderbridge questions reconcile.order_ordered_at"
    assert details["ordered_at"] == f"candidates: {seen}; to answer: {command}"
    assert "error" not in set(choice.findings["severity"])


def details(choice: FieldChoice, rule: str) -> list[str]:
    """What is found of a rule, without the command that answers it."""
    found = choice.findings[choice.findings["rule"] == rule]["detail"]
    return sorted(detail.partition("; to answer: ")[0] for detail in found)


def with_values(columns: str, **where: range) -> pd.DataFrame:
    """Such orders, whose columns have values in some of the rows only."""
    rows = orders(columns)
    return rows.assign(
        **{name: rows[name].where(rows.index.isin(some)) for name, some in where.items()}
    )


@pytest.mark.parametrize(
    ("columns", "assumed", "fields", "changes"),
    [
        # a pinned choice is kept when a column is added, and the change is an error
        ("id: buyer_id customer_id; small: user_id", {"customer_id": "buyer_id"}, OrderFields("buyer_id"),
         ["customer_id: buyer_id is kept, customer_id fits better now"]),
        ("id: customer_id", {"customer_id": "buyer_id", "ordered_at": "placed_at"}, OrderFields("customer_id"),
         ["customer_id: buyer_id is gone, customer_id is used", "ordered_at: placed_at is gone, no column is used"]),
        # one that has become empty stays, without an error of its own
        ("other: buyer_id", {"customer_id": "buyer_id"}, OrderFields("buyer_id"), []),
        ("id: customer_id; small: buyer_id", {"customer_id": "customer_id"}, OrderFields("customer_id"),
         ["customer_id: customer_id is kept, but customer_id and buyer_id refer to different customers"]),
    ],
)  # fmt: skip
def test_a_pinned_column_is_kept(
    columns: str, assumed: dict[str, str], fields: OrderFields, changes: list[str]
) -> None:
    choice = choose_fields(orders(columns), CUSTOMERS, assumed=assumed)
    assert (choice.fields, details(choice, "field_changed")) == (fields, changes)
    of_setting = choose_fields(
        orders(columns), CUSTOMERS, {"customer_id": str(fields.customer_id)}, assumed
    )
    assert details(of_setting, "field_changed") == [
        one for one in changes if not one.startswith("customer_id")
    ]


def test_a_column_with_few_values_is_not_chosen_but_an_error_where_it_is_pinned() -> None:
    for columns, chosen in (("id: buyer_id customer_id", "customer_id"), ("id: buyer_id", None)):
        rows = with_values(columns, buyer_id=range(20))
        assert choose_fields(rows, CUSTOMERS).fields.customer_id == chosen
    assumed = {"total": "total", "currency": "currency"}
    for given, is_error in ((0, True), (53, True), (54, False)):
        rows = with_values("other: currency; money: total", total=range(given))
        choice = choose_fields(rows, CUSTOMERS, assumed=assumed)
        changes = [f"total: total is kept, but {given} of 60 orders have a value"] * is_error
        assert (choice.fields.columns(), details(choice, "field_changed")) == (assumed, changes)
        of_setting = choose_fields(rows, CUSTOMERS, {"total": "total"}, assumed)
        for one in (of_setting, choose_fields(rows[:0], CUSTOMERS, assumed=assumed)):
            assert details(one, "field_changed") == []


def test_the_notation_that_is_set_decides_which_column_is_chosen() -> None:
    rows = orders("id: customer_id; code: customer_code")
    for notation, name in (("codes", "customer_code"), ("ids", "customer_id")):
        choice = choose_fields(rows, CUSTOMERS, {"notation": notation})
        assert choice.fields.customer_id == name
    choice = choose_fields(rows.drop(columns="customer_code"), CUSTOMERS, {"notation": "codes"})
    assert choice.fields.customer_id is None, "read as codes, ids are those of others by chance"
    assert "field_not_found" in set(choice.findings["rule"])


def test_cancelled_orders_that_cannot_be_recognized_are_found() -> None:
    of_column = "candidates: {} (60 of 60 have one of {} values)".format
    for columns, value, found in (
        ("number: status_id", None, []),  # asked, value by value
        ("rare: cancel_reason", None, ["no column is certain by its name and values; candidates: cancel_reason"]),
        ("rare: cancelled_at", None, []), ("state: status", None, []), ("state: status", "CANCELLED", []),
        ("state: status", "9", [f"no order has a value of reconcile.order_cancelled; {of_column('status', 2)}"]),
    ):  # fmt: skip
        cancelled = (value,) if value else None
        choice = choose_fields(orders(columns), CUSTOMERS, cancelled_values=cancelled)
        assert details(choice, "cancelled_unknown") == [f"order_status: {one}" for one in found]


def test_totals_missing_or_unlike_lines_or_a_column_are_found_if_most_are_right() -> None:
    for missing, unlike, rule in (
        (0, 0, ""),
        (0, 6, "lines_differ"),
        (0, 7, ""),
        (3, 0, "total_missing"),
    ):
        rows = with_values("money: total", total=range(missing, COUNT))
        lines = rows[["id", "total"]].rename(columns={"id": "order_id", "total": "price"})
        lines["price"] = (
            lines["price"].where(rows.index < COUNT - unlike, lines["price"] + 1).fillna(1.0)
        )
        choice = choose_fields(rows, CUSTOMERS, lines=lines.assign(quantity=1))
        found = choice.findings[choice.findings["rule"].isin(["lines_differ", "total_missing"])]
        assert found["rule"].tolist() == [rule] * bool(rule)
        assert "6 of 60" in " ".join(found["detail"]) or rule != "lines_differ"
    columns = "money: total; when: created_at; currency: currency"
    for name, of in (("ordered_at", "created_at"), ("currency", "currency"), ("total", "total")):
        choice = choose_fields(with_values(columns, **{of: range(1, COUNT)}), CUSTOMERS)
        assert details(choice, f"{name}_missing") == [
            f"{name}: {of} has a value in 59 of 60 orders"
        ]
        missing_rules = [rule for rule in choice.findings["rule"] if rule.endswith("_missing")]
        assert missing_rules == [f"{name}_missing"]
    for count, factor, chosen, differs in (
        (3, 1.1, "total", False), (4, 1.1, "total", True), (30, 2.1, "total", True), (31, 0.4, None, False),
        (31, 2.1, None, False),  # most orders are far from the other column: no line says which one is right
    ):  # fmt: skip
        rows = orders("money: total amount")
        rows["amount"] = rows["amount"].where(rows.index >= count, rows["amount"] * factor)
        choice = choose_fields(rows, CUSTOMERS)
        assert (choice.fields.total, bool(details(choice, "totals_differ"))) == (chosen, differs), (
            count,
            factor,
        )


def test_a_column_of_the_name_of_totals_that_has_the_number_of_pieces_is_no_total() -> None:
    rows = orders("number: total")
    lines = rows[["id", "total"]].rename(columns={"id": "order_id", "total": "quantity"})
    choice = choose_fields(rows, CUSTOMERS, lines=lines.assign(price=12.5))
    assert choice.fields.total is None
    assert details(choice, "field_disputed")[0].startswith("total: total is the number of pieces")


def test_totals_before_and_after_refunds_are_a_question_however_few_were_refunded() -> None:
    for refunded, after in ((0, 0.0), (2, 0.0), (2, 0.5), (6, 0.0)):
        rows = orders("money: total_price current_total_price")
        is_refunded = rows.index < refunded
        changed = rows["current_total_price"] * after
        rows["current_total_price"] = rows["current_total_price"].where(~is_refunded, changed)
        (asked,) = [
            one
            for one in choose_fields(rows, CUSTOMERS).questions
            if one.id == FIELD_QUESTIONS["total"]
        ]
        expected = "assumed" if refunded else "proven"
        assert (asked.state, asked.value) == (expected, "total_price")


def test_totals_in_hundredths_are_proven_by_lines_and_stay_so_without_them() -> None:
    rows = orders("id: total amount")
    lines = frame(
        {"order_id": TEXT, "quantity": BIGINT, "price": pa.float64()},
        [{"order_id": f"o{n}", "quantity": 1, "price": (n + 1) / 100 + (n == 7)} for n in NUMBERS],
    )
    choice = choose_fields(rows.drop(columns="amount"), CUSTOMERS, lines=lines)
    in_cents = (choice.fields.is_in_cents, choice.lines.is_in_cents)
    assert in_cents == (True, False), "the lines have units"
    with_decimals = rows.drop(columns="amount").assign(total=rows["total"] + 0.1)
    assert not choose_fields(with_decimals, CUSTOMERS, lines=lines).fields.is_in_cents
    assert {"total_in_cents", "lines_differ"} <= set(choice.findings["rule"])
    assumed = {"total": "total", "unit": "cents"}
    as_amounts = lines.assign(price=lines["price"] * 100)
    amounts = choose_fields(rows, CUSTOMERS, assumed=assumed, lines=as_amounts)
    assert amounts.fields.is_in_cents, "an assumption stays in force where it is contradicted"
    assert "total: total was in hundredths and is not any more" in details(amounts, "field_changed")
    for name, expected in (("total", True), ("amount", False)):
        assumed = {"total": name, "unit": "cents"}
        choice = choose_fields(rows, CUSTOMERS, {"total": "total"}, assumed)
        assert choice.fields.is_in_cents is expected


def amounts(values: Sequence[int], currency: str) -> pd.DataFrame:
    """Orders with whole totals."""
    rows = orders("id: total; currency: currency")
    rows["total"] = pd.Series(values, rows.index, dtype=rows["total"].dtype)
    rows["currency"] = rows["currency"].where(rows.index < 0, currency)
    return rows


PRICES = [1999 + 850 * (n % 7) for n in NUMBERS]


@pytest.mark.parametrize(
    ("values", "currency", "state"),
    [
        (PRICES, "EUR", "open"),
        (PRICES, "usd", "open"),
        (PRICES, "JPY", "proven"),  # there are no cents of a yen
        (PRICES, "CLP", "proven"),
        (PRICES, "COP", "proven"),  # whole in practice
        (PRICES, "XYZ", "open"),  # no currency: nothing says that it has no cents
        ([10 * n for n in NUMBERS], "EUR", "proven"),  # small: a shop with whole prices
        ([5000] * COUNT, "EUR", "proven"),  # hundreds of a unit, as units are written
    ],
)
def test_totals_that_look_like_cents_are_asked_and_not_used(
    values: list[int], currency: str, state: str
) -> None:
    """Stripe and Medusa write cents, and the prices of the lines as well."""
    rows = amounts(values, currency)
    lines = rows[["id", "total"]].rename(columns={"id": "order_id", "total": "unit_price"})
    for of_lines in (None, lines.assign(quantity=1)):
        choice = choose_fields(rows, CUSTOMERS, lines=of_lines)
        unit = next(one for one in choice.questions if one.id == UNIT)
        assert (unit.state, choice.fields.total) == (state, None if state == "open" else "total")
        assert ("in units or in cents" in choice.unknown.get("total", "")) == (state == "open")
    answered = choose_fields(rows, CUSTOMERS, answered={UNIT: Answer("cents", "x", NIGHT)})
    assert answered.fields.is_in_cents
    assert details(answered, "field_changed") == []
    with_decimals = lines.assign(quantity=1, unit_price=lines["unit_price"] / 7)
    shown = choose_fields(rows, CUSTOMERS, lines=with_decimals)
    assert shown.fields.total == "total", "the platform writes decimals"
    of_0_3 = choose_fields(rows, CUSTOMERS, assumed={"total": "total", "unit": "units"})
    assert (of_0_3.fields.total, details(of_0_3, "field_changed")) == ("total", [])


def test_few_totals_that_look_like_cents_are_assumed_to_be_units_and_in_question() -> None:
    rows = amounts(PRICES, "EUR")
    choice = choose_fields(rows.head(19), CUSTOMERS)
    unit = next(one for one in choice.questions if one.id == UNIT)
    assert (unit.state, unit.value, choice.fields.total) == ("assumed", "units", "total")
    assert "19 of 19 amounts have no decimals" in unit.evidence.choice("cents").evidence


def test_a_name_that_says_cents_proves_them() -> None:
    rows = amounts(PRICES, "EUR").rename(columns={"total": "total_cents"})
    choice = choose_fields(rows, CUSTOMERS)
    assert (choice.fields.total, choice.fields.is_in_cents) == ("total_cents", True)


def test_the_currency_beside_the_total_is_preferred_and_that_of_the_buyer_is_asked() -> None:
    columns = "money: total__gross__amount; currency: currency total__gross__currency"
    assert choose_fields(orders(columns), CUSTOMERS).fields.currency == "total__gross__currency"
    rows = orders("money: total; currency: presentment_currency")
    choice = choose_fields(rows, CUSTOMERS)
    asked = {one.id: one.state for one in choice.questions}
    assert (choice.fields.currency, asked[FIELD_QUESTIONS["currency"]]) == (None, "open")
    both = rows.assign(currency=rows["presentment_currency"].where(rows.index < 30, "USD"))
    choice = choose_fields(both, CUSTOMERS)
    asked = {one.id: one.state for one in choice.questions}
    assert (choice.fields.currency, asked[FIELD_QUESTIONS["currency"]]) == ("currency", "assumed")
    unknown = rows.rename(columns={"presentment_currency": "currency"})
    unknown["currency"] = unknown["currency"].where(unknown.index < 0, "XYZ")
    assert choose_fields(unknown, CUSTOMERS).fields.currency is None


@pytest.mark.parametrize("texts", [("S/", "US$"), ("EUR", "€"), ("EUR", "USD", "USD", None)])
def test_totals_beside_different_words_for_a_currency_are_not_added_up(
    texts: Sequence[str | None],
) -> None:
    rows = orders("money: total; currency: currency")
    values = pd.Series([texts[n % len(texts)] for n in range(len(rows))], rows.index)
    rows["currency"] = values.astype(rows["currency"].dtype)
    choice = choose_fields(rows, CUSTOMERS)
    states = {one.id: one.state for one in choice.questions}
    id_of = FIELD_QUESTIONS["currency"]
    assert (choice.fields.currency, states[id_of]) == ("currency", "assumed")
    none = {id_of: Answer("none", "x", NIGHT)}
    assert choose_fields(rows, CUSTOMERS, answered=none).fields.currency is None


def test_a_rate_beside_the_currency_is_a_question_and_one_currency_an_answer() -> None:
    rows = orders("money: total; text: currency_value; currency: currency_code")
    id_of = FIELD_QUESTIONS["currency"]

    def asked(**answered: Answer) -> tuple[str, str | None, str]:
        choice = choose_fields(rows, CUSTOMERS, answered=answered)
        one = next(one for one in choice.questions if one.id == id_of)
        return one.state, choice.fields.currency, one.evidence.choices[0].evidence

    state, used, words = asked()
    assert (state, used) == ("assumed", "currency_code")
    assert "currency_value is not 1 in 60 of 60 orders" in words
    answer = Answer("none", "x", NIGHT)
    assert asked(**{id_of: answer})[:2] == ("answered", None)
    rows["currency_value"] = rows["currency_value"].where(rows.index < 0, "1.00000000")
    assert asked()[:2] == ("proven", "currency_code")


def test_tax_and_shipping_are_used_where_answered_and_asked_of_nobody() -> None:
    rows = orders("money: total; four: total_tax shipping_total")
    choice = choose_fields(rows, CUSTOMERS)
    assert (choice.fields.tax, choice.fields.shipping) == (None, None)
    assert not {"reconcile.order_tax", "reconcile.order_shipping"} & {
        one.id for one in choice.questions
    }
    answered = {"reconcile.order_tax": Answer("total_tax", "x", NIGHT)}
    choice = choose_fields(rows, CUSTOMERS, answered=answered)
    assert (choice.fields.tax, set(choice.charges)) == ("total_tax", {"tax"})
    gone = choose_fields(rows.drop(columns="total_tax"), CUSTOMERS, answered=answered)
    assert "total_tax is gone" in next(
        one.reason for one in gone.questions if one.id == "reconcile.order_tax"
    )


def test_a_time_that_only_carts_lack_is_a_question() -> None:
    rows = with_values("when: created_at; offset: completed_at", completed_at=range(40))
    asked = {one.id: one for one in choose_fields(rows, CUSTOMERS).questions}
    time = asked[FIELD_QUESTIONS["ordered_at"]]
    assert (time.state, time.value) == ("assumed", "created_at")
    assert [one.value for one in time.evidence.choices] == ["created_at", "completed_at"]


def test_totals_that_differ_in_few_orders_are_a_question() -> None:
    rows = orders("money: total_price current_total_price")
    rows["current_total_price"] = rows["total_price"].where(rows.index != 30, 1.0)
    choice = choose_fields(rows, CUSTOMERS)
    asked = {one.id: (one.state, one.value) for one in choice.questions}
    assert asked[FIELD_QUESTIONS["total"]] == ("assumed", "total_price")


def test_columns_of_values_that_fit_are_offered_where_no_name_is_known() -> None:
    columns = "money: totped paid_value; when: fecped sent_on; code: codcli; other: note"
    choice = choose_fields(orders(columns), CUSTOMERS)
    offered = {
        one.id: [(choice.value, choice.evidence) for choice in one.evidence.choices]
        for one in choice.questions
    }
    assert offered[FIELD_QUESTIONS["total"]] == [
        ("paid_value", "20 of 20 are decimal numbers; such as 0.5, 1.5, 2.5"),
        ("totped", "20 of 20 are decimal numbers; such as 0.5, 1.5, 2.5"),
    ]
    assert [value for value, _ in offered[FIELD_QUESTIONS["ordered_at"]]] == ["sent_on", "fecped"]
    assert [value for value, _ in offered[FIELD_QUESTIONS["customer_id"]]] == ["codcli"]
    assert not choice.fields.columns(), "no name, no proposal"


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("invoice_date", "ordered_at"), ("order_tms", "ordered_at"), ("data_pedido", "ordered_at"),
        ("bestelldatum", "ordered_at"), ("date_commande", "ordered_at"), ("data_ordine", "ordered_at"),
        ("gesamtbetrag", "total"), ("montant_total", "total"), ("importo_totale", "total"),
    ],
)  # fmt: skip
def test_names_of_more_systems_and_languages_are_proposed(name: str, field: str) -> None:
    kind = "money" if field == "total" else "when"
    choice = choose_fields(orders(f"{kind}: {name}"), CUSTOMERS)
    assert choice.fields.columns() == {field: name}


def test_orders_no_longer_listed_prove_a_notation_and_do_not_choose_a_column() -> None:
    def with_missing(rows: pd.DataFrame) -> pd.DataFrame:
        gone = [datetime(2026, 1, 1, tzinfo=UTC) if n < COUNT // 2 else None for n in NUMBERS]
        return rows.assign(
            _missing_since=pd.Series(gone, rows.index, dtype=rows["_missing_since"].dtype)
        )

    half, rest = range(30), range(30, COUNT)
    rows = with_values(
        "money: total amount; text: grand_total", total=rest, amount=half, grand_total=half
    )
    choice = choose_fields(with_missing(rows), CUSTOMERS)
    assert (choice.fields.total, choice.evidence["total"]) == (
        "total",
        "30 of 30 are decimal numbers",
    )
    assert {choice.evidence[name] for name in ("amount", "grand_total")} == {
        "0 of 30 are decimal numbers"
    }
    rows = with_missing(orders("text: total"))
    rows["total"] = rows["total"].where(rows.index < 30, "1.234")
    choice = choose_fields(rows, CUSTOMERS)
    assert (choice.fields.total, choice.amounts.notation) == ("total", POINT)


def test_texts_with_three_decimals_prove_no_total() -> None:
    for other, chosen in (("12.500", None), ("12.50", "total")):
        rows = orders("other: total")
        rows["total"] = pd.Series(["1.234", other] * 30, dtype=rows["total"].dtype)
        proposal = choose_fields(rows, CUSTOMERS)
        assert proposal.fields.total == chosen
        assert chosen or proposal.evidence["total"] == "texts such as 1.234, thousands or decimals"


CANCELLING: Final[dict[Witness, tuple[str, ...]]] = {
    "status": ("CANCELLED", "annulée", "Storniert", "Rechazado", "refunded", "Cancelled - refund pending", "X-VOIDED"),
    "payment": ("voided",), "flag": ("true", "Sí", "1"), "time": ("2026-01-31",),
}  # fmt: skip
OTHERS: Final[dict[Witness, tuple[str, ...]]] = {
    "status": ("CANCELLATION_REJECTED", "refund pending", "window-to-cancel", "avoid", "partially refunded",
        "No anulado", "uncancelled", "cancelrequested"),
    "payment": ("REJECTED",), "flag": ("false",), "time": ("0000-00-00 00:00:00",),
}  # fmt: skip


def test_words_of_what_is_requested_refused_or_partial_do_not_cancel() -> None:
    for words, expected in ((CANCELLING, True), (OTHERS, False)):
        for kind, of_kind in words.items():
            assert [word for word in of_kind if means_cancelled(word, kind) != expected] == []


def test_only_columns_named_after_a_cancellation_or_status_are_related() -> None:
    names = (
        "is_cancelled", "cancelled_at", "fecha_anulacion", "state", "financial_status", "status", "cancel_reason",
        "cancellation_requested_at", "customer__is_cancelled", "order__voided", "return_address", "updated_at",
        "is_test", "test", "test_name", "situacao", "order_tags", "customer__tags",
    )  # fmt: skip
    assert related_columns(names, "status") == {
        "is_cancelled": "flag", "cancelled_at": "time", "fecha_anulacion": "time", "state": "status",
        "financial_status": "payment", "order__voided": "flag", "is_test": "test", "test": "test", "situacao": "status",
        "order_tags": "tags",
    }  # fmt: skip


def read(
    values: Mapping[str, Sequence[str | None]],
    setting: tuple[str, ...] | None = None,
    answered: Mapping[str, str] = MappingProxyType({}),
) -> tuple[list[str], dict[str, int]]:
    words = {name: {word for word in of if word is not None} for name, of in values.items()}
    known = StatusEvidence("status", tuple(words.pop("status")), cancelled=folded(setting))
    classes = classes_in_force(known, {**proposed_classes(known, {}, {}), **answered}, None)
    found = Cancellation.of("status", words, is_status_alone=setting is not None)
    texts: dict[str, pd.Series[Any]] = {
        name: column(pa.array(of, pa.string())) for name, of in values.items()
    }
    status_class, contrary = found.with_classes(classes).read(texts, texts["status"])
    return status_class.tolist(), dict(contrary)


def test_any_column_cancels_and_those_that_contradict_it_are_counted() -> None:
    values: dict[str, list[str | None]] = {
        "status": ["CANCELLED", "paid", "paid", None],
        "cancelled_at": ["2026-01-01", "2026-01-01", None, None],
        "is_cancelled": ["true", "true", "false", "false"],
        "financial_status": ["paid", "paid", "paid", "refunded"],
        "state": ["open", "open", "closed", "open"],  # says it of no order, so it contradicts none
    }
    assert read(values) == (["cancelled", "cancelled", "sale", "refunded"], {"status": 1})
    del values["is_cancelled"], values["cancelled_at"]
    assert read(values) == (["cancelled", "sale", "sale", "refunded"], {})


def test_the_values_of_the_setting_alone_decide() -> None:
    values = {"status": ["9", "CANCELLED", "5"], "is_cancelled": ["false", "true", "false"]}
    assert read(values, ("9",)) == (["cancelled", "sale", "sale"], {"is_cancelled": 2})


def test_a_test_is_no_sale_unless_an_answer_says_so() -> None:
    values: dict[str, list[str | None]] = {
        "status": ["paid", "cancelled", "paid", "7", "8"],
        "test": ["true", "true", "false", "true", None],
    }
    assert read(values)[0] == ["test", "test", "sale", "test", "unknown"]
    assert read(values, answered={"test: true": "sale"})[0][0] == "sale"


def test_a_tag_says_that_an_order_is_a_test_unless_an_answer_says_otherwise() -> None:
    values: dict[str, list[str | None]] = {
        "status": ["paid"] * 7,
        "tags": ['["paid","test_order"]', "vip, Test", '["latest"]', "test drive", "1", "x", None],
    }
    assert read(values)[0] == ["test", "test", *["sale"] * 5]
    assert read(values, answered={"tags: test": "sale"})[0] == ["sale"] * 7
    assert "tags" not in Cancellation.of("status", {"tags": {"vip", "true"}}).witnesses


def test_a_column_of_refunds_says_that_an_order_is_refunded() -> None:
    values: dict[str, list[str | None]] = {
        "status": ["paid", "paid", "8"],
        "is_refunded": ["true", "false", "true"],
    }
    assert read(values) == (["refunded", "sale", "refunded"], {})
    values = {"status": ["refunded", "refunded"], "cancelled_at": ["2026-01-01", None]}
    assert read(values)[0] == ["cancelled", "refunded"]
