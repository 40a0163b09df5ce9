"""The lines of the orders: products, quantities and amounts, read from whatever columns the raw lines have.

In: those columns, part by part. Out: our columns of each line, and findings. Their order is joined to the lines where
they are written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import pandas as pd
import pyarrow as pa

from orderbridge.transforms.findings import (
    FINDINGS,
    Part,
    combine_findings,
    rule_findings,
    table_finding,
    to_answer,
)
from orderbridge.transforms.frames import (
    BIGINT,
    BOOLEAN,
    MONEY,
    TEXT,
    TIMESTAMP,
    Column,
    column,
    constant,
    frame,
)
from orderbridge.transforms.orders.columns import AmountEvidence, money, texts_of
from orderbridge.transforms.orders.line_discounts import DiscountUnit, line_amounts
from orderbridge.transforms.orders.line_fields import AMOUNTS, ONE, PRODUCT, LineChoice
from orderbridge.transforms.orders.line_kinds import LINE_KINDS
from orderbridge.transforms.orders.names import ORDER_NAMES
from orderbridge.transforms.orders.total_candidates import LINE_SUMS

ORDER_LINES: Final = {
    "order_id": TEXT,
    "line_number": BIGINT,
    "customer_id": TEXT,
    "ordered_at": TIMESTAMP,
    "currency": TEXT,
    "is_cancelled": BOOLEAN,
    "status_class": TEXT,
    "is_sale": BOOLEAN,
    "product": TEXT,
    "product_name": TEXT,
    "quantity": MONEY,
    "unit_price": MONEY,
    "line_total": MONEY,
    "line_discount": MONEY,
    "line_amount": MONEY,
    "line_kind": TEXT,
}
"""The columns that every order line has; those of the raw lines follow, with `raw_` before a name of ours."""
_OTHER_KINDS: Final = {"part": "are parts of another line", "no_product": "are no products"}
LINE_FIELDS: Final = {
    **dict.fromkeys(PRODUCT, TEXT),
    **dict.fromkeys(
        ("quantity", "unit_price", "line_total", "line_discount", "line_amount"), MONEY
    ),
    "line_kind": TEXT,
}
"""Those of them that are read from the raw lines. `line_amount` is what the line comes to."""


@dataclass(frozen=True, slots=True)
class LineReading:
    """How the lines are read.

    Attributes:
        amounts: what all lines prove about the notation of each field of amounts.
        is_one: each line is one piece.
        discount_unit: see `line_amounts`.
        is_unit_known: whether it is known that amounts are in units of the currency, or in cents.
    """

    amounts: Mapping[str, AmountEvidence]
    is_one: bool = False
    discount_unit: DiscountUnit | None = None
    is_unit_known: bool = True

    @classmethod
    def of(
        cls,
        choice: LineChoice,
        discount_unit: DiscountUnit | None = None,
        *,
        is_unit_known: bool = True,
    ) -> LineReading:
        """How the columns of a choice are read."""
        is_one = choice.fields.quantity == ONE
        return cls(choice.amounts, is_one, discount_unit, is_unit_known)


def lines_tables(tables: Sequence[str]) -> list[str]:
    """The child tables of the raw orders that may hold their lines (`orders__line_items`), the preferred name first."""
    return [f"orders__{name}" for name in ORDER_NAMES["lines"] if f"orders__{name}" in tables]


def lines_part(rows: pd.DataFrame, reading: LineReading) -> Part:
    """Reads any of the order lines; `rows` have the values of the columns by what they hold, and `line_kind`.

    Returns:
        The columns of `LINE_FIELDS`, in the order of the rows; no findings; counts for `lines_findings`.
    """
    read = read_amounts(rows, reading)
    counts: Counter[str] = Counter()
    for name in reading.amounts:
        given = texts_of(rows[name]).notna()
        counts[name] = int(given.sum())
        counts[f"{name} unread"] = int((given & read[name].isna()).sum())
    nothing = constant(None, rows.index, MONEY)
    made = {
        name: texts_of(rows[name]) if name in rows else constant(None, rows.index)
        for name in PRODUCT
    }
    made |= {name: read.get(name, nothing) for name in ("quantity", "unit_price", "line_total")}
    made["line_discount"] = read.get("discount", nothing)
    made["line_amount"] = nothing
    if reading.is_unit_known:
        made["line_amount"] = line_amounts(read, reading.discount_unit)
    if "discount" in read and reading.discount_unit != "included":
        is_unread = texts_of(rows["discount"]).notna() & read["discount"].isna()
        made["line_amount"] = made["line_amount"].mask(is_unread)
    made["line_kind"] = rows["line_kind"]
    return Part(pd.DataFrame(made), frame(FINDINGS), counts)


def read_amounts(rows: pd.DataFrame, reading: LineReading) -> pd.DataFrame:
    """The amounts of lines (MONEY) by field."""
    read = {name: money(rows[name], reading.amounts[name]) for name in AMOUNTS if name in rows}
    if reading.is_one:
        read["quantity"] = constant(Decimal(1), rows.index, MONEY)
    return pd.DataFrame(read, index=rows.index)


def line_sums(lines: pd.DataFrame, discount_unit: DiscountUnit | None = "included") -> pd.DataFrame:
    """What the lines of each order come to: `order_id` and the columns of `LINE_SUMS`.

    Args:
        lines: `order_id`, and MONEY by field. If one of an order comes to nothing known, so does the order.
        discount_unit: see `line_amounts`.
    """
    amounts = line_amounts(lines, discount_unit).astype("float64")
    pieces = lines["quantity"] if "quantity" in lines else constant(None, lines.index, MONEY)
    numbers = pd.DataFrame({"line_amount": amounts, "line_pieces": pieces.astype("float64")})
    sums = numbers.groupby(lines["order_id"].to_numpy(), sort=True)
    whole = sums.sum().where(sums.count().eq(sums.size(), axis=0)).round(6)
    columns = {name: column(pa.array(whole[name], from_pandas=True)) for name in LINE_SUMS}
    return pd.DataFrame({"order_id": column(pa.array(whole.index, TEXT)), **columns})


def lines_findings(
    counts: Counter[str], orphans: Column[Any], kinds: Mapping[str, int]
) -> pd.DataFrame:
    """Amounts that cannot be read, from the counts of all parts; lines without an order, by its id; and other lines.

    `kinds` are how many lines are of each kind but products.
    """
    findings = [rule_findings("order_lines", "order_missing", orphans)]
    if kinds:
        words = [f"{kinds[kind]} {_OTHER_KINDS[kind]}" for kind in _OTHER_KINDS if kind in kinds]
        detail = to_answer(f"lines: {', '.join(words)}", LINE_KINDS)
        findings.append(table_finding("order_lines", "no_products", detail))
    for name in AMOUNTS:
        if unread := counts[f"{name} unread"]:
            detail = f"{name}: {unread} of {counts[name]} values"
            findings.append(table_finding("order_lines", "amounts_unreadable", detail))
    return combine_findings(findings)
