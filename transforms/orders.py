"""Orders, whose fields are not shown: who ordered, when, and for how much, through fields that the settings name.

In: the raw orders with whatever columns they have, and the reconciled customers. Out: one row per order, the findings,
and how the dates were read. Which column is which is said by the settings; `propose_fields` looks for evidence,
and proposes nothing where it is not clear.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from transforms.date_forms import SHARE_MIN, DateOrder
from transforms.dates import DateColumn, read_dates
from transforms.findings import combine_findings, date_text, rule_findings, summarize_unless_proven, table_finding
from transforms.frames import BIGINT, BOOLEAN, MONEY, TEXT, TIMESTAMP, array, column, from_arrow, joined_text, typed
from transforms.keys import BOOKKEEPING, canonical_id, clean_text, one_row_per_id, positions

ORDERS: Final = {
    "order_id": TEXT,
    "customer_id": TEXT,
    "customer_status": TEXT,
    "ordered_at": TIMESTAMP,
    "total": MONEY,
    "is_missing": BOOLEAN,
}
"""The columns that every reconciled order has; those of the raw orders follow."""
ORDERING_CUSTOMERS: Final = {"customer_id": TEXT, "erp_code": TEXT, "is_missing": BOOLEAN}
CUSTOMERS_SHARE_MIN: Final = 0.9
"""Share of a column's values that must be known customers. Orders of removed customers keep it below 1."""
_CUSTOMER_NAME: Final = re.compile(
    r"^(.*_)?(customer|client|cliente|buyer|comprador|user)(_+(id|code|key|erp_code|external_id))?$"
)
_DATE_NAME: Final = re.compile(r"(^|_)(at|on|date|fecha|time|timestamp|created|placed|ordered)($|_)")
_DATES_FIRST: Final = ("ordered_at", "order_date", "placed_at", "created_at", "date")
_TOTAL_NAME: Final = re.compile(r"^((order|grand|final)_)?(total|amount|importe|monto)(_(amount|total|price|value))?$")
_DECIMAL: Final = r"^-?[0-9]{1,29}(\.[0-9]{1,9})?$"
_LONG_DECIMAL: Final = r"^-?[0-9]{1,20}\.[0-9]{10,17}$"
_OFFSET_MAX: Final = timedelta(hours=14)


@dataclass(frozen=True, slots=True)
class OrderFields:
    """Columns of the raw orders by what they mean; None where none is known.

    Attributes:
        customer_id: holds the customers' ids, or their codes of the ERP.
        ordered_at: when the order was made.
        total: what it comes to.
    """

    customer_id: str | None = None
    ordered_at: str | None = None
    total: str | None = None


@dataclass(frozen=True, slots=True)
class FieldProposal:
    """Fields that the evidence is clear for; the evidence of every column that was looked at, in names and counts."""

    fields: OrderFields
    evidence: Mapping[str, str]


def propose_fields(orders: pd.DataFrame, customers: pd.DataFrame, date_order: DateOrder | None = None) -> FieldProposal:
    """Looks for the columns that `orders` needs (interface, GET /orders: fields of an order are not shown).

    A column must be named like what it is to be, and its values must bear it out: at least 90 % of them known
    customers, or 95 % dates of one proven form, or 95 % decimal numbers. Where several are left, a usual name decides
    (`total`, `created_at`), else none is proposed.

    Args:
        orders: the raw orders.
        customers: the columns of `ORDERING_CUSTOMERS`, of the reconciled customers.
        date_order: see `read_dates`.
    """
    known = _Known(customers)
    evidence: dict[str, str] = {}
    by_id, by_code, dates, totals = list[str](), list[str](), list[str](), list[str]()
    for name in sorted(str(name) for name in orders):
        values = array(orders[name])
        if name == "id" or name.startswith("_") or values.type not in (TEXT, BIGINT, pa.float64()):
            continue
        if _CUSTOMER_NAME.match(name):
            count, ids, codes = known.hits(_texts(values))
            evidence[name] = f"{ids} of {count} are ids of customers, {codes} codes of the ERP"
            if count and ids >= CUSTOMERS_SHARE_MIN * count:
                by_id.append(name)
            elif count and codes >= CUSTOMERS_SHARE_MIN * count:
                by_code.append(name)
        elif _DATE_NAME.search(name) and values.type != pa.float64():
            read = read_dates(_column(orders, name, TEXT), date_order)
            count, good = len(values) - values.null_count, len(read.at) - int(read.at.isna().sum())
            evidence[name] = f"{read.form}: {read.evidence}"
            if count and good >= SHARE_MIN * count:
                dates.append(name)
        elif _TOTAL_NAME.match(name):
            count, good = len(values) - values.null_count, len(values) - _money(values).null_count
            evidence[name] = f"{good} of {count} are decimal numbers"
            if count and good >= SHARE_MIN * count:
                totals.append(name)
    fields = OrderFields(
        _clear(by_id, ("customer_id",)) if by_id else _clear(by_code, ("customer_erp_code",)),
        _clear(dates, _DATES_FIRST),
        _clear(totals, ("total",)),
    )
    return FieldProposal(fields, MappingProxyType(evidence))


def _clear(names: list[str], first: tuple[str, ...]) -> str | None:
    """The one that a usual name or the lack of others makes clear."""
    return next((name for name in first if name in names), names[0] if len(names) == 1 else None)


def orders(
    raw: pd.DataFrame,
    customers: pd.DataFrame,
    fields: OrderFields,
    as_of: datetime,
    date_order: DateOrder | None = None,
    doubt: str = "",
) -> tuple[pd.DataFrame, pd.DataFrame, DateColumn]:
    """Reconciles the orders.

    `customer_status` is `matched`, `unknown` (named, and not among the customers), `none` (nobody named), and null
    where no field is known to name customers. The field is read as ids or as codes of the ERP, whichever more of its
    values are; `customer_id` is the customer's id, or what the order says where it is unknown.

    Args:
        raw: `id`, the bookkeeping columns, and any others.
        customers: the columns of `ORDERING_CUSTOMERS`, of the reconciled customers.
        fields: columns of `raw` by what they mean.
        as_of: the instant after which an order is from the future, with its offset.
        date_order: see `read_dates`.
        doubt: why a customer may be listed who is not among them; empty where they are proven to be all.

    Returns:
        The columns of `ORDERS`, then those of `raw` by name and its bookkeeping, sorted by id; a raw column named like
        one of ours has `raw_` before its name. Findings. How the dates were read.

    Raises:
        ValueError: as_of is without an offset, or a field names a column that is not there.
    """
    if as_of.tzinfo is None:
        raise ValueError("as_of needs an offset: datetime(..., tzinfo=UTC)")
    for field, name in (
        ("customer_id", fields.customer_id),
        ("ordered_at", fields.ordered_at),
        ("total", fields.total),
    ):
        if name is not None and name not in raw:
            raise ValueError(f"{field}: orders have no column {name!r}; they have {', '.join(sorted(map(str, raw)))}")
    rows, findings = one_row_per_id(raw, "orders")
    ids = array(rows["id"])
    is_missing = pc.is_valid(array(rows["_missing_since"]))
    customer_ids, status, about_customers = _customers(
        rows, _Known(customers), fields.customer_id, ids, is_missing, doubt
    )
    read = read_dates(_column(rows, fields.ordered_at, TEXT), date_order)
    total = _money(array(rows[fields.total])) if fields.total else pa.nulls(len(rows), MONEY)
    ours = {
        "order_id": ids,
        "customer_id": customer_ids,
        "customer_status": status,
        "ordered_at": array(read.at),
        "total": total,
        "is_missing": is_missing,
    }
    columns = {name: ours[name].cast(kind) for name, kind in ORDERS.items()}
    theirs = sorted(str(name) for name in rows if name not in ("id", *BOOKKEEPING))
    for name in theirs:
        columns[_free(name, {*columns, *(other for other in theirs if other != name)})] = array(rows[name])
    columns |= {name: array(rows[name]).cast(kind) for name, kind in BOOKKEEPING.items()}
    return (
        from_arrow(pa.table(columns)),
        combine_findings(
            [*findings, *about_customers, *_dates(ours, read, fields, as_of), *_totals(ours, rows, fields)]
        ),
        read,
    )


class _Known:
    """The customers that an order may name: ids, and codes of the ERP that only one has."""

    def __init__(self, customers: pd.DataFrame) -> None:
        table = pa.Table.from_pandas(typed(customers, ORDERING_CUSTOMERS), preserve_index=False)
        self.ids = table["customer_id"].combine_chunks()
        codes = pa.table(
            {"code": clean_text(table["erp_code"]), "id": table["customer_id"], "gone": table["is_missing"]}
        )
        codes = from_arrow(codes.filter(pc.is_valid(codes["code"])))
        # A code of a listed customer is his, whoever had it before.
        is_taken = codes["code"].isin(codes.loc[~codes["gone"], "code"])
        codes = codes[~(codes["gone"] & is_taken)]
        is_shared = codes["code"].duplicated(keep=False)
        self.codes, self.ids_of_codes = array(codes.loc[~is_shared, "code"]), array(codes.loc[~is_shared, "id"])
        self.shared_codes = array(codes.loc[is_shared, "code"].drop_duplicates())

    def hits(self, values: pa.Array) -> tuple[int, int, int]:
        """How many values there are, are ids, are codes."""
        codes = pc.or_(
            pc.is_in(values, self.codes, skip_nulls=True), pc.is_in(values, self.shared_codes, skip_nulls=True)
        )
        ids = pc.is_in(canonical_id(values), self.ids, skip_nulls=True)
        return len(values) - values.null_count, _true(ids), _true(codes)


def _true(flags: pa.Array) -> int:
    count: int = pc.sum(flags).as_py() or 0
    return count


def _customers(
    rows: pd.DataFrame, known: _Known, field: str | None, ids: pa.Array, is_missing: pa.Array, doubt: str
) -> tuple[pa.Array, pa.Array, list[pd.DataFrame]]:
    """The customer of each order, whether he is known, and the findings."""
    if field is None:
        return pa.nulls(len(rows), TEXT), pa.nulls(len(rows), TEXT), []
    named = _texts(array(rows[field]))
    _, by_id, by_code = known.hits(named)
    if by_code > by_id:
        found = known.ids_of_codes.take(positions(named, known.codes))
        is_ambiguous = pc.is_in(named, known.shared_codes, skip_nulls=True)
        customer_ids = found
    else:
        found = known.ids.take(positions(canonical_id(named), known.ids))
        is_ambiguous = pa.repeat(False, len(named))
        customer_ids = pc.coalesce(found, named)
    status = pc.if_else(pc.is_valid(found), "matched", pc.if_else(pc.is_valid(named), "unknown", "none"))
    present = pc.invert(is_missing)
    is_unknown = pc.and_(pc.equal(status, "unknown"), present)
    absent = rule_findings("orders", "customer_unknown", ids, pc.and_not(is_unknown, is_ambiguous), field)
    return (
        customer_ids,
        status,
        [
            summarize_unless_proven(absent, "customers_unproven", field, doubt),
            rule_findings("orders", "customer_ambiguous", ids, pc.and_(is_unknown, is_ambiguous), field),
            rule_findings("orders", "customer_missing", ids, pc.and_(pc.equal(status, "none"), present), field),
        ],
    )


def _dates(ours: dict[str, pa.Array], read: DateColumn, fields: OrderFields, as_of: datetime) -> list[pd.DataFrame]:
    ids, at, field = ours["order_id"], ours["ordered_at"], fields.ordered_at or ""
    if read.is_unreadable:
        return [table_finding("orders", "ordered_at_form", f"{field}: {read.form}: {read.evidence}")]
    is_future = pc.and_not(pc.greater(at, pa.scalar(as_of + _OFFSET_MAX, TIMESTAMP)), ours["is_missing"])
    detail = joined_text([field, " ", date_text(column(at))])
    return [
        rule_findings("orders", "ordered_at_unreadable", ids, array(read.unread), field),
        rule_findings("orders", "ordered_at_future", ids, is_future, detail),
    ]


def _totals(ours: dict[str, pa.Array], rows: pd.DataFrame, fields: OrderFields) -> list[pd.DataFrame]:
    if fields.total is None:
        return []
    ids, total, given = ours["order_id"], ours["total"], _texts(array(rows[fields.total]))
    is_negative = pc.and_not(pc.less(total, pa.scalar(0, MONEY)), ours["is_missing"])
    is_unread = pc.and_(pc.is_valid(given), pc.is_null(total))
    return [
        rule_findings("orders", "total_unreadable", ids, is_unread, fields.total),
        rule_findings("orders", "total_negative", ids, is_negative, fields.total),
    ]


def _texts(values: pa.Array) -> pa.Array:
    return clean_text(values.cast(TEXT))


def _column(rows: pd.DataFrame, name: str | None, kind: pa.DataType) -> pd.Series[str]:
    values = array(rows[name]).cast(kind) if name else pa.nulls(len(rows), kind)
    made: pd.Series[str] = from_arrow(pa.table({"c": values}))["c"]
    return made


def _money(values: pa.Array) -> pa.Array:
    """Numbers and texts of numbers as MONEY, null where they are none.

    A double stands for the shortest decimal that it is read from; beyond 9 decimals, which only its own arithmetic
    makes (0.1 + 0.2), it is rounded. A text of more than 9 decimals is not.
    """
    if values.type == BOOLEAN:
        return pa.nulls(len(values), MONEY)
    texts = _texts(values)
    plain = _where(texts, pc.match_substring_regex(texts, _DECIMAL)).cast(MONEY)
    if values.type != pa.float64():
        return plain
    long = _where(texts, pc.match_substring_regex(texts, _LONG_DECIMAL)).cast(pa.decimal128(38, 17))
    return pc.coalesce(plain, pc.round(long, 9).cast(MONEY))


def _where(texts: pa.Array, where: pa.Array) -> pa.Array:
    return pc.if_else(where, texts, pa.scalar(None, TEXT))


def _free(name: str, taken: set[str]) -> str:
    """The name, or one that is not taken; the warehouse does not tell capitals from small letters."""
    small = {other.casefold() for other in taken}
    while name.casefold() in small:
        name = f"raw_{name}"
    return name
