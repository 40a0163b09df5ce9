"""What customers ordered: the lines of the orders, and orders and revenue by customer.

In: the reconciled orders, the raw child table that holds their lines, the reconciled customers. Out: one row per line,
and one row per customer. Amounts of different currencies are never added up, and cancelled orders do not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import pandas as pd
import pyarrow.compute as pc

from transforms.dates import OFFSET_MAX
from transforms.findings import combine_findings, rule_findings, table_finding
from transforms.frames import (
    BIGINT,
    BOOLEAN,
    MONEY,
    TEXT,
    TIMESTAMP,
    Column,
    array,
    column,
    constant,
    from_arrow,
    joined_text,
    look_up,
    to_arrow,
    typed,
)
from transforms.order_fields import money, texts_of
from transforms.order_names import LINE_NAMES, ORDER_NAMES
from transforms.orders import is_cancelled, with_raw_columns
from transforms.upserts.json_columns import strings

ORDER_LINES: Final = {
    "order_id": TEXT,
    "line_number": BIGINT,
    "customer_id": TEXT,
    "ordered_at": TIMESTAMP,
    "currency": TEXT,
    "is_cancelled": BOOLEAN,
    "product": TEXT,
    "quantity": MONEY,
    "unit_price": MONEY,
    "line_total": MONEY,
}
"""The columns that every order line has; those of the raw lines follow, with `raw_` before a name of ours."""
CUSTOMER_ORDERS: Final = {
    "customer_id": TEXT,
    "order_count": BIGINT,
    "cancelled_count": BIGINT,
    "currency": TEXT,
    "revenue": MONEY,
    "revenue_by_currency": TEXT,
    "first_ordered_at": TIMESTAMP,
    "last_ordered_at": TIMESTAMP,
    "is_active_30_days": BOOLEAN,
    "is_active_90_days": BOOLEAN,
    "is_active_365_days": BOOLEAN,
}
"""`currency` and `revenue` are null where a customer ordered in several currencies; `revenue_by_currency` is JSON text
of the sum by currency (`""` where an order names none). Days count back from the instant of the run; whether a customer
is active is null where only an order without a date may decide it."""
_AMOUNTS: Final = ("quantity", "unit_price", "line_total")
_ACTIVE_DAYS: Final = (30, 90, 365)


def lines_tables(tables: Sequence[str]) -> list[str]:
    """The child tables of the raw orders that may hold their lines (`orders__line_items`), the preferred name first."""
    return [f"orders__{name}" for name in ORDER_NAMES["lines"] if f"orders__{name}" in tables]


def order_lines(lines: pd.DataFrame, orders: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The lines of the orders, with customer, date and currency of their order.

    Args:
        lines: `order_id`, `position` and any others, of the raw child table.
        orders: reconciled; `order_id`, `customer_id`, `ordered_at`, `order_status`, `currency`, `is_missing`.

    Returns:
        The columns of `ORDER_LINES` and those of the lines, by order and line; findings about lines without an
        order and amounts that cannot be read.
    """
    lines = lines.sort_values(["order_id", "position"], ignore_index=True, kind="stable")
    own = look_up(lines["order_id"], orders.assign(is_cancelled=is_cancelled(orders)), "order_id")
    is_orphan = own["order_id"].isna()
    findings = [rule_findings("order_lines", "order_missing", lines["order_id"], is_orphan)]
    listed = lines[~own["is_missing"].fillna(True)]
    values = {field: _first_column(lines, field, listed if len(listed) else lines) for field in ("product", *_AMOUNTS)}
    result = pd.DataFrame(
        {
            "order_id": lines["order_id"],
            "line_number": lines["position"],
            **{name: own[name] for name in ("customer_id", "ordered_at", "currency", "is_cancelled")},
            "product": texts_of(values["product"]),
            **{name: money(values[name])[0] for name in _AMOUNTS},
        }
    )
    for name in _AMOUNTS:
        given = texts_of(values[name]).notna() & ~is_orphan
        if unread := int((given & result[name].isna()).sum()):
            detail = f"{name}: {unread} of {int(given.sum())} values"
            findings.append(table_finding("order_lines", "amounts_unreadable", detail))
    ours = typed(result, ORDER_LINES)
    result = with_raw_columns(ours, lines.drop(columns=["order_id", "position"]))
    return result[~is_orphan].reset_index(drop=True), combine_findings(findings)


def _first_column(lines: pd.DataFrame, field: str, listed: pd.DataFrame) -> Column[Any]:
    """The column with the first of a field's names that holds a value of a listed order; null where there is none.

    A column that the platform has renamed keeps the values of orders that are no longer listed.
    """
    name = next((name for name in LINE_NAMES[field] if name in listed and listed[name].notna().any()), None)
    return constant(None, lines.index) if name is None else lines[name]


def customer_orders(
    orders: pd.DataFrame, customers: pd.DataFrame, as_of: datetime, *, is_known: bool = True
) -> pd.DataFrame:
    """Orders and revenue of each customer. Orders that are cancelled or no longer listed do not count.

    Args:
        orders: reconciled; the columns of `transforms.orders.ORDERS`.
        customers: `customer_id`, of the reconciled customers.
        as_of: the instant, with its offset, that activity is relative to. Later orders are planned ones: they make
            nobody active.
        is_known: the orders were read, and their customers are known; if not, all but `customer_id` is null.

    Returns:
        The columns of `CUSTOMER_ORDERS`, one row for each customer, by id.
    """
    known = orders[(orders["customer_status"] == "matched") & ~orders["is_missing"]]
    is_out = is_cancelled(known)
    counted = known[~is_out]
    is_past = (counted["ordered_at"] <= as_of + OFFSET_MAX).fillna(False)
    activity = (
        counted.assign(past=counted["ordered_at"].where(is_past))
        .groupby("customer_id", as_index=False)
        .agg(
            order_count=("order_id", "size"),
            first_ordered_at=("ordered_at", "min"),
            last_ordered_at=("ordered_at", "max"),
            last_past=("past", "max"),
            dated=("ordered_at", "count"),
        )
    )
    cancelled = known[is_out].groupby("customer_id", as_index=False).agg(cancelled_count=("order_id", "size"))
    summary = (
        customers[["customer_id"]]
        .merge(activity, on="customer_id", how="left", validate="1:1")
        .merge(cancelled, on="customer_id", how="left", validate="1:1")
        .merge(_revenue(counted), on="customer_id", how="left", validate="1:1")
        .sort_values("customer_id", ignore_index=True)
    )
    # Not subtracted from `as_of`: Arrow computes what is below a null too, and below that of a group it overflows.
    last, is_dated = summary["last_past"], (summary["dated"] == summary["order_count"]).fillna(True)
    for days in _ACTIVE_DAYS:
        is_active = (last >= as_of - timedelta(days=days)).fillna(False)
        summary[f"is_active_{days}_days"] = is_active.where(is_active | is_dated)
    for name in ("order_count", "cancelled_count"):
        summary[name] = summary[name].fillna(0)
    if not is_known:
        nothing = {name: constant(None, summary.index, kind) for name, kind in CUSTOMER_ORDERS.items()}
        summary = summary.assign(**nothing | {"customer_id": summary["customer_id"]})
    return typed(summary, CUSTOMER_ORDERS)


def _revenue(orders: pd.DataFrame) -> pd.DataFrame:
    """`customer_id`, and `currency`, `revenue` (null where there are several currencies) and `revenue_by_currency`."""
    sums = _sum_by_currency(orders[orders["total"].notna()])
    amount = column(array(sums["revenue"]).cast(TEXT)).str.replace(r"\.?0+$", "", regex=True)
    amount = amount.mask(amount == "0E-9", "0")  # which is how Arrow writes zero
    currency = column(strings(array(sums["currency"].fillna(""))))
    sums = sums.assign(text=joined_text([currency, ': "', amount, '"']))
    sums = sums.sort_values(["customer_id", "currency"], ignore_index=True)
    is_several = sums["customer_id"].duplicated(keep=False)
    listed = to_arrow(sums, {"customer_id": TEXT, "text": TEXT}).group_by("customer_id", use_threads=False)
    texts = listed.aggregate([("text", "list")]).combine_chunks()
    by_currency = pc.binary_join(texts["text_list"], ", ")
    result = pd.DataFrame({"customer_id": column(texts["customer_id"].combine_chunks())})
    result["revenue_by_currency"] = joined_text(["{", column(by_currency.combine_chunks()), "}"])
    return result.merge(
        sums.loc[~is_several, ["customer_id", "currency", "revenue"]], on="customer_id", how="left", validate="1:1"
    )


def _sum_by_currency(orders: pd.DataFrame) -> pd.DataFrame:
    """`customer_id`, `currency`, `revenue`. Arrow sums decimals; pandas would sum Python objects."""
    table = to_arrow(orders, {"customer_id": TEXT, "currency": TEXT, "total": MONEY})
    summed = table.group_by(["customer_id", "currency"]).aggregate([("total", "sum")])
    return from_arrow(summed.rename_columns(["customer_id", "currency", "revenue"]))
