"""What a line comes to: quantity and price, or its own amount, less the discount, which platforms write in many ways.

In: the amounts of lines by field, and the totals of their orders. Out: the amount of each line; and the evidence how a
column of discounts is read: 0.15 is a share of the amount, 15 is per cent or an amount, and some prices have it
already.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final, Literal

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from orderbridge.transforms.frames import MONEY, Column, array, column, constant
from orderbridge.transforms.questions import (
    Answer,
    Choice,
    Evidence,
    Question,
    answer_about,
    question,
)

DiscountUnit = Literal["amount", "amount_each", "fraction", "percent", "included"]
"""What a discount is: an amount of the line, or of each piece, a share of its amount, or per cent of it; or it is in
the amounts already."""
DISCOUNT_UNIT: Final = "reconcile.order_line_discount_unit"
_MEANINGS: Final[dict[DiscountUnit, str]] = {
    "amount": "an amount, taken off the line",
    "amount_each": "an amount, taken off each piece",
    "fraction": "a share of the amount, such as 0.15",
    "percent": "per cent of the amount, such as 15",
    "included": "it is in price or amount already",
}
_ORDERS_MIN: Final = 3
_SHARE_MIN: Final = 0.8
"""How many orders with a discount, and which share of them, show how it is read."""
_LINES_MIN: Final = 0.9
"""The least share of lines with a discount whose own amount is theirs with it, or without."""
_ROUNDING: Final = 0.05
_OF_PERCENT: Final = re.compile(r"percent|porcentaje|prozent|pct|rate")
_OF_AMOUNT: Final = re.compile(r"amount|total|value|importe|importo|valor|montant|betrag")
_FACTOR: Final = pa.decimal128(18, 9)
_TERM: Final = pa.decimal128(37, 9)
_PRODUCT: Final = pa.decimal128(19, 9)
_KEPT: Final = pa.decimal128(12, 9)
_HUNDREDTH: Final = pa.decimal128(3, 2)


def line_amounts(lines: pd.DataFrame, unit: DiscountUnit | None) -> Column[Any]:
    """What each line comes to (MONEY); null where that is not known.

    Args:
        lines: MONEY by field, as far as it is known: `quantity`, `unit_price`, `line_total`, `discount`.
        unit: how the discount is read; None: it is not known, so that lines with one come to nothing known.
    """
    gross = _gross(lines)
    if "discount" not in lines or unit == "included":
        return gross
    discount = array(lines["discount"])
    net = _net(array(gross), discount, lines, unit)
    has_discount = pc.fill_null(pc.not_equal(discount, 0), False)
    return column(pc.if_else(has_discount, net, array(gross)), lines.index)


def discount_question(
    name: str, lines: pd.DataFrame, totals: pd.DataFrame, answer: Answer | None
) -> Question | None:
    """The question how a column of discounts is read; None where no line has a discount.

    Args:
        name: of the column.
        lines: of some orders: `order_id`, and MONEY by field.
        totals: of these orders, with their ids as the index: columns of numbers that may be the total.
        answer: in force.
    """
    answer = answer_about(answer, name)
    is_discounted = lines["discount"].fillna(0) != 0
    if not is_discounted.any():
        return None
    some = lines[is_discounted]
    orders = lines[lines["order_id"].isin(some["order_id"])]
    counts = {unit: orders_that_add_up(orders, totals, unit) for unit in _MEANINGS}
    compared = (
        int(totals.index.isin(orders["order_id"].unique()).sum()) if len(totals.columns) else 0
    )
    shown = _shown(counts, compared)
    proposal, reason = _by_values(name, some)
    if shown and proposal not in shown:
        proposal = shown[0]
        reason = ""
    is_proven = shown == [proposal]
    choices: list[Choice] = []
    for unit, meaning in _MEANINGS.items():
        come_to = f"read so, the lines of {counts[unit]} of {compared} orders with a discount add up to the total"
        words = [meaning, come_to if compared else "", reason if unit == proposal else ""]
        choices.append(Choice(unit, "; ".join(filter(None, words))))
    choices.sort(key=lambda choice: choice.value != proposal)
    evidence = Evidence(
        DISCOUNT_UNIT,
        tuple(choices),
        proposal,
        is_proven,
        reason=f"how {name} is read is not proven",
        about=name,
    )
    return question(evidence, answer)


def _gross(lines: pd.DataFrame) -> Column[Any]:
    """The line's own amount, else quantity and price."""
    nothing = constant(None, lines.index, MONEY)
    own: Column[Any] = lines.get("line_total", nothing)
    if "quantity" not in lines or "unit_price" not in lines:
        return own
    return own.fillna(_product(lines["quantity"], lines["unit_price"]))


def _product(one: Column[Any], other: Column[Any]) -> Column[Any]:
    """The product of amounts below a billion, rounded to nine decimals; null of others."""
    made = pc.multiply(_narrow(array(one), _FACTOR), _narrow(array(other), _FACTOR))
    return column(pc.round(made, 9).cast(MONEY), one.index)


def _narrow(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Amounts as a narrower type, whose products do not overflow; null where they do not fit."""
    limit = pa.scalar(Decimal(10) ** (kind.precision - kind.scale), MONEY)
    return pc.if_else(pc.less(pc.abs(values), limit), values, None).cast(kind)


def _net(
    gross: pa.Array, discount: pa.Array, lines: pd.DataFrame, unit: DiscountUnit | None
) -> pa.Array:
    """The amounts less the discounts."""
    if unit == "amount":
        return _difference(gross, discount)
    if unit == "amount_each" and "quantity" in lines:
        return _difference(gross, array(_product(lines["quantity"], column(discount, lines.index))))
    if unit in ("fraction", "percent"):
        whole = 1 if unit == "fraction" else 100
        whole_of_each = pa.repeat(pa.scalar(Decimal(whole), MONEY), len(gross))
        return _part(gross, _difference(whole_of_each, discount), whole)
    return pa.nulls(len(gross), MONEY)


def _difference(one: pa.Array, other: pa.Array) -> pa.Array:
    return pc.subtract(_narrow(one, _TERM), _narrow(other, _TERM)).cast(MONEY)


def _part(gross: pa.Array, kept: pa.Array, whole: int) -> pa.Array:
    """Amounts less a share of them: so much is kept of a whole of 1 or of 100; null where that is no share."""
    is_share = pc.and_(
        pc.greater_equal(kept, pa.scalar(Decimal(0), MONEY)),
        pc.less_equal(kept, pa.scalar(Decimal(whole), MONEY)),
    )
    narrow = pc.if_else(is_share, kept, None).cast(_KEPT)
    made = pc.multiply(_narrow(gross, _PRODUCT), narrow)
    made = pc.multiply(made, pa.scalar(Decimal(1) / whole, _HUNDREDTH))
    return pc.round(made, 9).cast(MONEY)


def orders_that_add_up(
    lines: pd.DataFrame, totals: pd.DataFrame, unit: DiscountUnit = "included"
) -> int:
    """How many orders come to the column of totals that fits best.

    Args:
        lines: `order_id`, and MONEY by field.
        totals: columns of numbers that may be the total, with the ids of the orders as the index.
        unit: how discounts are read.
    """
    amounts = line_amounts(lines, unit).astype("float64")
    sums = amounts.groupby(lines["order_id"].to_numpy()).sum(min_count=1)
    best = 0
    for name in totals:
        values = totals[name].reindex(sums.index)
        best = max(best, int(((values - sums).abs() <= _ROUNDING).sum()))
    return best


def _shown(counts: Mapping[DiscountUnit, int], compared: int) -> list[DiscountUnit]:
    """The readings under which most orders come to their total: those of the largest count."""
    best = max(counts.values())
    if best < _ORDERS_MIN or best < _SHARE_MIN * compared:
        return []
    return [unit for unit, count in counts.items() if count == best]


def _by_values(name: str, lines: pd.DataFrame) -> tuple[DiscountUnit | None, str]:
    """How discounts are read as the lines' own amounts, the discounts and the name of their column show; and why."""
    has_own = "line_total" in lines and bool(lines["line_total"].notna().all())
    if has_own and not _is_own_gross(lines):
        return "included", "the lines have amounts of their own"
    values = lines["discount"].astype("float64").abs()
    if (values <= 1).all() and (values % 1 != 0).any():
        return "fraction", "all are between 0 and 1"
    if _OF_PERCENT.search(name):
        return "percent", f"the name of {name} says so"
    if _OF_AMOUNT.search(name):
        return "amount", f"the name of {name} says so"
    return None, ""


def _is_own_gross(lines: pd.DataFrame) -> bool:
    """Whether the lines' own amounts are quantity and price, so that a discount is still to be taken off."""
    if "quantity" not in lines or "unit_price" not in lines:
        return False
    product = _product(lines["quantity"], lines["unit_price"]).astype("float64")
    own = lines["line_total"].astype("float64")
    is_equal = (product - own).abs() <= _ROUNDING
    return bool(is_equal.sum() >= _LINES_MIN * len(lines))
