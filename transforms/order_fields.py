"""Which columns of the raw orders hold customer, date, total, status and currency: the interface does not show them.

In: the raw orders with whatever columns they have, the customers, the settings, and what earlier runs chose. Out: the
column of each field, the evidence, why a field is not known, and findings where none is proven, where columns disagree,
or where the choice is no longer the best. A setting decides before a pinned choice, a pinned choice before a proposal:
new columns never change the meaning of a table without an error.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any, Final, Protocol

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from orderbridge.transforms.cancelled import STATUSES_MAX, Cancellation, related_columns
from orderbridge.transforms.customer_index import (
    MATCHED_SHARE_MIN,
    CustomerIndex,
    CustomerMatch,
    CustomerNotation,
    same_customers,
)
from orderbridge.transforms.date_forms import SHARE_MIN
from orderbridge.transforms.findings import combine_findings, table_finding
from orderbridge.transforms.frames import BIGINT, BOOLEAN, MONEY, TEXT, Column, array, column
from orderbridge.transforms.keys import clean_text
from orderbridge.transforms.numbers import NotationEvidence
from orderbridge.transforms.order_names import CUSTOMER_NAME, ORDER_NAMES, RELATED_NAMES, RIVAL_NAME
from orderbridge.transforms.total_candidates import TotalCandidates

CUSTOMER_ROWS_MIN: Final = 0.5
"""Share of the orders that must be of a known customer; the others may be of guests."""
FILLED_SHARE_MIN: Final = 0.9
"""Share of the orders that must have a date and a status, and a value in any column that is kept."""
_PREFERRED_IDS: Final = ("customer_id", "customer__id")
_RIVAL_CUSTOMERS_MIN: Final = 0.5
"""How many customers a column of accounts must refer to, relative to that of customers: staff are few."""
_DOUBLE: Final = pa.float64()
_KINDS: Final = (TEXT, BIGINT, MONEY, _DOUBLE)
_CURRENCY_CODE: Final = r"[A-Za-z]{3}"
_AMOUNT: Final = r"-?[0-9]{1,20}(\.[0-9]+)?"
"""An amount. The sum of a billion of them fits into MONEY: Arrow's sums overflow without an error."""
_SCIENTIFIC: Final = r"-?[0-9]+(\.[0-9]+)?[eE][+-]?[0-9]{1,3}"
"""An amount as programs write a number that is very large or very small: with an exponent."""
_AMOUNT_LIMIT: Final = pa.scalar(Decimal(10) ** 20, MONEY)
_BILLIONTH: Final = Decimal("1e-9")
_EVERY_DIGIT: Final = Context(prec=MONEY.precision)
_TEN_DECIMALS: Final = pa.decimal128(38, 10)
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
        is_in_cents: the totals are hundredths of the unit of the currency.
        cancelled_values: of the status, which mean that an order is cancelled; None: as their words say.
    """

    customer_id: str | None = None
    ordered_at: str | None = None
    total: str | None = None
    order_status: str | None = None
    currency: str | None = None
    customer_notation: CustomerNotation | None = field(default=None, kw_only=True)
    is_notation_set: bool = field(default=False, kw_only=True)
    is_in_cents: bool = field(default=False, kw_only=True)
    cancelled_values: tuple[str, ...] | None = field(default=None, kw_only=True)

    def columns(self) -> dict[str, str]:
        """The known columns by field."""
        return {name: value for name in ORDER_FIELDS if (value := getattr(self, name)) is not None}


ORDER_FIELDS: Final = ("customer_id", "ordered_at", "total", "order_status", "currency")
_EXPECTED: Final = ("customer_id", "ordered_at", "total")
"""Fields that every order should have; a status or a currency may not exist."""


@dataclass(frozen=True, slots=True)
class FieldChoice:
    """The fields to use, which a run pins, with findings about the choice.

    Attributes:
        fields: their columns.
        amounts: what the values of the column of totals prove about their notation.
        cancellation: how it is read whether an order is cancelled.
        unknown: why customers, dates or totals are not known, by field.
        evidence: of every column that was examined: names and counts, no values.
        findings: the columns of `FINDINGS`.
    """

    fields: OrderFields
    amounts: AmountEvidence
    cancellation: Cancellation = field(default_factory=Cancellation)
    unknown: Mapping[str, str] = field(default_factory=dict)
    evidence: Mapping[str, str] = field(default_factory=dict)
    findings: pd.DataFrame = field(default_factory=pd.DataFrame)


class OrderColumns(Protocol):
    """The columns of the raw orders, which are read as they are needed; those that are listed are counted."""

    @property
    def kinds(self) -> Mapping[str, pa.DataType]:
        """The type of each column."""

    @property
    def rows(self) -> int:
        """The number of orders that are listed."""

    def parts(self, columns: Iterable[str]) -> Iterable[pd.DataFrame]:
        """These columns of all orders and `is_missing`, in parts."""

    def distinct(self, names: Sequence[str]) -> pd.DataFrame:
        """The distinct values of these columns together, and `row_count`: how many orders have them."""

    def with_lines(self, names: Sequence[str]) -> pd.DataFrame:
        """These columns of some of the orders, and the columns of `LINE_SUMS`."""


class AmountEvidence:
    """What the values of a column of amounts prove about its notation. They are added part by part.

    Attributes:
        certain: how many values of listed orders are decimal numbers in any notation.
        either: how many are texts such as `1.234`, which may be thousands or decimals.
    """

    def __init__(self) -> None:
        self._notation = NotationEvidence()
        self.certain = self.either = 0

    def add(self, values: Column[Any], others: Column[Any] | None = None) -> None:
        """Examines values of any type; others, of orders that are missing, prove a notation and are not counted."""
        if array(values).type != TEXT:
            self.certain += int(money(values, self).count())
            return
        texts = texts_of(values)
        for examined in (texts, *([] if others is None else [texts_of(others)])):
            self._notation.add(array(examined))
        either = int(texts.str.fullmatch(_THOUSANDS_OR_DECIMALS).fillna(False).sum())
        self.either += either
        self.certain += int(_amounts(texts).count()) - either

    @property
    def is_point(self) -> bool:
        """Whether a decimal point is proven, and no decimal comma."""
        return self._notation.proof == "point"

    @property
    def is_ambiguous(self) -> bool:
        """Whether there are texts such as `1.234`, and none proves a decimal point."""
        return bool(self.either) and self._notation.proof in ("ambiguous", "comma")


class ColumnFacts:
    """What the values of a column are. They are added part by part.

    Attributes:
        given: how many of the listed orders have a value that is not blank.
        currencies: how many have a code of three letters.
        amounts: those that are amounts.
        words: the distinct texts.
    """

    def __init__(self, fields: Collection[str]) -> None:
        """Of a column that may hold these fields."""
        self._fields = fields
        self.given = self.currencies = 0
        self.amounts = AmountEvidence()
        self.words: set[str] = set()

    def add(self, values: Column[Any], others: Column[Any]) -> None:
        """Examines values of any type; `others` are of orders that are missing."""
        texts = texts_of(values)
        self.given += int(texts.count())
        if "total" in self._fields:
            self.amounts.add(values, others)
        if "order_status" in self._fields:
            self.words.update(texts.dropna().unique())
        if "currency" in self._fields:
            self.currencies += int(texts.str.fullmatch(_CURRENCY_CODE).fillna(False).sum())

    def fitting(self, name: str, rows: int) -> tuple[int, str]:
        """How many values fit a field, and the evidence; `rows` is the number of orders."""
        if name == "total" and self.amounts.is_ambiguous:
            return 0, "texts such as 1.234, thousands or decimals"
        if name == "total":
            count = self.amounts.certain + (self.amounts.either if self.amounts.is_point else 0)
            return count, f"{count} of {rows} are decimal numbers"
        if name == "currency":
            return self.currencies, f"{self.currencies} of {rows} are codes of three letters"
        if name == "order_status":
            distinct = len(self.words)
            evidence = f"{self.given} of {rows} have one of {distinct} values"
            return self.given if distinct <= STATUSES_MAX else 0, evidence
        return self.given, f"{self.given} of {rows} have a value"


_EXAMINED: Final = {
    "ordered_at": FILLED_SHARE_MIN,
    "total": SHARE_MIN,
    "order_status": FILLED_SHARE_MIN,
    "currency": SHARE_MIN,
}
"""The least share of rows whose values must fit a field."""


def choose_fields(
    orders: OrderColumns,
    customers: CustomerIndex,
    configured: OrderFields | None = None,
    pinned: OrderFields | None = None,
) -> FieldChoice:
    """Decides which columns hold the fields of an order (interface, GET /orders: not shown).

    A column must have one of the names in `transforms.order_names`, and values in enough of the rows: known customers
    in half of the rows and 90 % of the values, dates in 90 % of the rows (whatever their format), decimal numbers and
    codes of three letters in 95 %. Of several, the name that is preferred decides; of several columns of customers none
    is chosen unless they refer to the same ones. A code that refers to other customers than an id is preferred: small
    numbers are ids of customers by chance.

    Args:
        orders: the columns of the raw orders.
        customers: the reconciled customers.
        configured: columns that the settings name.
        pinned: columns that the last run used.

    Both also give the notation of the customers; a pinned one holds for its own column only.
    """
    configured, pinned, rows = configured or OrderFields(), pinned or OrderFields(), orders.rows
    names = [name for name in sorted(orders.kinds) if name != "id" and not name.startswith("_")]
    used = [(field, name) for one in (configured, pinned) for field, name in one.columns().items()]
    facts = _examined(orders, names, used)
    names = [name for name in names if orders.kinds[name] in _KINDS]
    evidence: dict[str, str] = {}
    fitting: dict[str, list[str]] = {field: [] for field in _EXAMINED}
    for field_name, share_min in _EXAMINED.items():
        for name in (name for name in ORDER_NAMES[field_name] if name in names):
            count, evidence[name] = facts[name].fitting(field_name, rows)
            if count and count >= share_min * rows:
                fitting[field_name].append(name)
    amounts = dict.fromkeys(
        [*fitting["total"], *(name for of, name in used if of == "total" and name in facts)]
    )
    totals = TotalCandidates()
    if amounts:
        some = orders.with_lines(list(amounts))
        totals = TotalCandidates.of(
            some.assign(**{name: money(some[name], facts[name].amounts) for name in amounts})
        )
    proposed: dict[str, str | None] = {
        name: columns[0] if columns else None for name, columns in fitting.items()
    }
    disputed = dict.fromkeys(ORDER_FIELDS, "")
    proposed["customer_id"], disputed["customer_id"] = _propose_customer(
        orders, names, customers, configured.customer_notation, evidence
    )
    proposed["total"], disputed["total"] = totals.choose(fitting["total"])

    chosen: dict[str, str | None] = {}
    findings = list[pd.DataFrame]()
    unknown: dict[str, str] = {}

    def found(rule: str, detail: str) -> None:
        if rows or rule == "field_changed":
            findings.append(table_finding("orders", rule, detail))

    for name in ORDER_FIELDS:
        setting, before, now = getattr(configured, name), getattr(pinned, name), proposed[name]
        is_gone, is_pieces = (
            before not in orders.kinds,
            name == "total" and totals.holdings.get(before) == "pieces",
        )
        chosen[name] = setting or (now if is_gone or is_pieces else before)
        advice = f"set reconcile.order_{name.removeprefix('order_')}"
        dispute = disputed[name]
        if setting is None and before is not None and now != before:
            given = 0 if is_gone else facts[before].given
            changes = (
                (is_gone, f"{before} is gone, {now or 'no column'} is used"),
                (is_pieces, f"{before} is the number of pieces, {now or 'no column'} is used"),
                (now is not None, f"{before} is kept, {now} fits better now"),
                (dispute, f"{before} is kept, but {dispute}"),
                (
                    name in _EXAMINED and given < FILLED_SHARE_MIN * rows,
                    f"{before} is kept, but {given} of {rows} orders have a value",
                ),
            )
            for change in [change for holds, change in changes if holds][:1]:
                found("field_changed", f"{name}: {change}; {advice}")
        if not rows or name not in _EXPECTED:
            continue
        if (used_now := chosen[name]) is None:
            unknown[name] = f"{name}: {dispute or 'no column is proven'}"
            reason = f"{dispute}; " if dispute else ""
            detail = f"{name}: {reason}{_candidates(name, orders, evidence)}; {advice}"
            found("field_disputed" if dispute else "field_not_found", detail)
        elif name in _EXAMINED and (given := facts[used_now].given) < FILLED_SHARE_MIN * rows:
            unknown[name] = f"{name}: {used_now} has a value in {given} of {rows} orders"
        elif name == "total" and given < rows:
            found("total_missing", f"total: {used_now} has a value in {given} of {rows} orders")
    total = chosen["total"] or ""
    holding = totals.holdings.get(total)
    is_in_cents = holding == "cents" or (
        pinned.is_in_cents and chosen["total"] == pinned.total and holding != "amount"
    )
    if holding == "cents":
        found(
            "total_in_cents",
            f"total: {total} is a hundred times what the lines come to: it is divided by 100",
        )
    elif pinned.is_in_cents and chosen["total"] == pinned.total and not is_in_cents:
        found(
            "field_changed",
            f"total: {total} was in hundredths and is not any more; set reconcile.order_total",
        )
    differing = [f"{name} in {counts} orders" for name, counts in totals.differing(total).items()]
    differing += ["what the lines come to in most orders"] if holding in ("pieces", "other") else []
    if differing:
        found("totals_differ", f"total: {total} is used; it differs from {', '.join(differing)}")
    if unlike := totals.unlike_lines(total):
        found(
            "lines_differ",
            f"total: {total} is not what the lines come to in {unlike} orders that were compared",
        )
    cancellation, doubt = _cancellation(
        orders, facts, chosen["order_status"], configured.cancelled_values
    )
    if doubt:
        candidates = _candidates("order_status", orders, evidence)
        found(
            "cancelled_unknown", f"order_status: {doubt}; {candidates}; set reconcile.order_status"
        )
    notation, is_set = configured.customer_notation, configured.customer_notation is not None
    if not is_set and chosen["customer_id"] == pinned.customer_id:
        notation = pinned.customer_notation
    fields = OrderFields(
        *chosen.values(),
        customer_notation=notation,
        is_notation_set=is_set,
        is_in_cents=is_in_cents,
    )
    of_total = facts[total].amounts if total else AmountEvidence()
    return FieldChoice(
        fields, of_total, cancellation, unknown, evidence, combine_findings(findings)
    )


def _examined(
    orders: OrderColumns, names: Sequence[str], used: Iterable[tuple[str, str]]
) -> dict[str, ColumnFacts]:
    """The facts of the columns that may hold a field, that may say that an order is cancelled, or that are `used`."""
    wanted: dict[str, set[str]] = {}
    for name, kind in related_columns(names, None).items():
        wanted.setdefault(name, set()).update(() if kind == "time" else ["order_status"])
    possible = [name for name in names if orders.kinds[name] in _KINDS]
    named = [
        (field, name) for field in _EXAMINED for name in possible if name in ORDER_NAMES[field]
    ]
    for field_name, name in [*named, *(one for one in used if one[1] in orders.kinds)]:
        wanted.setdefault(name, set()).add(field_name)
    facts = {name: ColumnFacts(fields) for name, fields in wanted.items()}
    for part in orders.parts(facts) if facts else ():
        listed, others = part[~part["is_missing"]], part[part["is_missing"]]
        for name, of_column in facts.items():
            of_column.add(listed[name], others[name])
    return facts


def _cancellation(
    orders: OrderColumns,
    facts: Mapping[str, ColumnFacts],
    status: str | None,
    values: Collection[str] | None,
) -> tuple[Cancellation, str]:
    """How it is read whether an order is cancelled, and why it is not known; empty where it is."""
    columns = [*related_columns(orders.kinds, status), *filter(None, [status])]
    words = {name: facts[name].words or {"1"} for name in columns if facts[name].given}
    cancellation = Cancellation.of(status, words, values)
    of_status = facts[status].words if status is not None else set()
    has_words = any(letter.isalpha() for word in of_status for letter in word)
    if (
        has_words if values is None else cancellation.is_found(of_status)
    ) or cancellation.witnesses.keys() - {status}:
        return cancellation, ""
    if values is not None:
        return cancellation, "no order has a value of reconcile.order_cancelled"
    return cancellation, "values without a letter" if status is not None else "no column is proven"


def _candidates(wanted: str, orders: OrderColumns, evidence: Mapping[str, str]) -> str:
    names = [
        name
        for name in orders.kinds
        if RELATED_NAMES[wanted].search(name) and not name.startswith("_")
    ]
    listed = [f"{name} ({evidence[name]})" if name in evidence else name for name in sorted(names)]
    return "candidates: " + ", ".join(listed) if listed else "no column with a related name"


def _propose_customer(
    orders: OrderColumns,
    names: Sequence[str],
    index: CustomerIndex,
    notation: CustomerNotation | None,
    evidence: dict[str, str],
) -> tuple[str | None, str]:
    """The column, or that columns which fit refer to different customers."""
    proven: dict[str, CustomerMatch] = {}

    def match(name: str, values: pd.DataFrame, notation: CustomerNotation | None) -> CustomerMatch:
        return index.match(texts_of(values[name]), name, notation, values["row_count"])

    for name in (
        name for name in names if CUSTOMER_NAME.fullmatch(name) or RIVAL_NAME.fullmatch(name)
    ):
        found = match(name, orders.distinct([name]), notation)
        evidence[name] = found.evidence
        hits, count = found.codes if found.is_by_code else found.ids, found.named_count
        if count and hits >= MATCHED_SHARE_MIN * count and hits >= CUSTOMER_ROWS_MIN * orders.rows:
            proven[name] = found

    def refer_to_same(*pair: str) -> bool:
        values = orders.distinct(pair)
        left, right = (match(name, values, proven[name].notation).customer_id for name in pair)
        return same_customers(left, right, values["row_count"])

    rivals = [name for name in proven if not CUSTOMER_NAME.fullmatch(name)]
    by_code = [name for name, found in proven.items() if found.is_by_code and name not in rivals]
    # Codes are texts that somebody chose, ids are small numbers that many columns hold.
    by_id = sorted(
        proven.keys() - {*by_code, *rivals}, key=lambda name: (name not in _PREFERRED_IDS, name)
    )
    for group in ([*by_id, *by_code], by_code):
        if group and all(refer_to_same(name, group[0]) for name in group[1:]):
            customers = proven[group[0]].customer_id.nunique()
            of_rivals = [name for name in rivals if not by_code or proven[name].is_by_code]
            of_rivals = [
                name
                for name in of_rivals
                if proven[name].customer_id.nunique() >= _RIVAL_CUSTOMERS_MIN * customers
                and not refer_to_same(name, group[0])
            ]
            if of_rivals:
                return None, f"{' and '.join([group[0], *of_rivals])} refer to different customers"
            return group[0], ""
    return None, f"{' and '.join(by_id)} refer to different customers" if by_id else ""


def texts_of(values: Column[Any]) -> Column[Any]:
    """A column of text, of numbers or of anything else as text; null where blank. Whole doubles have no exponent."""
    plain = array(values)
    if plain.type == MONEY:
        text = pc.replace_substring_regex(
            plain.cast(TEXT), r"(\.[0-9]*?)0+$", r"\1"
        )  # has 9 decimals
        plain = pc.if_else(pc.equal(plain, 0), "0", pc.replace_substring_regex(text, r"\.$", ""))
    if plain.type == _DOUBLE:
        is_whole = pc.and_(pc.equal(pc.floor(plain), plain), pc.less(pc.abs(plain), 2.0**53))
        whole = pc.if_else(is_whole, plain, None).cast(BIGINT).cast(TEXT)
        return column(pc.coalesce(whole, plain.cast(TEXT)), values.index)
    return clean_text(column(plain.cast(TEXT), values.index))


def money(values: Column[Any], evidence: AmountEvidence | None = None) -> Column[Any]:
    """Numbers and texts of numbers as MONEY, null where they are none or have more than 20 digits before the point.

    Each number of JSON is read, with an exponent or many decimals too; beyond nine decimals it is rounded half up. A
    double is taken as the shortest decimal that it is read from. Texts such as `1.234` are null unless the column
    proves a decimal point; `evidence` is that of the column that these values are a part of, None: they are all of it.
    """
    kind = array(values).type
    if kind == BOOLEAN:
        return column(pa.nulls(len(values), MONEY), values.index)
    if kind == MONEY:
        plain = array(values)
        return column(pc.if_else(pc.less(pc.abs(plain), _AMOUNT_LIMIT), plain, None), values.index)
    texts = texts_of(values)
    if kind == TEXT:
        if evidence is None:
            evidence = AmountEvidence()
            evidence.add(values)
        if not evidence.is_point:
            texts = texts.mask(texts.str.fullmatch(_THOUSANDS_OR_DECIMALS).fillna(False))
    return _amounts(texts)


def _amounts(texts: Column[Any]) -> Column[Any]:
    """The amounts of texts, see `money`, with a decimal point in each."""
    plain = array(texts.where(texts.str.fullmatch(_AMOUNT).fillna(False)))
    # Half of the last decimal is rounded up whatever follows the tenth.
    short = pc.replace_substring_regex(plain, r"(\.[0-9]{10})[0-9]+", r"\1")
    amounts = pc.round(short.cast(_TEN_DECIMALS), 9, "half_towards_infinity").cast(MONEY)
    is_scientific = array(texts.str.fullmatch(_SCIENTIFIC).fillna(False))
    if pc.any(is_scientific).as_py():
        read = [_scientific_amount(text) for text in array(texts).filter(is_scientific).to_pylist()]
        amounts = pc.replace_with_mask(amounts, is_scientific, pa.array(read, MONEY))
    return column(amounts, texts.index)


def _scientific_amount(text: str) -> Decimal | None:
    number = Decimal(text)
    if abs(number) >= _AMOUNT_LIMIT.as_py():
        return None
    return number.quantize(_BILLIONTH, ROUND_HALF_UP, _EVERY_DIGIT)
