"""Which columns of the raw orders hold customer, date, total, status and currency: the interface does not show them.

In: the raw orders with whatever columns they have, the customers, and the answers in force. Out: a question for each
field with the evidence of each column that may hold it, the columns that are used, and findings. An answer decides
before an assumption, an assumption before a proposal: new columns never change the meaning of a table by themselves.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

import pandas as pd

from orderbridge.transforms.cancelled import Cancellation, related_columns
from orderbridge.transforms.chance import Share
from orderbridge.transforms.customer_index import (
    MATCHED_SHARE_MIN,
    CustomerIndex,
    CustomerMatch,
    CustomerNotation,
    same_customers,
)
from orderbridge.transforms.date_forms import SHARE_MIN
from orderbridge.transforms.findings import combine_findings, table_finding
from orderbridge.transforms.order_columns import (
    SCALARS,
    AmountEvidence,
    ColumnFacts,
    OrderColumns,
    examples_of,
    money,
    texts_of,
)
from orderbridge.transforms.order_names import CUSTOMER_NAME, ORDER_NAMES, RELATED_NAMES, RIVAL_NAME
from orderbridge.transforms.questions import (
    Answer,
    Choice,
    Evidence,
    Question,
    is_broken,
    question,
)
from orderbridge.transforms.total_candidates import TotalCandidates

CUSTOMER_ROWS_MIN: Final = 0.5
"""Share of the orders that must be of a known customer; the others may be of guests."""
FILLED_SHARE_MIN: Final = 0.9
"""Share of the orders that must have a date and a status, and a value in any column that is kept."""
_PREFERRED_IDS: Final = ("customer_id", "customer__id")
_RIVAL_CUSTOMERS_MIN: Final = 0.5
"""Minimum share of customers that a column of accounts must refer to, to be a rival: staff accounts refer to few."""
_EXAMINED: Final = {
    "ordered_at": FILLED_SHARE_MIN,
    "total": SHARE_MIN,
    "order_status": FILLED_SHARE_MIN,
    "currency": SHARE_MIN,
}
"""The least share of rows whose values must fit a field."""
ORDER_FIELDS: Final = ("customer_id", "ordered_at", "total", "order_status", "currency")
_EXPECTED: Final = ("customer_id", "ordered_at", "total")
"""Fields that every order should have; a status or a currency may not exist."""
FIELD_QUESTIONS: Final = {
    name: f"reconcile.order_{name.removeprefix('order_')}" for name in ORDER_FIELDS
}
"""The question about each field: the key of its setting."""
NOTATION: Final = "reconcile.order_customer_notation"
UNIT: Final = "reconcile.order_total_unit"
_CENTS: Final = "cents"
_UNITS: Final = "units"
_NOT_PROVEN: Final = "no column is proven"
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
        is_in_cents: the totals are hundredths of the unit of the currency.
    """

    customer_id: str | None = None
    ordered_at: str | None = None
    total: str | None = None
    order_status: str | None = None
    currency: str | None = None
    is_in_cents: bool = field(default=False, kw_only=True)

    def columns(self) -> dict[str, str]:
        """The known columns by field."""
        columns = {name: getattr(self, name) for name in ORDER_FIELDS}
        return {name: value for name, value in columns.items() if value is not None}


@dataclass(frozen=True, slots=True)
class FieldChoice:
    """The fields to use, with findings about the choice.

    Attributes:
        fields: their columns.
        amounts: what the values of the column of totals prove about their notation.
        cancellation: how it is read whether an order is cancelled.
        unknown: why customers, dates or totals are not known, by field.
        evidence: of every column that was examined: names and counts, no values.
        findings: the columns of `FINDINGS`.
        questions: about the fields, and the unit of the totals where that is in question.
    """

    fields: OrderFields
    amounts: AmountEvidence
    cancellation: Cancellation = field(default_factory=Cancellation)
    unknown: Mapping[str, str] = field(default_factory=dict)
    evidence: Mapping[str, str] = field(default_factory=dict)
    findings: pd.DataFrame = field(default_factory=pd.DataFrame)
    questions: Sequence[Question] = ()


@dataclass(frozen=True, slots=True)
class _Columns:
    """What was examined.

    Attributes:
        orders: the columns of the raw orders.
        names: of the columns that may hold a field.
        facts: of the columns whose values were read.
        recent: by field, the orders since an answer that have a value in the column that it names, by run.
        fitting: by field, the columns with one of its names and values that fit, the preferred name first.
        evidence: by column, what its values are, in counts.
        examples: by column, a few of its values.
        totals: the columns that may hold the total, compared with the lines.
    """

    orders: OrderColumns
    names: Sequence[str]
    facts: Mapping[str, ColumnFacts]
    recent: Mapping[str, Sequence[Share]]
    fitting: Mapping[str, list[str]]
    evidence: dict[str, str]
    examples: dict[str, Sequence[str]]
    totals: TotalCandidates

    def given(self, column: str) -> str:
        """In how many orders a column has a value, in words."""
        return f"{self.facts[column].given} of {self.orders.rows} orders"

    def share(self, column: str) -> Share:
        """The orders that have a value in a column."""
        return Share(self.facts[column].given, self.orders.rows)

    def words(self, column: str) -> str:
        """What the values of a column are, in counts, and a few of them."""
        parts = [self.evidence.get(column, "")]
        if column in self.totals.values:
            parts.append(self.totals.like_lines(column))
        if self.examples.get(column):
            parts.append(f"such as {', '.join(self.examples[column])}")
        return "; ".join(filter(None, parts))

    def is_filled(self, column: str) -> bool:
        """Whether enough of the orders have a value in a column."""
        return self.facts[column].given >= FILLED_SHARE_MIN * self.orders.rows


def choose_fields(
    orders: OrderColumns,
    customers: CustomerIndex,
    answers: Mapping[str, Answer] = _NO_ANSWERS,
    cancelled_values: Collection[str] | None = None,
) -> FieldChoice:
    """Decides which columns hold the fields of an order (interface, GET /orders: not shown).

    A column is proposed if it has one of the names in `transforms.order_names`, and values in enough of the rows: known
    customers in half of the rows and 90 % of the values, dates in 90 % of the rows (whatever their format), decimal
    numbers and codes of three letters in 95 %. If only one fits, it is proven. Of several, the preferred name is
    proposed; of several columns of customers none, unless they refer to the same ones. A code that refers to other
    customers than an id is preferred: small numbers are ids of customers by chance.

    Args:
        orders: the columns of the raw orders.
        customers: the reconciled customers.
        answers: in force, by the id of their question.
        cancelled_values: of the status, which mean that an order is cancelled; None: as their words say.
    """
    columns = _examine(orders, answers)
    asked = {
        "customer_id": question(
            _customer_evidence(columns, customers, answers),
            answers.get(FIELD_QUESTIONS["customer_id"]),
        )
    }
    for name in _EXAMINED:
        answer = answers.get(FIELD_QUESTIONS[name])
        asked[name] = question(_evidence(name, columns, answer), answer)
    total = asked["total"].value
    unit = _unit_question(total, columns.totals, answers.get(UNIT))
    is_in_cents = unit is not None and unit.value == _CENTS
    status = asked["order_status"].value
    cancellation, doubt = _cancellation(orders, columns.facts, status, cancelled_values)
    found = [
        *_field_findings(columns, asked),
        *_unit_findings(unit, total, columns.totals),
        *_total_findings(total, columns),
    ]
    if doubt and orders.rows:
        candidates = _candidates("order_status", columns)
        detail = f"order_status: {doubt}; {candidates}; set reconcile.order_status"
        found.append(table_finding("orders", "cancelled_unknown", detail))
    used = {name: asked[name].value for name in ORDER_FIELDS}
    return FieldChoice(
        fields=OrderFields(**used, is_in_cents=is_in_cents),
        amounts=columns.facts[total].amounts if total is not None else AmountEvidence(),
        cancellation=cancellation,
        unknown=_unknown(columns, asked),
        evidence=columns.evidence,
        findings=combine_findings(found),
        questions=_questions(columns, asked, unit),
    )


def _questions(
    columns: _Columns, asked: Mapping[str, Question], unit: Question | None
) -> list[Question]:
    """The questions to keep: none without orders, nor about a field that may not exist and that nothing holds."""
    if not columns.orders.rows:
        return []
    fields = [one for name, one in asked.items() if one.value is not None or name in _EXPECTED]
    return [*fields, *([unit] if unit is not None else [])]


def _examine(orders: OrderColumns, answers: Mapping[str, Answer]) -> _Columns:
    """Reads the columns that may hold a field, and those that answers name."""
    names = [name for name in sorted(orders.kinds) if name != "id" and not name.startswith("_")]
    in_use = {
        field_name: answers[key]
        for field_name, key in FIELD_QUESTIONS.items()
        if key in answers and answers[key].value in orders.kinds
    }
    facts = _read(orders, names, in_use)
    recent = {
        name: orders.filled_by_run(answer.value, answer.at)
        for name, answer in in_use.items()
        if answer.at is not None
    }
    names = [name for name in names if orders.kinds[name] in SCALARS]
    evidence: dict[str, str] = {}
    fitting: dict[str, list[str]] = {}
    for field_name, share_min in _EXAMINED.items():
        fitting[field_name] = []
        for name in ORDER_NAMES[field_name]:
            if name not in names:
                continue
            count, evidence[name] = facts[name].fitting(field_name, orders.rows)
            if count and count >= share_min * orders.rows:
                fitting[field_name].append(name)
    amounts = dict.fromkeys(fitting["total"])
    if "total" in in_use:
        amounts[in_use["total"].value] = None
    totals = _total_candidates(orders, [*amounts], facts)
    examples: dict[str, Sequence[str]] = {}
    examples.update({name: of_column.examples for name, of_column in facts.items()})
    return _Columns(orders, names, facts, recent, fitting, evidence, examples, totals)


def _read(
    orders: OrderColumns, names: Sequence[str], in_use: Mapping[str, Answer]
) -> dict[str, ColumnFacts]:
    """The facts of the columns that may hold a field or say that an order is cancelled, and of those in use."""
    wanted: dict[str, set[str]] = {}
    for name, kind in related_columns(names, None).items():
        wanted.setdefault(name, set()).update(() if kind == "time" else ["order_status"])
    possible = [name for name in names if orders.kinds[name] in SCALARS]
    for field_name in _EXAMINED:
        for name in possible:
            if name in ORDER_NAMES[field_name]:
                wanted.setdefault(name, set()).add(field_name)
    for field_name, answer in in_use.items():
        wanted.setdefault(answer.value, set()).add(field_name)
    facts = {name: ColumnFacts(fields) for name, fields in wanted.items()}
    for part in orders.parts(facts) if facts else ():
        listed = part[~part["is_missing"]]
        others = part[part["is_missing"]]
        for name, of_column in facts.items():
            of_column.add(listed[name], others[name])
    return facts


def _total_candidates(
    orders: OrderColumns, names: Sequence[str], facts: Mapping[str, ColumnFacts]
) -> TotalCandidates:
    """Columns of amounts, compared with the lines."""
    if not names:
        return TotalCandidates()
    some = orders.with_lines(names)
    amounts = {name: money(some[name], facts[name].amounts) for name in names}
    return TotalCandidates.of(some.assign(**amounts))


def _evidence(name: str, columns: _Columns, answer: Answer | None) -> Evidence:
    """The evidence about a field whose columns are examined by name and values."""
    fitting = columns.fitting[name]
    proposal = fitting[0] if fitting else None
    dispute = ""
    if name == "total":
        proposal, dispute = columns.totals.choose(fitting)
    others = [other for other in fitting if other != proposal]
    named = [other for other in columns.names if other in ORDER_NAMES[name]]
    listed = dict.fromkeys([*([proposal] if proposal else []), *others, *named])
    return Evidence(
        FIELD_QUESTIONS[name],
        tuple(_choices(name, [*listed], columns, proposal, answer)),
        proposal,
        is_proven=not any(_is_rival(name, columns, proposal, other) for other in others),
        dispute=dispute,
        reason=_NOT_PROVEN,
    )


def _is_rival(name: str, columns: _Columns, proposal: str | None, other: str) -> bool:
    """Whether another column that fits may be meant instead of the proposed one."""
    if proposal is None:
        return True
    if name == "total":
        holdings = columns.totals.holdings
        is_like = holdings.get(other) in (None, holdings.get(proposal))
        return is_like and other in columns.totals.differing(proposal)
    if name == "currency":
        pairs = columns.orders.distinct([proposal, other])
        return bool((texts_of(pairs[proposal]) != texts_of(pairs[other])).any())
    return True


def _choices(
    name: str,
    listed: Sequence[str],
    columns: _Columns,
    proposal: str | None,
    answer: Answer | None,
) -> Iterator[Choice]:
    """The columns that may hold a field, and the one that an answer names."""
    values = [*listed]
    if answer is not None and answer.value not in values:
        values.append(answer.value)
    for value in values:
        against, is_possible = "", True
        if answer is not None and value == answer.value:
            against, is_possible = _against(name, columns, proposal, answer)
        share = columns.share(value) if name in _EXAMINED and value in columns.facts else None
        yield Choice(value, columns.words(value), share, against, is_possible)


def _against(
    name: str, columns: _Columns, proposal: str | None, answer: Answer
) -> tuple[str, bool]:
    """What contradicts the column that an answer names, and whether it can be used all the same."""
    column, rows = answer.value, columns.orders.rows
    instead = f"{proposal or 'no column'} is used"
    if column not in columns.orders.kinds:
        return f"{column} is gone, {instead}", False
    if name == "total" and columns.totals.holdings.get(column) == "pieces":
        return f"{column} is the number of pieces, {instead}", False
    if name not in _EXAMINED:
        return "", True
    share = columns.share(column)
    recent = _broken_since(share, columns.recent.get(name, ()))
    if recent is not None:
        words = f"{recent.hits} of {recent.rows} new orders have a value"
        return f"{column} is kept, but {words}", True
    if rows and is_broken(share, answer.share):
        return f"{column} is kept, but {columns.given(column)} have a value", True
    return "", True


def _broken_since(of_all: Share, by_run: Sequence[Share]) -> Share | None:
    """The newest orders that no longer have a value, where the older ones have; None where there are none.

    They are those of the last run, or of the last two, four, eight … together: few orders a night prove nothing alone.

    Args:
        of_all: the orders that have a value, of all.
        by_run: of those since the answer, by the run that first saw them, the last first.
    """
    hits = rows = 0
    for number, of_run in enumerate(by_run, 1):
        hits += of_run.hits
        rows += of_run.rows
        is_looked_at = number & (number - 1) == 0
        older = Share(of_all.hits - hits, of_all.rows - rows)
        if is_looked_at and is_broken(Share(hits, rows), older):
            return Share(hits, rows)
    return None


def _customer_evidence(
    columns: _Columns, index: CustomerIndex, answers: Mapping[str, Answer]
) -> Evidence:
    """The evidence about the column of the customer."""
    notation = answers.get(NOTATION)
    is_given = notation is not None and not notation.is_assumption
    candidates = _CustomerCandidates(
        columns.orders, index, notation.value if notation is not None and is_given else None
    )
    named = [
        name
        for name in columns.names
        if CUSTOMER_NAME.fullmatch(name) or RIVAL_NAME.fullmatch(name)
    ]
    for name in named:
        columns.evidence[name], columns.examples[name] = candidates.examine(name)
    proposal, is_proven, dispute = candidates.choose()
    answer = answers.get(FIELD_QUESTIONS["customer_id"])
    listed = sorted(named, key=lambda name: (name != proposal, name not in candidates.proven))
    return Evidence(
        FIELD_QUESTIONS["customer_id"],
        tuple(_choices("customer_id", listed, columns, proposal, answer)),
        proposal,
        is_proven,
        dispute,
        _NOT_PROVEN,
    )


class _CustomerCandidates:
    """Columns that may name the customers.

    Attributes:
        proven: those whose values are known customers, by name.
    """

    def __init__(self, orders: OrderColumns, index: CustomerIndex, notation: str | None) -> None:
        self._orders = orders
        self._index = index
        self._notation: CustomerNotation | None = None
        if notation is not None:
            self._notation = "codes" if notation == "codes" else "ids"
        self.proven: dict[str, CustomerMatch] = {}

    def examine(self, name: str) -> tuple[str, list[str]]:
        """Reads a column. Returns its evidence in counts, and a few of its values."""
        values = self._orders.distinct([name])
        found = self._match(name, values, self._notation)
        hits, count = found.codes if found.is_by_code else found.ids, found.named_count
        is_known = count > 0 and hits >= MATCHED_SHARE_MIN * count
        if is_known and hits >= CUSTOMER_ROWS_MIN * self._orders.rows:
            self.proven[name] = found
        return found.evidence, examples_of(texts_of(values[name]))

    def choose(self) -> tuple[str | None, bool, str]:
        """The column; whether it is proven; and that columns which fit refer to different customers."""
        rivals = [name for name in self.proven if not CUSTOMER_NAME.fullmatch(name)]
        own = [name for name in self.proven if name not in rivals]
        by_code = [name for name in own if self.proven[name].is_by_code]
        # Codes are texts that somebody chose, ids are small numbers that many columns hold.
        by_id = sorted(
            (name for name in own if name not in by_code),
            key=lambda name: (name not in _PREFERRED_IDS, name),
        )
        for group in ([*by_id, *by_code], by_code):
            if not group or not all(self._refer_to_same(name, group[0]) for name in group[1:]):
                continue
            if contesting := self._contesting(group[0], rivals, is_by_code=bool(by_code)):
                names = " and ".join([group[0], *contesting])
                return None, False, f"{names} refer to different customers"
            return group[0], len(group) == len(own), ""
        if by_id:
            return None, False, f"{' and '.join(by_id)} refer to different customers"
        return None, False, ""

    def _contesting(self, chosen: str, rivals: Sequence[str], *, is_by_code: bool) -> list[str]:
        """The columns of accounts that refer to enough customers, and to others than the chosen column."""
        customers = self.proven[chosen].customer_id.nunique()
        found: list[str] = []
        for name in rivals:
            match = self.proven[name]
            is_comparable = match.is_by_code or not is_by_code
            is_large = match.customer_id.nunique() >= _RIVAL_CUSTOMERS_MIN * customers
            if is_comparable and is_large and not self._refer_to_same(name, chosen):
                found.append(name)
        return found

    def _refer_to_same(self, *pair: str) -> bool:
        values = self._orders.distinct(pair)
        left, right = (
            self._match(name, values, self.proven[name].notation).customer_id for name in pair
        )
        return same_customers(left, right, values["row_count"])

    def _match(
        self, name: str, values: pd.DataFrame, notation: CustomerNotation | None
    ) -> CustomerMatch:
        return self._index.match(texts_of(values[name]), name, notation, values["row_count"])


def _unit_question(
    total: str | None, totals: TotalCandidates, answer: Answer | None
) -> Question | None:
    """The unit of the totals, if the lines show it or an answer gives it; None: the unit of the currency."""
    if answer is not None and answer.about not in ("", total):
        answer = None
    holding = totals.holdings.get(total or "")
    if holding not in ("amount", "cents"):
        is_usual = answer is None or (answer.is_assumption and answer.value == _UNITS)
        return None if is_usual else question(Evidence(UNIT, about=total or ""), answer)
    proposal = _CENTS if holding == "cents" else _UNITS
    words = {
        _CENTS: f"{total} is a hundred times what the lines come to",
        _UNITS: f"{total} is about what the lines come to",
    }
    changed = {
        _CENTS: f"{total} is a hundred times what the lines come to now",
        _UNITS: f"{total} was in hundredths and is not any more",
    }
    other = _UNITS if proposal == _CENTS else _CENTS
    choices = (Choice(proposal, words[proposal]), Choice(other, against=changed[proposal]))
    is_proven = proposal == _UNITS
    evidence = Evidence(UNIT, choices, proposal, is_proven, about=total or "")
    return question(evidence, answer)


def _field_findings(columns: _Columns, asked: Mapping[str, Question]) -> Iterator[pd.DataFrame]:
    """The answers that are contradicted, and the fields that every order should have and that are not known."""
    rows = columns.orders.rows
    for name in ORDER_FIELDS:
        one = asked[name]
        advice = f"set {one.id}"
        if one.state == "contradicted":
            yield table_finding("orders", "field_changed", f"{name}: {one.reason}; {advice}", name)
        if not rows or name not in _EXPECTED:
            continue
        if one.value is None:
            dispute = one.evidence.dispute
            rule = "field_disputed" if dispute else "field_not_found"
            reason = f"{dispute}; " if dispute else ""
            detail = f"{name}: {reason}{_candidates(name, columns)}; {advice}"
            yield table_finding("orders", rule, detail, name)
        elif name == "total" and FILLED_SHARE_MIN * rows <= columns.facts[one.value].given < rows:
            detail = f"total: {one.value} has a value in {columns.given(one.value)}"
            yield table_finding("orders", "total_missing", detail)


def _unknown(columns: _Columns, asked: Mapping[str, Question]) -> dict[str, str]:
    """Why customers, dates or totals are not known, by field."""
    unknown: dict[str, str] = {}
    for name in _EXPECTED if columns.orders.rows else ():
        value = asked[name].value
        if value is None:
            unknown[name] = f"{name}: {asked[name].evidence.dispute or _NOT_PROVEN}"
        elif name in _EXAMINED and not columns.is_filled(value):
            unknown[name] = f"{name}: {value} has a value in {columns.given(value)}"
    return unknown


def _unit_findings(
    unit: Question | None, total: str | None, totals: TotalCandidates
) -> Iterator[pd.DataFrame]:
    """That the totals are hundredths, or are something else than before."""
    if unit is None:
        return
    if unit.state == "contradicted":
        detail = f"total: {unit.reason}; set reconcile.order_total"
        yield table_finding("orders", "field_changed", detail, "total")
    elif unit.value == _CENTS and totals.holdings.get(total or "") == "cents":
        words = f"total: {total} is a hundred times what the lines come to: it is divided by 100"
        yield table_finding("orders", "total_in_cents", words)


def _total_findings(total: str | None, columns: _Columns) -> Iterator[pd.DataFrame]:
    """Where the total differs from the other columns that may be it, and from the lines."""
    if total is None or not columns.orders.rows:
        return
    totals = columns.totals
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
    columns = [*related_columns(orders.kinds, status), *filter(None, [status])]
    words = {name: facts[name].words or {"1"} for name in columns if facts[name].given}
    cancellation = Cancellation.of(status, words, values)
    of_status = facts[status].words if status is not None else set()
    if values is None:
        is_readable = any(letter.isalpha() for word in of_status for letter in word)
    else:
        is_readable = cancellation.is_found(of_status)
    if is_readable or cancellation.witnesses.keys() - {status}:
        return cancellation, ""
    if values is not None:
        return cancellation, "no order has a value of reconcile.order_cancelled"
    return cancellation, "values without a letter" if status is not None else _NOT_PROVEN


def _candidates(wanted: str, columns: _Columns) -> str:
    """The columns with a related name, with their evidence, in words."""
    evidence = columns.evidence
    names = [
        name
        for name in sorted(columns.orders.kinds)
        if RELATED_NAMES[wanted].search(name) and not name.startswith("_")
    ]
    listed = [f"{name} ({evidence[name]})" if name in evidence else name for name in names]
    return "candidates: " + ", ".join(listed) if listed else "no column with a related name"
