"""Orders, whose fields are not shown: who ordered, when, for how much, in which currency, and how far the order is.

In: the raw orders with whatever columns they have, the reconciled customers, and the columns that hold the fields (see
`transforms.order_fields`). Out: one row per order, the findings, and how the dates were read.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import pandas as pd

from transforms.customer_index import CustomerIndex, CustomerNotation
from transforms.dates import OFFSET_MAX, DateColumn, DateContext, date_findings, read_dates
from transforms.findings import combine_findings, date_text, rule_findings, summarize_unless_proven, table_finding
from transforms.frames import (
    BOOLEAN,
    MONEY,
    TEXT,
    TIMESTAMP,
    Column,
    constant,
    first_true,
    joined_text,
    typed,
)
from transforms.keys import BOOKKEEPING, one_row_per_id
from transforms.order_fields import OrderFields, money, texts_of
from transforms.order_names import CANCELLED_WORDS

ORDERS: Final = {
    "order_id": TEXT,
    "customer_id": TEXT,
    "customer_status": TEXT,
    "ordered_at": TIMESTAMP,
    "total": MONEY,
    "order_status": TEXT,
    "currency": TEXT,
    "is_missing": BOOLEAN,
}
"""The columns that every reconciled order has; those of the raw orders follow."""
SHARE_FALL_MAX: Final = 0.1
"""A matched share may fall by so much between two runs: new guests, removed customers."""


@dataclass(frozen=True, slots=True)
class OrdersResult:
    """The orders, reconciled.

    Attributes:
        orders: the columns of `ORDERS`, then those of the raw orders by name and its bookkeeping, sorted by id; a raw
            column with the name of one of ours begins with `raw_`.
        findings: about them.
        dates: how the dates were read.
        matched_share: of the listed orders, those of a known customer; None without a column of customers or orders.
        customer_notation: how the column of customers is read; None where nothing shows it.
    """

    orders: pd.DataFrame
    findings: pd.DataFrame
    dates: DateColumn
    matched_share: float | None
    customer_notation: CustomerNotation | None


def orders(
    raw: pd.DataFrame,
    customers: pd.DataFrame,
    fields: OrderFields,
    context: DateContext,
    coverage_gap: str = "",
    last_matched_share: float | None = None,
) -> OrdersResult:
    """Reconciles the orders.

    `customer_status` is `matched`, `unknown` (the customer is not in the table), `none` (the order has no customer),
    and null where no column holds the customers. The column is read as ids or as ERP codes, see `CustomerIndex.match`;
    `customer_id` is the id of the customer. Of an unknown one it is the value of a column of ids, else null.

    Args:
        raw: `id`, the bookkeeping columns, and any others.
        customers: the columns of `ORDERING_CUSTOMERS`, of the reconciled customers.
        fields: columns of `raw`.
        context: columns of dates named `…_gmt` or `…_utc` are in UTC, whatever its time zone.
        coverage_gap: why others than `customers` may be listed; empty where they are proven to be all.
        last_matched_share: `matched_share` of the last run.

    Raises:
        ValueError: a field names a column that does not exist.
    """
    for field, name in fields.columns().items():
        if name not in raw:
            raise ValueError(f"{field}: orders have no column {name!r}; they have {', '.join(sorted(map(str, raw)))}")
    rows, findings = one_row_per_id(raw, "orders")
    ours = pd.DataFrame({"order_id": rows["id"], "is_missing": rows["_missing_since"].notna()})
    ours, notation, customer_findings = _with_customers(ours, rows, CustomerIndex.of(customers), fields, coverage_gap)
    is_utc = fields.ordered_at is not None and fields.ordered_at.endswith(("_gmt", "_utc"))
    dates = read_dates(_texts(rows, fields.ordered_at), context.order, "UTC" if is_utc else context.timezone)
    amounts, is_ambiguous = money(rows[fields.total]) if fields.total else (constant(None, rows.index, MONEY), False)
    ours = ours.assign(
        ordered_at=dates.at,
        total=amounts,
        order_status=_texts(rows, fields.order_status),
        currency=_texts(rows, fields.currency).str.upper(),
    )
    matched_share, share_findings = _matched_share(ours, fields.customer_id, last_matched_share)
    findings += [
        *customer_findings,
        *share_findings,
        *date_findings("orders", "ordered_at", fields.ordered_at or "", dates, ours["order_id"]),
        _future_finding(ours, fields.ordered_at or "", context.as_of),
        *_total_findings(ours, rows, fields.total, is_ambiguous),
        *_sum_findings(ours),
    ]
    theirs = rows[sorted(str(name) for name in rows if name not in ("id", *BOOKKEEPING))]
    table = with_raw_columns(typed(ours, ORDERS), theirs).assign(**typed(rows, BOOKKEEPING))
    return OrdersResult(table, combine_findings(findings), dates, matched_share, notation)


def is_cancelled(orders: pd.DataFrame) -> Column[Any]:
    """Whether each order is cancelled, by the words of its status: what a status means is not shown."""
    return orders["order_status"].str.contains(CANCELLED_WORDS, case=False, regex=True).fillna(False)


def _with_customers(
    ours: pd.DataFrame, rows: pd.DataFrame, index: CustomerIndex, fields: OrderFields, coverage_gap: str
) -> tuple[pd.DataFrame, CustomerNotation | None, list[pd.DataFrame]]:
    """Adds the customer of each order and whether it is known. Also returns how the column is read, and findings."""
    name = fields.customer_id
    if name is None:
        nothing = constant(None, rows.index)
        return ours.assign(customer_id=nothing, customer_status=nothing), None, []
    match = index.match(_texts(rows, name), name, fields.customer_notation)
    named, known = match.named, match.customer_id
    status = first_true([(known.notna(), "matched"), (named.notna(), "unknown")], "none")
    is_unknown = (status == "unknown") & ~ours["is_missing"] & (not match.is_unproven)
    absent = rule_findings("orders", "customer_unknown", ours["order_id"], is_unknown & ~match.is_ambiguous, name)
    is_none = (status == "none") & ~ours["is_missing"]
    findings = [
        summarize_unless_proven(absent, "customers_unproven", name, coverage_gap),
        rule_findings("orders", "customer_ambiguous", ours["order_id"], is_unknown & match.is_ambiguous, name),
        rule_findings("orders", "customer_missing", ours["order_id"], is_none, name),
    ]
    if match.is_unproven:
        findings.append(table_finding("orders", "customer_notation", f"{name}: {match.evidence}"))
    elif match.is_contradicted and fields.customer_notation is not None and not fields.is_notation_set:
        detail = f"customer_id: {name} is read as {fields.customer_notation}, but {match.evidence}"
        findings.append(table_finding("orders", "field_changed", f"{detail}; set reconcile.order_customer_notation"))
    customer_id = known if match.is_by_code or match.is_unproven else known.fillna(named)
    notation = fields.customer_notation or match.notation
    return ours.assign(customer_id=customer_id, customer_status=status), notation, findings


def _matched_share(ours: pd.DataFrame, name: str | None, last: float | None) -> tuple[float | None, list[pd.DataFrame]]:
    listed = ours[~ours["is_missing"]]
    if name is None or listed.empty:
        return None, []
    share = float((listed["customer_status"] == "matched").sum()) / len(listed)
    if last is None or share >= last - SHARE_FALL_MAX:
        return share, []
    detail = f"{name}: {share:.0%} of {len(listed)} orders are of a known customer, {last:.0%} before"
    return share, [table_finding("orders", "matched_share_fell", detail)]


def _future_finding(ours: pd.DataFrame, name: str, as_of: datetime) -> pd.DataFrame:
    is_future = (ours["ordered_at"] > as_of + OFFSET_MAX) & ~ours["is_missing"]
    detail = joined_text([f"{name} ", date_text(ours["ordered_at"])])
    return rule_findings("orders", "ordered_at_future", ours["order_id"], is_future, detail)


def _total_findings(ours: pd.DataFrame, rows: pd.DataFrame, name: str | None, is_ambiguous: bool) -> list[pd.DataFrame]:
    if name is None:
        return []
    is_unread = _texts(rows, name).notna() & ours["total"].isna()
    if is_ambiguous:
        detail = f"{name}: {int(is_unread.sum())} texts such as 1.234"
        return [table_finding("orders", "total_notation", detail)]
    return [
        rule_findings("orders", "total_unreadable", ours["order_id"], is_unread, name),
        rule_findings("orders", "total_negative", ours["order_id"], (ours["total"] < 0) & ~ours["is_missing"], name),
    ]


def _sum_findings(ours: pd.DataFrame) -> list[pd.DataFrame]:
    """What makes a plain sum of `total` wrong: several currencies, cancelled orders."""
    counted = ours[~ours["is_missing"] & ours["total"].notna()]
    currencies = counted["currency"].nunique()
    cancelled = int((is_cancelled(counted) & (counted["total"] != 0)).sum())
    findings = []
    if currencies > 1:
        findings.append(table_finding("orders", "currencies_mixed", f"{currencies} currencies"))
    if cancelled:
        detail = f"{cancelled} of {len(counted)} orders with a total are cancelled"
        findings.append(table_finding("orders", "cancelled_with_total", detail))
    return findings


def _texts(rows: pd.DataFrame, name: str | None) -> Column[Any]:
    return texts_of(rows[name]) if name is not None else constant(None, rows.index)


def with_raw_columns(ours: pd.DataFrame, raw: pd.DataFrame) -> pd.DataFrame:
    """Our columns, then the raw ones; those with the name of another get a free one."""
    columns = {str(name): values for name, values in ours.items()}
    theirs = list(map(str, raw))
    for name in theirs:
        columns[_free_name(name, {*columns, *(other for other in theirs if other != name)})] = raw[name]
    return pd.DataFrame(columns)


def _free_name(name: str, taken: set[str]) -> str:
    """The name, or one that is not taken; the warehouse does not distinguish upper and lower case."""
    small = {other.casefold() for other in taken}
    while name.casefold() in small:
        name = f"raw_{name}"
    return name
