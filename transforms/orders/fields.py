"""Which columns of the raw orders hold customer, date, total, status and currency: the interface does not show them.

In: the raw orders with whatever columns they have, the customers, and the answers in force. Out: a question for each
field with the evidence of each column that may hold it, the columns that are used, and findings. An answer decides
before an assumption, an assumption before a proposal: new columns never change the meaning of a table by themselves.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final, cast

import numpy as np
import pandas as pd

from orderbridge.transforms.findings import combine_findings, table_finding, to_answer
from orderbridge.transforms.frames import look_up
from orderbridge.transforms.orders.amount_unit import CENTS, UNIT, unit_question
from orderbridge.transforms.orders.cancelled import Cancellation, Witness, related_columns
from orderbridge.transforms.orders.columns import (
    AmountEvidence,
    ColumnFacts,
    Kind,
    OrderColumns,
    money,
    texts_of,
)
from orderbridge.transforms.orders.customer_evidence import CUSTOMER, customer_evidence
from orderbridge.transforms.orders.customer_index import CustomerIndex
from orderbridge.transforms.orders.field_evidence import (
    FILLED_SHARE_MIN,
    NOT_PROVEN,
    ExaminedColumns,
    FieldRule,
)
from orderbridge.transforms.orders.line_discounts import (
    DISCOUNT_UNIT,
    DiscountUnit,
    discount_question,
)
from orderbridge.transforms.orders.lines import line_sums
from orderbridge.transforms.orders.names import ORDER_NAMES, RELATED_NAMES
from orderbridge.transforms.orders.statuses import region_or_status, status_columns
from orderbridge.transforms.orders.total_candidates import (
    LINE_SUMS,
    SUM_OF_LINES,
    SUM_OF_PAYMENTS,
    SUMS,
    Numbers,
    TotalCandidates,
    total_evidence,
)
from orderbridge.transforms.questions import Answer, Choice, Evidence, Question, question
from orderbridge.transforms.values.date_forms import SHARE_MIN

ORDER_FIELDS: Final = ("customer_id", "ordered_at", "total", "order_status", "currency")
RULES: Final = {
    "ordered_at": FieldRule(
        "reconcile.order_ordered_at", ORDER_NAMES["ordered_at"], "text", FILLED_SHARE_MIN
    ),
    "total": FieldRule("reconcile.order_total", ORDER_NAMES["total"], "amount", SHARE_MIN),
    "order_status": FieldRule(
        "reconcile.order_status", ORDER_NAMES["order_status"], "words", FILLED_SHARE_MIN
    ),
    "currency": FieldRule(
        "reconcile.order_currency",
        [*ORDER_NAMES["currency"], *ORDER_NAMES["currency_of_buyer"]],
        "currency",
        SHARE_MIN,
    ),
}
"""How the columns of the fields are recognized, but that of the customer: see `customer_evidence`."""
CHARGES: Final = {
    "tax": FieldRule("reconcile.order_tax", ORDER_NAMES["tax"], "amount", SHARE_MIN),
    "shipping": FieldRule("reconcile.order_shipping", ORDER_NAMES["shipping"], "amount", SHARE_MIN),
}
"""What a total may have in it. Nobody is asked: without an answer, there is no net revenue."""
_HALF: Final = 0.5
_EXPECTED: Final = ("customer_id", "ordered_at", "total")
"""Fields that every order should have; a status or a currency may not exist."""
_FILLED: Final = ("ordered_at", "total", "currency")
"""Fields of which the orders without a value are found, where most have one. A customer may be missing in many."""
FIELD_QUESTIONS: Final = {
    name: CUSTOMER if name == "customer_id" else RULES[name].question for name in ORDER_FIELDS
}
"""The question about each field: the key of its setting."""
COLUMN_QUESTIONS: Final = {
    **FIELD_QUESTIONS,
    **{name: rule.question for name, rule in CHARGES.items()},
}
"""The questions whose answer is a column of the raw orders, by field."""
NO_COLUMN: Final = "none"
"""The answer that orders have no status, so that all are sales; or no currency, as all are in the same one."""
OTHER_ANSWERS: Final[dict[str, tuple[str, ...]]] = {
    FIELD_QUESTIONS["total"]: SUMS,
    FIELD_QUESTIONS["order_status"]: (NO_COLUMN,),
    FIELD_QUESTIONS["currency"]: (NO_COLUMN,),
}
"""Answers that are no name of a column, by question."""
_ONE_CURRENCY: Final = Choice(NO_COLUMN, "all totals are in one currency, which no column has")
_CURRENCIES_MAX: Final = 20
"""Distinct values from which a column without codes holds something else than currencies."""
_NO_ANSWERS: Final[Mapping[str, Answer]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class OrderFields:
    """Columns of the raw orders by what they hold; None where none is known.

    Attributes:
        customer_id: ids of the customers, or their ERP codes.
        ordered_at: when the order was made.
        total: its amount.
        order_status: its status, in the platform's words.
        currency: of the amount.
        tax, shipping: of the amount, see `CHARGES`.
        is_in_cents: the totals are hundredths of the unit of the currency.
    """

    customer_id: str | None = None
    ordered_at: str | None = None
    total: str | None = None
    order_status: str | None = None
    currency: str | None = None
    tax: str | None = field(default=None, kw_only=True)
    shipping: str | None = field(default=None, kw_only=True)
    is_in_cents: bool = field(default=False, kw_only=True)

    def columns(self) -> dict[str, str]:
        """The known columns by field."""
        columns = {name: getattr(self, name) for name in (*ORDER_FIELDS, *CHARGES)}
        return {name: value for name, value in columns.items() if value is not None}


@dataclass(frozen=True, slots=True)
class LineUnits:
    """What the amounts of lines are.

    Attributes:
        discount: how discounts are read; None where no line has one, or it is not known.
        is_in_cents: the amounts are in cents, as the totals.
        is_known: it is known whether they are in cents.
    """

    discount: DiscountUnit | None = None
    is_in_cents: bool = False
    is_known: bool = True


@dataclass(frozen=True, slots=True)
class FieldChoice:
    """The fields to use, with findings about the choice.

    Attributes:
        fields: their columns.
        amounts: what the values of the column of totals prove about their notation.
        is_shown_by_lines: the lines show that totals are hundredths. Else cents are those of the currency.
        lines: what the amounts of lines are.
        charges: of the columns of tax and shipping, what their values prove about their notation.
        cancellation: how it is read whether an order is cancelled.
        unknown: why customers, dates or totals are not known, by field.
        evidence: of every column that was examined: names and counts, no values.
        findings: the columns of `FINDINGS`.
        questions: about the fields, and the unit of the totals where that is in question.
        has_refunds: the orders have refunds or states of payments beside them.
        is_in_utc: times without an offset are in UTC, whatever the time zone of the reports.
    """

    fields: OrderFields
    amounts: AmountEvidence
    cancellation: Cancellation = field(default_factory=Cancellation)
    is_shown_by_lines: bool = True
    lines: LineUnits = LineUnits()
    charges: Mapping[str, AmountEvidence] = field(default_factory=dict)
    unknown: Mapping[str, str] = field(default_factory=dict)
    evidence: Mapping[str, str] = field(default_factory=dict)
    findings: pd.DataFrame = field(default_factory=pd.DataFrame)
    questions: Sequence[Question] = ()
    has_refunds: bool = False
    is_in_utc: bool = False


def choose_fields(
    orders: OrderColumns,
    customers: CustomerIndex,
    answers: Mapping[str, Answer] = _NO_ANSWERS,
    cancelled_values: Collection[str] | None = None,
) -> FieldChoice:
    """Decides which columns hold the fields of an order (interface, GET /orders: not shown).

    A column is proposed if it has one of the names in `transforms.orders.names`, and values in enough of the rows:
    known customers in half of the rows and 90 % of the values, dates in 90 % of the rows (whatever their format),
    decimal numbers and codes of currencies in 95 %. If only one fits, it is proven. Of several, the preferred name is
    proposed, and people are asked.

    Args:
        orders: the columns of the raw orders.
        customers: the reconciled customers.
        answers: in force, by the id of their question.
        cancelled_values: of the status, which mean that an order is cancelled; None: as their words say.
    """
    columns = _examined(orders, answers)
    totals, discount = _compared(orders, columns, answers)
    asked = _asked(orders, customers, columns, totals, answers)
    unit = _unit(asked, columns, totals, answers)
    used = _used(asked, unit)
    status = asked["order_status"].value
    cancellation, doubt = _cancellation(orders, columns.facts, status, cancelled_values)
    if status is None and not doubt:  # other columns say what is cancelled
        del asked["order_status"]
    found = [
        *_field_findings(columns, asked),
        *_unit_findings(unit, asked["total"].value, totals),
        *_total_findings(used["total"], columns, totals),
        *_cancelled_findings(doubt, columns),
    ]
    is_shown_by_lines = totals.holdings.get(used["total"] or "") == "cents"
    is_in_cents = unit is not None and unit.value == CENTS
    amounts = {
        name: columns.facts[column].amounts
        for name, column in used.items()
        if column in columns.facts
    }
    return FieldChoice(
        fields=OrderFields(**used, is_in_cents=is_in_cents),
        amounts=amounts.get("total", AmountEvidence()),
        is_shown_by_lines=is_shown_by_lines,
        lines=LineUnits(
            discount=_discount_unit(discount),
            is_in_cents=is_in_cents and not is_shown_by_lines,
            is_known=not _is_open(unit),
        ),
        cancellation=cancellation,
        unknown=_unknown(columns, asked, unit),
        evidence=columns.evidence,
        findings=combine_findings(found),
        charges={name: amounts[name] for name in CHARGES if name in amounts},
        questions=_questions(columns, asked, unit, discount),
    )


def _used(asked: Mapping[str, Question], unit: Question | None) -> dict[str, str | None]:
    """The column of each field; None where none is used, such as a total of an unknown unit."""
    used = {name: None if one.value == NO_COLUMN else one.value for name, one in asked.items()}
    if _is_open(unit):
        used["total"] = None
    return used


def _is_open(unit: Question | None) -> bool:
    """Whether it is not known what the totals are in."""
    return unit is not None and unit.value is None


def _examined(orders: OrderColumns, answers: Mapping[str, Answer]) -> ExaminedColumns:
    """The columns that may hold a field, or say that an order is cancelled; of charges, those that are answered."""
    read_as: dict[Witness, set[Kind]] = {"time": set(), "tags": {"tags"}}
    also = {
        name: read_as.get(kind, {"words"})
        for name, kind in related_columns(orders.kinds, None).items()
    }
    charges = {name: rule for name, rule in CHARGES.items() if rule.question in answers}
    return ExaminedColumns.of(orders, {**RULES, **charges}, answers, also)


def _asked(
    orders: OrderColumns,
    customers: CustomerIndex,
    columns: ExaminedColumns,
    totals: TotalCandidates,
    answers: Mapping[str, Answer],
) -> dict[str, Question]:
    """The question about each field."""
    answer_of = {name: answers.get(key) for name, key in COLUMN_QUESTIONS.items()}
    total = question(total_evidence(columns, totals, answer_of["total"]), answer_of["total"])
    evidence = {
        "customer_id": customer_evidence(orders, customers, columns, answers),
        "ordered_at": _time_evidence(columns, answer_of["ordered_at"]),
        "order_status": _status_evidence(columns, answer_of["order_status"]),
        "currency": _currency_evidence(orders, columns, total.value, answer_of["currency"]),
    }
    charges = [name for name in CHARGES if name in columns.rules]
    evidence |= {name: _evidence(name, columns, answer_of[name]) for name in charges}
    asked = {name: question(one, answer_of[name]) for name, one in evidence.items()}
    asked["total"] = total
    return {name: asked[name] for name in (*ORDER_FIELDS, *charges)}


def _questions(
    columns: ExaminedColumns, asked: Mapping[str, Question], *others: Question | None
) -> list[Question]:
    """The questions to keep: none without orders, nor about a field that may not exist and that nothing may hold."""
    if not columns.rows:
        return []
    kept: list[Question] = []
    for name, one in asked.items():
        is_doubtful = one.reason not in ("", NOT_PROVEN)
        if one.value is not None or name in _EXPECTED or name in CHARGES or is_doubtful:
            kept.append(one)
    kept += [one for one in others if one is not None]
    return kept


def _compared(
    orders: OrderColumns, columns: ExaminedColumns, answers: Mapping[str, Answer]
) -> tuple[TotalCandidates, Question | None]:
    """The columns that may hold the total, compared with the lines; and how discounts of the lines are read."""
    names = _possible_totals(orders, columns, answers.get(RULES["total"].question))
    some, lines = orders.sample(names)
    evidence = {name: columns.facts[name].amounts for name in names if name in columns.facts}
    read = {name: money(some[name], evidence.get(name)) for name in names}
    amounts = pd.DataFrame(read, some.index)
    discount = None
    if orders.discount is not None:
        of_orders = amounts.astype("float64").set_axis(some["id"], axis="index")
        given = answers.get(DISCOUNT_UNIT)
        discount = discount_question(orders.discount, lines, of_orders, given)
    sums = line_sums(lines, _discount_unit(discount) or "included")
    come_to = look_up(some["id"], sums, "order_id")[[*LINE_SUMS]]
    return TotalCandidates.of(amounts.assign(**come_to), _prices(lines)), discount


def _possible_totals(
    orders: OrderColumns, columns: ExaminedColumns, answer: Answer | None
) -> list[str]:
    """The columns that fit the total, and what is answered; without them, the sum of the payments."""
    names = [*columns.fitting["total"]]
    answered = "" if answer is None else answer.value
    if answered in orders.kinds and answered not in names:
        names.append(answered)
    if orders.have_payments and (not names or answered == SUM_OF_PAYMENTS):
        names.append(SUM_OF_PAYMENTS)
    return names


def _discount_unit(discount: Question | None) -> DiscountUnit | None:
    """How discounts of lines are read; None where no line has one, or it is not known."""
    return None if discount is None else cast(DiscountUnit | None, discount.value)


def _prices(lines: pd.DataFrame) -> Numbers:
    """The prices of products, or their amounts, before discounts: those of cents have no decimals."""
    products = lines[lines["line_kind"] == "product"]
    for name in ("unit_price", "line_total"):
        if name in products:
            return products[name].dropna().to_numpy(np.float64)
    return np.empty(0)


def _evidence(
    name: str, columns: ExaminedColumns, answer: Answer | None, fitting: Sequence[str] | None = None
) -> Evidence:
    """The evidence about a field: the first column that fits is proposed, and proven where no other fits.

    Args:
        name: of the field.
        columns: those that were read.
        answer: in force.
        fitting: the columns that fit, the preferred first; None: by their names.
    """
    fitting = columns.fitting[name] if fitting is None else fitting
    proposal = fitting[0] if fitting else None
    listed = [*dict.fromkeys([*fitting, *columns.named(name)])]
    if not fitting and name in _EXPECTED:
        listed += columns.others(name, RELATED_NAMES[name])
    choices = columns.choices(name, listed, proposal, answer)
    question_id = columns.rules[name].question
    is_proven = len(fitting) < 2
    return Evidence(question_id, tuple(choices), proposal, is_proven, reason=NOT_PROVEN)


def _time_evidence(columns: ExaminedColumns, answer: Answer | None) -> Evidence:
    """The evidence about the time. Another one that only carts and imports lack is a question."""
    evidence = _evidence("ordered_at", columns, answer)
    filled = [
        name
        for name in columns.named("ordered_at")
        if columns.facts[name].given >= _HALF * columns.rows
    ]
    return replace(evidence, is_proven=evidence.is_proven and len(filled) < 2)


def _status_evidence(columns: ExaminedColumns, answer: Answer | None) -> Evidence:
    """The evidence about the status. Where no column is known to be it, those with a few values are offered."""
    words = {name: of_column.words for name, of_column in columns.facts.items()}
    named = columns.fitting["order_status"]
    # of a pair of an id and a name, the name says it
    worded = [name for name in named if f"{name}__name" not in named]
    fitting = status_columns(worded, words)
    is_none = answer is not None and answer.value == NO_COLUMN
    evidence = _evidence("order_status", columns, None if is_none else answer, fitting)
    if fitting and not is_none:
        return evidence
    others = columns.others("order_status", RELATED_NAMES["order_status"])
    offered = columns.choices("order_status", others, None, None)
    none = Choice(NO_COLUMN, "orders have no status: all are sales")
    doubtful = region_or_status(named, words)
    reason = "no column is known to be the status"
    if doubtful:
        reason = f"{doubtful[0]} is the status, or the region of an address"
    return replace(evidence, choices=(*evidence.choices, *offered, none), reason=reason)


def _currency_evidence(
    orders: OrderColumns, columns: ExaminedColumns, total: str | None, answer: Answer | None
) -> Evidence:
    """The evidence about the currency: that beside the total first. That of the buyer alone is not proposed.

    A rate other than 1 is a doubt, unless the currency is in one object with the total: OpenCart's `currency_code` is
    what the buyer saw, and its totals are in the currency of the shop.
    """
    beside = f"{total}".rpartition("__")[0]
    fitting = sorted(
        columns.fitting["currency"],
        key=lambda name: not beside or not name.startswith(f"{beside}__"),
    )
    is_none = answer is not None and answer.value == NO_COLUMN
    evidence = _evidence("currency", columns, None if is_none else answer, fitting)
    if fitting or is_none:
        evidence = replace(evidence, choices=(*evidence.choices, _ONE_CURRENCY))
    if not fitting:
        return _several_currencies(orders, columns, answer) or evidence
    if fitting[0] in ORDER_NAMES["currency_of_buyer"]:
        reason = f"{fitting[0]} is the currency of the buyer, which the total need not be in"
        return replace(evidence, proposal=None, reason=reason)
    is_same = all(_are_equal(orders, fitting[0], other) for other in fitting[1:])
    is_beside = bool(beside) and fitting[0].startswith(f"{beside}__")
    rate = "" if is_beside else _rate_of(orders, columns)
    if rate:
        first, *others = evidence.choices
        noted = replace(first, evidence="; ".join(filter(None, [first.evidence, rate])))
        evidence = replace(evidence, choices=(noted, *others))
    return replace(evidence, is_proven=is_same and not rate)


def _several_currencies(
    orders: OrderColumns, columns: ExaminedColumns, answer: Answer | None
) -> Evidence | None:
    """The evidence about a column whose name is that of a currency, where too few of its values are codes.

    Totals beside different values (`S/` and `US$`; `EUR`, `USD` and nothing) are never added up unless somebody says
    so. One value in all orders needs no column.
    """
    if answer is not None and answer.value == NO_COLUMN:
        return None
    for name in columns.named("currency"):
        texts = texts_of(orders.distinct([name])[name]).str.upper()
        is_of_buyer = name in ORDER_NAMES["currency_of_buyer"]
        if not is_of_buyer and 1 < texts.nunique() <= _CURRENCIES_MAX:
            evidence = _evidence("currency", columns, answer, [name])
            return replace(evidence, choices=(*evidence.choices, _ONE_CURRENCY), is_proven=False)
    return None


def _rate_of(orders: OrderColumns, columns: ExaminedColumns) -> str:
    """In how many orders a rate says that amounts were converted, in words; empty where none does."""
    for name in ORDER_NAMES["currency_rate"]:
        if name not in columns.names:
            continue
        rates = orders.distinct([name])
        rate = money(rates[name])
        is_other = ((rate > 0) & (rate != 1)).fillna(False)
        count = int(rates["row_count"][is_other].sum())
        if count:
            return f"{name} is not 1 in {count} of {columns.rows} orders"
    return ""


def _are_equal(orders: OrderColumns, name: str, other: str) -> bool:
    """Whether two columns have the same texts in all orders."""
    pairs = orders.distinct([name, other])
    return not (texts_of(pairs[name]) != texts_of(pairs[other])).any()


def _unit(
    asked: Mapping[str, Question],
    columns: ExaminedColumns,
    totals: TotalCandidates,
    answers: Mapping[str, Answer],
) -> Question | None:
    """The question about the unit of the totals; None where there are none, or nothing shows it."""
    total = asked["total"].value or SUM_OF_LINES
    if total in SUMS and not totals.summed(total).hits:
        return None
    holding = totals.holdings.get(total)
    values = totals.values.get(total, totals.prices)
    currency = asked["currency"].value
    codes = columns.facts[currency].currencies if currency in columns.facts else {}
    return unit_question(total, holding, values, totals.prices, codes, answers.get(UNIT))


def _field_findings(
    columns: ExaminedColumns, asked: Mapping[str, Question]
) -> Iterator[pd.DataFrame]:
    """The answers that are contradicted, and the fields that every order should have and that are not known."""
    for name, one in asked.items():
        if one.state == "contradicted":
            detail = to_answer(f"{name}: {one.reason}", one.id)
            yield table_finding("orders", "field_changed", detail, name)
        if columns.rows and name in _EXPECTED and one.value is None:
            yield _unknown_field(name, one, columns)
        if name in _FILLED and one.value in columns.facts:
            given = columns.facts[one.value].given
            if FILLED_SHARE_MIN * columns.rows <= given < columns.rows:
                detail = f"{name}: {one.value} has a value in {columns.given(one.value)}"
                yield table_finding("orders", f"{name}_missing", detail)


def _unknown_field(name: str, asked: Question, columns: ExaminedColumns) -> pd.DataFrame:
    """That a field is not known, and which columns may hold it."""
    dispute = asked.evidence.dispute
    rule = "field_disputed" if dispute else "field_not_found"
    parts = [dispute, _candidates(name, columns)]
    detail = to_answer(f"{name}: {'; '.join(filter(None, parts))}", asked.id)
    return table_finding("orders", rule, detail, name)


def _unknown(
    columns: ExaminedColumns, asked: Mapping[str, Question], unit: Question | None
) -> dict[str, str]:
    """Why customers, dates or totals are not known, by field."""
    unknown: dict[str, str] = {}
    if not columns.rows:
        return unknown
    for name in _EXPECTED:
        value = asked[name].value
        if value is None:
            unknown[name] = f"{name}: {asked[name].evidence.dispute or NOT_PROVEN}"
        elif name in RULES and value in columns.facts and not columns.is_filled(value):
            unknown[name] = f"{name}: {value} has a value in {columns.given(value)}"
    total = asked["total"].value
    if total is not None and _is_open(unit):
        unknown["total"] = f"total: {_of_open_unit(unit, total)}"
    return unknown


def _unit_findings(
    unit: Question | None, total: str | None, totals: TotalCandidates
) -> Iterator[pd.DataFrame]:
    """That the totals are hundredths or may be, or are something else than before."""
    if unit is None:
        return
    if unit.state == "contradicted":
        detail = to_answer(f"total: {unit.reason}", UNIT)
        yield table_finding("orders", "field_changed", detail, "total")
    elif unit.value is None:
        detail = to_answer(f"total: {_of_open_unit(unit, total)}", UNIT)
        yield table_finding("orders", "field_not_found", detail, "total")
    elif unit.value == CENTS and totals.holdings.get(total or "") == "cents":
        words = f"total: {total} is a hundred times what the lines come to: it is divided by 100"
        yield table_finding("orders", "total_in_cents", words)


def _of_open_unit(unit: Question | None, total: str | None) -> str:
    """That nothing shows the unit of the totals, or of the lines where there are none, and why it is in doubt."""
    reason = "" if unit is None else unit.reason
    return f"{total or 'what the lines come to'} is in units or in cents: {reason}"


def _cancelled_findings(doubt: str, columns: ExaminedColumns) -> Iterator[pd.DataFrame]:
    """That it is not known which orders are cancelled, and why; empty: it is."""
    if doubt and columns.rows:
        candidates = _candidates("order_status", columns)
        detail = to_answer(f"order_status: {doubt}; {candidates}", FIELD_QUESTIONS["order_status"])
        yield table_finding("orders", "cancelled_unknown", detail)


def _total_findings(
    total: str | None, columns: ExaminedColumns, totals: TotalCandidates
) -> Iterator[pd.DataFrame]:
    """Where the total differs from the other columns that may be it, and from the lines."""
    if total is None or not columns.rows:
        return
    differing = [f"{name} in {counts} orders" for name, counts in totals.differing(total).items()]
    if totals.holdings.get(total) in ("pieces", "other"):
        differing.append("what the lines come to in most orders")
    if differing:
        detail = f"total: {total} is used; it differs from {', '.join(differing)}"
        yield table_finding("orders", "totals_differ", detail)
    if unlike := totals.unlike_lines(total):
        words = f"is not what the lines come to in {unlike} orders that were compared"
        yield table_finding("orders", "lines_differ", f"total: {total} {words}")


def _cancellation(
    orders: OrderColumns,
    facts: Mapping[str, ColumnFacts],
    status: str | None,
    values: Collection[str] | None,
) -> tuple[Cancellation, str]:
    """How it is read whether an order is cancelled, and why it is not known; empty where it is."""
    column = None if status == NO_COLUMN else status
    columns = related_columns(orders.kinds, column)
    words = {name: facts[name].words or {"1"} for name in columns if facts[name].given}
    cancellation = Cancellation.of(column, words, is_status_alone=values is not None)
    is_said = bool(cancellation.witnesses.keys() - set(cancellation.test_columns))
    if is_said or status == NO_COLUMN:
        return cancellation, ""
    if column is None:
        return cancellation, NOT_PROVEN
    if values is not None and not _has_any(facts[column], values):
        return cancellation, "no order has a value of reconcile.order_cancelled"
    return cancellation, ""


def _has_any(facts: ColumnFacts, values: Collection[str]) -> bool:
    """Whether a column has one of these values, in upper or lower case."""
    wanted = {value.casefold() for value in values}
    return any(word.casefold() in wanted for word in facts.words)


def _candidates(wanted: str, columns: ExaminedColumns) -> str:
    """The columns with a related name, with their evidence, in words."""
    evidence = columns.evidence
    names = [
        name
        for name in sorted(columns.kinds)
        if RELATED_NAMES[wanted].search(name) and not name.startswith("_")
    ]
    listed = [f"{name} ({evidence[name]})" if name in evidence else name for name in names]
    return "candidates: " + ", ".join(listed) if listed else "no column with a related name"
