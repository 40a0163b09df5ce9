"""The lines of the orders: products, quantities and amounts, read from whatever columns the raw lines have.

In: those columns, part by part. Out: our columns of each line, and findings. Their order is joined to the lines where
they are written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import pandas as pd
import pyarrow as pa

from orderbridge.transforms.findings import (
    FINDINGS,
    Part,
    combine_findings,
    rule_findings,
    table_finding,
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
from orderbridge.transforms.order_columns import AmountEvidence, money, texts_of
from orderbridge.transforms.order_names import LINE_NAMES, ORDER_NAMES
from orderbridge.transforms.total_candidates import LINE_SUMS

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
}
"""The columns that every order line has; those of the raw lines follow, with `raw_` before a name of ours."""
AMOUNTS: Final = ("quantity", "unit_price", "line_total")
PRODUCT: Final = ("product", "product_name")
LINE_FIELDS: Final = {**dict.fromkeys(PRODUCT, TEXT), **dict.fromkeys(AMOUNTS, MONEY)}


def lines_tables(tables: Sequence[str]) -> list[str]:
    """The child tables of the raw orders that may hold their lines (`orders__line_items`), the preferred name first."""
    return [f"orders__{name}" for name in ORDER_NAMES["lines"] if f"orders__{name}" in tables]


def line_columns(filled: Collection[str]) -> dict[str, str]:
    """The columns that hold a line's product and amounts, by what they hold: the first of their names that is filled.

    `filled` are the columns with a value of a listed order: one that the platform has renamed keeps the values of
    orders that are no longer listed.
    """
    columns = {
        field: [name for name in LINE_NAMES[field] if name in filled]
        for field in (*PRODUCT, *AMOUNTS)
    }
    return {field: names[0] for field, names in columns.items() if names}


def lines_part(rows: pd.DataFrame, amounts: Mapping[str, AmountEvidence]) -> Part:
    """Reads any of the order lines.

    `rows` have the values of the `line_columns`, by what they hold; `amounts` is what all lines prove of each.

    Returns:
        The columns of `LINE_FIELDS`, in the order of the rows; no findings; counts for `lines_findings`.
    """
    nothing = constant(None, rows.index, MONEY)
    read = {name: money(rows[name], amounts[name]) if name in rows else nothing for name in AMOUNTS}
    counts: Counter[str] = Counter()
    for name in amounts:
        given = texts_of(rows[name]).notna()
        counts[name], counts[f"{name} unread"] = (
            int(given.sum()),
            int((given & read[name].isna()).sum()),
        )
    product = {
        name: texts_of(rows[name]) if name in rows else constant(None, rows.index)
        for name in PRODUCT
    }
    return Part(pd.DataFrame({**product, **read}), frame(FINDINGS), counts)


def line_sums(lines: pd.DataFrame) -> pd.DataFrame:
    """What the lines of each order come to: `order_id` and the columns of `LINE_SUMS`.

    `lines` have `order_id` and the values of the `line_columns`, by what they hold. A line amounts to its quantity and
    price, where these are not given to its total; without either the amount of the order is null.
    """
    read = pd.DataFrame({name: money(lines[name]) for name in AMOUNTS if name in lines})
    numbers = read.astype("float64").reindex(columns=list(AMOUNTS))
    amounts = (numbers["quantity"] * numbers["unit_price"]).fillna(numbers["line_total"])
    sums = pd.DataFrame({"line_amount": amounts, "line_pieces": numbers["quantity"]}).groupby(
        lines["order_id"].to_numpy(), sort=True
    )
    whole = sums.sum().where(sums.count().eq(sums.size(), axis=0)).round(6)
    columns = {name: column(pa.array(whole[name], from_pandas=True)) for name in LINE_SUMS}
    return pd.DataFrame({"order_id": column(pa.array(whole.index, TEXT)), **columns})


def lines_findings(counts: Counter[str], orphans: Column[Any]) -> pd.DataFrame:
    """Amounts that cannot be read, from the counts of all parts; and lines without an order, by its id."""
    findings = [rule_findings("order_lines", "order_missing", orphans)]
    for name in AMOUNTS:
        if unread := counts[f"{name} unread"]:
            detail = f"{name}: {unread} of {counts[name]} values"
            findings.append(table_finding("order_lines", "amounts_unreadable", detail))
    return combine_findings(findings)
