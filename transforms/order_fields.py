"""Which columns of the raw orders hold customer, date, total, status and currency: the interface does not show them.

In: the raw orders with whatever columns they have, the customers, the settings, and what earlier runs chose. Out: the
column of each field, the evidence, and findings where none is proven or where the choice is no longer the best. A
setting decides before a pinned choice, a pinned choice before a proposal: new columns never change the meaning of a
table without an error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from transforms.customer_index import (
    MATCHED_SHARE_MIN,
    CustomerIndex,
    CustomerMatch,
    CustomerNotation,
    same_customers,
)
from transforms.date_forms import SHARE_MIN
from transforms.findings import combine_findings, table_finding
from transforms.frames import BIGINT, BOOLEAN, MONEY, TEXT, Column, array, column
from transforms.keys import clean_text
from transforms.numbers import NotationEvidence
from transforms.order_names import CUSTOMER_NAME, ORDER_NAMES, RELATED_NAMES

CUSTOMER_ROWS_MIN: Final = 0.5
"""Share of the orders that must be of a known customer; the others may be of guests."""
FILLED_SHARE_MIN: Final = 0.9
"""Share of the orders that must have a date and a status, and a value in any column that is kept."""
_PREFERRED_IDS: Final = ("customer_id", "customer__id")
_STATUSES_MAX: Final = 40
_DOUBLE: Final = pa.float64()
_KINDS: Final = (TEXT, BIGINT, MONEY, _DOUBLE)
_CURRENCY_CODE: Final = r"[A-Za-z]{3}"
_DECIMAL: Final = r"-?[0-9]{1,20}(\.[0-9]{1,9})?"
"""An amount. The sum of a billion of them fits into MONEY: Arrow's sums overflow without an error."""
_AMOUNT_LIMIT: Final = pa.scalar(Decimal(10) ** 20, MONEY)
_LONG_DECIMAL: Final = r"-?[0-9]{1,20}\.[0-9]{10,17}"
_THOUSANDS_OR_DECIMALS: Final = r"-?[1-9][0-9]{0,2}\.[0-9]{3}"


@dataclass(frozen=True, slots=True)
class OrderFields:
    """Columns of the raw orders by what they hold; None where none is known.

    Attributes:
        customer_id: ids of the customers, or their ERP codes.
        ordered_at: when the order was made.
        total: its amount.
        order_status: its status, in the platform's words.
        currency: of the amount.
        customer_notation: how `customer_id` is read; None: as its values prove.
        is_notation_set: a setting decides it, so that values that contradict it are no finding.
    """

    customer_id: str | None = None
    ordered_at: str | None = None
    total: str | None = None
    order_status: str | None = None
    currency: str | None = None
    customer_notation: CustomerNotation | None = field(default=None, kw_only=True)
    is_notation_set: bool = field(default=False, kw_only=True)

    def columns(self) -> dict[str, str]:
        """The known columns by field."""
        return {name: value for name in ORDER_FIELDS if (value := getattr(self, name)) is not None}


ORDER_FIELDS: Final = ("customer_id", "ordered_at", "total", "order_status", "currency")
_EXPECTED: Final = ("customer_id", "ordered_at", "total")
"""Fields that every order should have; a status or a currency may not exist."""


@dataclass(frozen=True, slots=True)
class FieldProposal:
    """Fields that are proven, and the evidence of every column that was examined: names and counts, no values."""

    fields: OrderFields
    evidence: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class FieldChoice(FieldProposal):
    """The fields to use, which a run pins, with findings about the choice."""

    findings: pd.DataFrame


def choose_fields(
    orders: pd.DataFrame,
    customers: pd.DataFrame,
    configured: OrderFields | None = None,
    pinned: OrderFields | None = None,
) -> FieldChoice:
    """Decides which columns hold the fields of an order (interface, GET /orders: not shown).

    Args:
        orders: the raw orders that are listed.
        customers: the columns of `ORDERING_CUSTOMERS`, of the reconciled customers.
        configured: columns that the settings name.
        pinned: columns that the last run used.

    Both also give the notation of the customers; a pinned one holds for its own column only.
    """
    configured, pinned = configured or OrderFields(), pinned or OrderFields()
    proposal = propose_fields(orders, customers, configured.customer_notation)
    chosen: dict[str, str | None] = {}
    findings = []
    for name in ORDER_FIELDS:
        setting, before, now = (getattr(one, name) for one in (configured, pinned, proposal.fields))
        keeps = before is not None and before in orders
        chosen[name] = setting or (before if keeps else now)
        advice = f"set reconcile.order_{name.removeprefix('order_')}"
        if setting is None and before is not None and now != before:
            if not keeps:
                change = f"{before} is gone, {now or 'no column'} is used"
            elif now is not None:
                change = f"{before} is kept, {now} fits better now"
            else:
                given = int(texts_of(orders[before]).count())
                is_rare = name in _EXAMINED and given < FILLED_SHARE_MIN * len(orders)
                change = f"{before} is kept, but {given} of {len(orders)} orders have a value" if is_rare else ""
            if change:
                findings.append(table_finding("orders", "field_changed", f"{name}: {change}; {advice}"))
        if chosen[name] is None and name in _EXPECTED and len(orders):
            detail = f"{name}: {_candidates(name, orders, proposal.evidence)}; {advice}"
            findings.append(table_finding("orders", "field_not_found", detail))
    status = chosen["order_status"]
    if len(orders) and (status is None or not texts_of(orders[status]).str.contains(r"\p{L}", regex=True).any()):
        reason = "values without a letter" if status is not None else "no column is proven"
        candidates = _candidates("order_status", orders, proposal.evidence)
        detail = f"order_status: {reason}; {candidates}; set reconcile.order_status"
        findings.append(table_finding("orders", "cancelled_unknown", detail))
    notation, is_set = configured.customer_notation, configured.customer_notation is not None
    if not is_set and chosen["customer_id"] == pinned.customer_id:
        notation = pinned.customer_notation
    chosen_fields = OrderFields(**chosen, customer_notation=notation, is_notation_set=is_set)
    return FieldChoice(chosen_fields, proposal.evidence, combine_findings(findings))


def _candidates(wanted: str, orders: pd.DataFrame, evidence: Mapping[str, str]) -> str:
    names = [name for name in map(str, orders) if RELATED_NAMES[wanted].search(name) and not name.startswith("_")]
    listed = [f"{name} ({evidence[name]})" if name in evidence else name for name in sorted(names)]
    return "candidates: " + ", ".join(listed) if listed else "no column with a related name"


def propose_fields(
    orders: pd.DataFrame, customers: pd.DataFrame, notation: CustomerNotation | None = None
) -> FieldProposal:
    """Looks for the columns that `orders` needs (interface, GET /orders: fields of an order are not shown).

    A column must have one of the names in `transforms.order_names`, and values in enough of the rows: known customers
    in half of the rows and 90 % of the values, dates in 90 % of the rows (whatever their format), decimal numbers and
    codes of three letters in 95 %. Of several, the name that is preferred decides; of several columns of customers none
    is chosen unless they refer to the same ones. A code that refers to other customers than an id is preferred: small
    numbers are ids of customers by chance.

    Args:
        orders: the raw orders.
        customers: the columns of `ORDERING_CUSTOMERS`, of the reconciled customers.
        notation: how a column of customers is read; None: as its values prove.
    """
    orders = orders[[name for name in sorted(map(str, orders)) if name != "id" and not name.startswith("_")]]
    orders = orders[[name for name in orders if array(orders[name]).type in _KINDS]]
    evidence: dict[str, str] = {}
    chosen: dict[str, Any] = {"customer_id": _propose_customer(orders, CustomerIndex.of(customers), notation, evidence)}
    for wanted, (count_fitting, share_min) in _EXAMINED.items():
        for name in (name for name in ORDER_NAMES[wanted] if name in orders):
            count, evidence[name] = count_fitting(orders[name])
            if count and count >= share_min * len(orders):
                chosen.setdefault(wanted, name)
    return FieldProposal(OrderFields(**chosen), evidence)


def _propose_customer(
    orders: pd.DataFrame, index: CustomerIndex, notation: CustomerNotation | None, evidence: dict[str, str]
) -> str | None:
    matches: dict[str, CustomerMatch] = {}
    for name in (name for name in map(str, orders) if CUSTOMER_NAME.fullmatch(name)):
        match = index.match(texts_of(orders[name]), name, notation)
        evidence[name] = match.evidence
        hits, count = match.codes if match.is_by_code else match.ids, int(match.named.notna().sum())
        if count and hits >= MATCHED_SHARE_MIN * count and hits >= CUSTOMER_ROWS_MIN * len(orders):
            matches[name] = match
    by_code = [name for name, match in matches.items() if match.is_by_code]
    # Codes are texts that somebody chose, ids are small numbers that many columns hold.
    by_id = [name for name in sorted(matches, key=_PREFERRED_IDS.__contains__, reverse=True) if name not in by_code]
    for names in ([*by_id, *by_code], by_code):
        first = matches[names[0]].customer_id if names else None
        if first is not None and all(same_customers(matches[name].customer_id, first) for name in names[1:]):
            return names[0]
    return None


def _dates(values: Column[Any]) -> tuple[int, str]:
    count = int(texts_of(values).count())
    return count, f"{count} of {len(values)} have a value"


def _totals(values: Column[Any]) -> tuple[int, str]:
    amounts, is_ambiguous = money(values)
    if is_ambiguous:
        return 0, "texts such as 1.234, thousands or decimals"
    return int(amounts.count()), f"{amounts.count()} of {len(values)} are decimal numbers"


def _statuses(values: Column[Any]) -> tuple[int, str]:
    texts = texts_of(values)
    count, distinct = int(texts.count()), texts.nunique()
    return count if distinct <= _STATUSES_MAX else 0, f"{count} of {len(values)} have one of {distinct} values"


def _currencies(values: Column[Any]) -> tuple[int, str]:
    count = int(texts_of(values).str.fullmatch(_CURRENCY_CODE).fillna(False).sum())
    return count, f"{count} of {len(values)} are codes of three letters"


_EXAMINED: Final[dict[str, tuple[Callable[[Column[Any]], tuple[int, str]], float]]] = {
    "ordered_at": (_dates, FILLED_SHARE_MIN),
    "total": (_totals, SHARE_MIN),
    "order_status": (_statuses, FILLED_SHARE_MIN),
    "currency": (_currencies, SHARE_MIN),
}
"""By field: how many values fit it, with the evidence; the least share of rows."""


def texts_of(values: Column[Any]) -> Column[Any]:
    """A column of text, of numbers or of anything else as text; null where blank. Whole doubles have no exponent."""
    plain = array(values)
    if plain.type == MONEY:
        text = pc.replace_substring_regex(plain.cast(TEXT), r"(\.[0-9]*?)0+$", r"\1")  # has 9 decimals
        plain = pc.if_else(pc.equal(plain, 0), "0", pc.replace_substring_regex(text, r"\.$", ""))
    if plain.type == _DOUBLE:
        is_whole = pc.and_(pc.equal(pc.floor(plain), plain), pc.less(pc.abs(plain), 2.0**53))
        whole = pc.if_else(is_whole, plain, None).cast(BIGINT).cast(TEXT)
        return column(pc.coalesce(whole, plain.cast(TEXT)), values.index)
    return clean_text(column(plain.cast(TEXT), values.index))


def money(values: Column[Any]) -> tuple[Column[Any], bool]:
    """Numbers and texts of numbers as MONEY, null where they are none.

    A double is taken as the shortest decimal that it is read from; beyond 9 decimals, which only its own arithmetic
    makes (0.1 + 0.2), it is rounded. A text with more than 9 decimals is not.

    Returns:
        The amounts, where texts such as `1.234` are null unless others prove a decimal point and none a decimal comma;
        and whether there are such texts and none proves a decimal point.
    """
    kind = array(values).type
    if kind == BOOLEAN:
        return column(pa.nulls(len(values), MONEY), values.index), False
    if kind == MONEY:
        plain = array(values)
        return column(pc.if_else(pc.less(pc.abs(plain), _AMOUNT_LIMIT), plain, None), values.index), False
    texts = texts_of(values)
    is_decimal, is_ambiguous = texts.str.fullmatch(_DECIMAL).fillna(False), False
    if kind == TEXT:
        notation = NotationEvidence()
        notation.add(array(texts))
        is_either = texts.str.fullmatch(_THOUSANDS_OR_DECIMALS).fillna(False)
        is_decimal &= ~(is_either & (notation.proof != "point"))
        is_ambiguous = notation.proof in ("ambiguous", "comma") and bool(is_either.any())
    amounts = array(texts.where(is_decimal)).cast(MONEY)
    if kind == _DOUBLE:
        long = texts.where(texts.str.fullmatch(_LONG_DECIMAL).fillna(False))
        amounts = pc.coalesce(amounts, pc.round(array(long).cast(pa.decimal128(38, 17)), 9).cast(MONEY))
    return column(amounts, values.index), is_ambiguous
