"""Fields of order lines are found by name, asked where several fit, and a discount counts as totals and values show."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final

import pandas as pd
import pyarrow as pa
import pytest

from orderbridge.pipelines.reconcile.orders.lines import RawLines, read_lines
from orderbridge.transforms.frames import BIGINT, MONEY, TEXT, frame
from orderbridge.transforms.orders.fields import LineUnits
from orderbridge.transforms.orders.line_discounts import (
    DISCOUNT_UNIT,
    DiscountUnit,
    discount_question,
    line_amounts,
)
from orderbridge.transforms.orders.line_fields import LINE_QUESTIONS, LineChoice, choose_line_fields
from orderbridge.transforms.orders.total_candidates import SUM_OF_LINES
from orderbridge.transforms.questions import ANY_RIVAL, ASSUMPTION, Answer
from orderbridge.transforms.values.keys import BOOKKEEPING
from tests.pipelines.reconcile.in_parts import NIGHT, build_of, choose_fields, order_lines
from tests.transforms.rows import values
from tests.transforms.test_order_fields import COUNT, CUSTOMERS, NUMBERS, VALUES
from tests.transforms.test_order_fields import orders as orders_of

NO_ANSWERS: Final[Mapping[str, Answer]] = MappingProxyType({})


def lines_of(columns: Mapping[str, str]) -> pd.DataFrame:
    """A line of each of sixty orders, with columns by their kind in `VALUES`."""
    schema = {"order_id": TEXT, "position": BIGINT}
    schema |= {name: VALUES[kind][0] for name, kind in columns.items()}
    rows = [
        {
            "order_id": f"o{n}",
            "position": 1,
            **{name: VALUES[kind][1][n] for name, kind in columns.items()},
        }
        for n in NUMBERS
    ]
    return frame({**schema, **BOOKKEEPING}, rows)


def chosen(lines: pd.DataFrame, answers: Mapping[str, Answer] = NO_ANSWERS) -> LineChoice:
    with build_of(None, raw__orders__lines=lines) as build:
        return choose_line_fields(RawLines.of(build, "orders__lines"), answers)


@pytest.mark.parametrize(
    ("field", "names"),
    [
        ("product", "sku product_id track_id product_number stock_code artikelnummer produto_id codice_articolo"),
        ("product_name", "name track__name bezeichnung designation nome descrizione"),
        ("quantity", "quantity quantity_ordered quantidade menge quantite quantita qtd"),
        ("unit_price", "price price_each list_price unit_amount einzelpreis prix_unitaire prezzo_unitario preco"),
        ("line_total", "line_total sales price_subtotal gesamtpreis montant importo valor_total"),
        ("discount", "discount discount_amount desconto rabatt remise sconto"),
    ],
)  # fmt: skip
def test_names_of_many_systems_and_languages_are_known(field: str, names: str) -> None:
    kind = "other" if field in ("product", "product_name") else "money"
    for name in names.split():
        assert chosen(lines_of({name: kind})).fields.columns() == {field: name}


def test_an_id_that_is_zero_on_every_line_is_no_product() -> None:
    """WooCommerce writes `variation_id: 0` for a product without variations."""
    lines = lines_of({"variation_id": "number", "product_id": "number"})
    assert chosen(lines).fields.product == "variation_id"
    without = lines.assign(variation_id=lines["variation_id"] * 0)
    assert chosen(without).fields.product == "product_id"


def test_an_amount_that_comes_beside_quantity_and_price_is_used_by_an_answer_alone() -> None:
    lines = lines_of({"quantity": "number", "price": "money", "sales": "money"})
    assert chosen(lines).fields.line_total == "sales"
    earlier = {
        LINE_QUESTIONS["quantity"]: Answer("quantity", ASSUMPTION),
        LINE_QUESTIONS["unit_price"]: Answer("price", ASSUMPTION),
    }
    choice = chosen(lines, earlier)
    assert choice.fields.columns() == {"quantity": "quantity", "unit_price": "price"}
    (asked,) = (one for one in choice.questions if one.id == LINE_QUESTIONS["line_total"])
    assert (asked.state, asked.evidence.proposal, asked.is_confirmable) == ("open", "sales", True)
    given = Answer("sales", "answers.toml")
    choice = chosen(lines, {**earlier, LINE_QUESTIONS["line_total"]: given})
    assert choice.fields.line_total == "sales"


def test_fields_of_lines_that_no_name_shows_are_asked_found_and_answered() -> None:
    lines = lines_of({"pieces": "number", "cost_each": "money", "what": "other"})
    choice = chosen(lines)
    offered = {one.id: [two.value for two in one.evidence.choices] for one in choice.questions}
    assert offered == {
        LINE_QUESTIONS["product"]: ["cost_each", "pieces", "what"],
        LINE_QUESTIONS["quantity"]: ["cost_each", "pieces", "one"],
        LINE_QUESTIONS["unit_price"]: ["cost_each", "pieces"],
    }
    assert set(choice.findings["rule"]) == {"field_not_found"}
    assert set(choice.findings["severity"]) == {"info"}
    given = {"product": "what", "quantity": "pieces", "unit_price": "cost_each"}
    answers = {LINE_QUESTIONS[name]: Answer(value, "x", NIGHT) for name, value in given.items()}
    answered = chosen(lines, answers)
    assert (answered.fields.columns(), len(answered.findings)) == (given, 0)


def test_lines_without_a_quantity_are_one_piece_each_where_somebody_says_so() -> None:
    lines = lines_of({"price": "money"})
    asked = {one.id: one for one in chosen(lines).questions}[LINE_QUESTIONS["quantity"]]
    assert (asked.state, asked.value, asked.evidence.proposal) == ("open", None, "one")
    made = orders_of("money: total").rename(columns={"id": "order_id"})
    unknown = dict.fromkeys(("ordered_at", "status_class", "is_sale", "is_cancelled"))
    made = made.assign(is_missing=False, customer_id="1", currency="EUR", **unknown)
    for answers, amount in (({}, None), ({asked.id: Answer("one", "x", NIGHT)}, Decimal("0.5"))):
        table, _ = order_lines(lines, made, answers)
        assert values(table, "line_amount")[0] == amount


def test_two_columns_of_amounts_that_differ_are_a_question() -> None:
    lines = lines_of({"price": "money", "list_price": "money", "quantity": "number"})
    states = {one.id: one.state for one in chosen(lines).questions}
    assert set(states.values()) <= {"proven", "open"}, "equal columns leave no choice"
    other = lines.assign(list_price=lines["list_price"] + 1)
    states = {one.id: one.state for one in chosen(other).questions}
    assert states[LINE_QUESTIONS["unit_price"]] == "assumed"


def test_of_two_prices_the_one_with_which_orders_come_to_their_totals_is_proposed() -> None:
    """Net and gross prices; most totals have shipping, and add up with neither."""
    lines = lines_of({"product_price": "money", "quantity": "number"})
    lines = lines.assign(unit_price_tax_incl=lines["product_price"] * 1.21)
    goods = (lines["unit_price_tax_incl"] * lines["quantity"]).astype("float64").round(2)
    shipping = [0.0 if n % 4 == 0 else 5.9 for n in NUMBERS]
    totals = pd.DataFrame({"total": goods.to_numpy() + shipping}, index=lines["order_id"])
    pinned = Answer("product_price", ASSUMPTION, NIGHT, rival=ANY_RIVAL)
    key = LINE_QUESTIONS["unit_price"]
    for answers, price in (({}, "unit_price_tax_incl"), ({key: pinned}, "product_price")):
        with build_of(None, raw__orders__lines=lines) as build:
            choice = choose_line_fields(RawLines.of(build, "orders__lines"), answers, totals)
        asked = next(one for one in choice.questions if one.id == key)
        assert (asked.state, asked.value) == ("assumed", price)
        words = {one.value: one.evidence for one in asked.evidence.choices}
        assert (
            "with it the lines of 15 of 60 orders add up to the total"
            in words["unit_price_tax_incl"]
        )


AMOUNTS: Final = {"quantity": "2", "unit_price": "50", "discount": "0.15"}


@pytest.mark.parametrize(
    ("unit", "line", "amount"),
    [
        ("included", {}, "100"), ("amount", {}, "99.85"), ("amount_each", {}, "99.7"), ("fraction", {}, "85"),
        ("percent", {"discount": "15"}, "85"), ("percent", {"discount": "12.5"}, "87.5"),
        ("fraction", {"line_total": "80"}, "68"),  # the line's own amount is less its discount
        (None, {}, None), (None, {"discount": "0"}, "100"), (None, {"discount": None}, "100"),
        ("fraction", {"discount": "15"}, None), ("percent", {"discount": "115"}, None),  # no share
        ("fraction", {"quantity": "1000000000"}, None),
    ],
)  # fmt: skip
def test_a_discount_is_taken_off_as_it_is_read(
    unit: DiscountUnit | None, line: dict[str, str | None], amount: str | None
) -> None:
    given = {**AMOUNTS, **line}
    row = {name: None if text is None else Decimal(text) for name, text in given.items()}
    lines = frame(dict.fromkeys(given, MONEY), [row])
    expected = None if amount is None else Decimal(amount)
    assert line_amounts(lines, unit).tolist() == [pd.NA if expected is None else expected]


def discounted(discounts: list[str], **more: str) -> pd.DataFrame:
    """Lines of 2 × 50, one of each order, with discounts in turn."""
    schema = {"order_id": TEXT, **dict.fromkeys([*AMOUNTS, *more], MONEY)}
    rows: list[dict[str, Any]] = []
    for n in range(12):
        row = {**AMOUNTS, "discount": discounts[n % len(discounts)], **more}
        amounts = {name: Decimal(text) for name, text in row.items()}
        rows.append({"order_id": f"o{n}", **amounts})
    return frame(schema, rows)


@pytest.mark.parametrize(
    ("name", "discounts", "total", "unit", "state"),
    [
        # as the totals of the orders show
        ("discount", ["0.2"], 80.0, "fraction", "proven"), ("discount", ["20"], 80.0, "amount", "assumed"),
        ("discount_pct", ["20"], 80.0, "percent", "assumed"),  # an amount of 20 is the same: the name decides
        ("discount", ["5", "5"], 90.0, "amount_each", "proven"), ("discount", ["5", "8"], 95.0, None, "open"),
        ("discount_percent", ["20", "0"], 100.0, "included", "proven"),
        # without a total: as values and names show
        ("discount", ["0.2", "0"], None, "fraction", "assumed"), ("discount_pct", ["20"], None, "percent", "assumed"),
        ("discount_amount", ["20"], None, "amount", "assumed"), ("discount", ["20"], None, None, "open"),
    ],
)  # fmt: skip
def test_how_a_discount_is_read_is_shown_by_totals_or_values_or_asked(
    name: str, discounts: list[str], total: float | None, unit: str | None, state: str
) -> None:
    lines = discounted(discounts)
    columns = {} if total is None else {"total": [total] * 12}
    totals = pd.DataFrame(columns, index=lines["order_id"])
    asked = discount_question(name, lines, totals, None)
    assert asked is not None
    assert asked.value == unit
    assert asked.state == state
    of_0_3 = Answer("included", ASSUMPTION, NIGHT, rival=ANY_RIVAL)
    kept = discount_question(name, lines, totals, of_0_3)
    assert kept is not None
    assert (kept.value, kept.state == "contradicted") == ("included", False)


def test_own_amounts_of_lines_have_the_discount_unless_they_are_quantity_and_price() -> None:
    nothing = pd.DataFrame(index=discounted(["0"])["order_id"])
    for own, unit in (("80", "included"), ("100", "fraction")):
        asked = discount_question("discount", discounted(["0.2"], line_total=own), nothing, None)
        assert asked is not None
        assert asked.value == unit
    assert discount_question("discount", discounted(["0"]), nothing, None) is None


def test_discounts_in_an_array_are_a_column_of_the_line() -> None:
    lines = lines_of({"price": "money", "quantity": "number"})
    schema = {"order_id": TEXT, "lines_position": BIGINT, "position": BIGINT, "amount": TEXT}
    rows = [
        {"order_id": f"o{n}", "lines_position": 1, "position": k, "amount": "0.25"}
        for n in NUMBERS
        for k in (1, 2)
    ]
    rows[1]["amount"] = "x"
    child = frame({**schema, **BOOKKEEPING}, rows)
    tables = {"raw__orders__lines": lines, "raw__orders__lines__discount_allocations": child}
    with build_of(None, **tables) as build:
        raw = RawLines.of(build, "orders__lines")
        choice = choose_line_fields(raw, {})
        assert choice.fields.discount == "discount_allocations__amount"
        sample = raw.sample({"discount": "discount_allocations__amount"})
        read = read_lines(raw, choice, LineUnits("amount"))
        amounts = build.build.execute(f"SELECT line_amount FROM {read.made}").fetchall()
    unknown, *known = sample["discount"]
    assert unknown == "not readable"
    assert [float(text) for text in known] == [0.5] * (COUNT - 1)
    assert [n for n, (amount,) in enumerate(amounts) if amount is None] == [0]
    assert read.counts["discount unread"] == 1


def test_the_sum_of_the_lines_is_proposed_as_the_total_and_used_once_it_is_answered() -> None:
    rows = orders_of("when: created_at")
    lines = lines_of({"price": "money", "quantity": "number"})
    choice = choose_fields(rows, CUSTOMERS, lines=lines)
    total = next(one for one in choice.questions if one.id == "reconcile.order_total")
    assert (total.state, total.value, total.evidence.proposal) == ("open", None, SUM_OF_LINES)
    answered = {total.id: Answer(SUM_OF_LINES, "x", NIGHT)}
    choice = choose_fields(rows, CUSTOMERS, lines=lines, answered=answered)
    assert choice.fields.total == SUM_OF_LINES
    without = choose_fields(rows, CUSTOMERS, answered=answered)
    assert without.fields.total is None
    assert "no line has an amount" in " ".join(without.findings["detail"])


def test_amounts_of_lines_in_cents_are_asked_and_not_used_where_no_total_shows_it() -> None:
    lines = lines_of({"quantity": "number"})
    prices = pd.Series([1999 + 850 * (n % 7) for n in NUMBERS], lines.index)
    lines = lines.assign(unit_price=prices.astype(pd.ArrowDtype(pa.int64())), quantity=1)
    rows = orders_of("currency: currency")
    choice = choose_fields(rows, CUSTOMERS, lines=lines)
    assert not choice.lines.is_known
    answered = {"reconcile.order_total_unit": Answer("cents", "x", NIGHT)}
    choice = choose_fields(rows, CUSTOMERS, lines=lines, answered=answered)
    assert (choice.lines.is_known, choice.lines.is_in_cents) == (True, True)
    assert DISCOUNT_UNIT not in {one.id for one in choice.questions}
