"""Which columns of the raw order lines hold product, quantity, amounts and discount: the interface does not show them.

In: the raw lines with whatever columns they have, and the answers in force. Out: a question for each field with the
evidence of each column that may hold it, the columns that are used, and findings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from typing import Final

import pandas as pd

from orderbridge.transforms.findings import FINDINGS, combine_findings, table_finding, to_answer
from orderbridge.transforms.frames import MONEY, constant, frame
from orderbridge.transforms.orders.columns import AmountEvidence, LineColumns, money, texts_of
from orderbridge.transforms.orders.field_evidence import NOT_PROVEN, ExaminedColumns, FieldRule
from orderbridge.transforms.orders.line_discounts import orders_that_add_up
from orderbridge.transforms.orders.names import LINE_NAMES
from orderbridge.transforms.orders.total_candidates import ORDERS_MIN
from orderbridge.transforms.questions import Answer, Choice, Evidence, Question, question
from orderbridge.transforms.values.date_forms import SHARE_MIN

ONE: Final = "one"
"""The answer that each line is one piece, and no column has the quantity."""
LINE_RULES: Final = {
    "product": FieldRule("reconcile.order_line_product", LINE_NAMES["product"], "text", SHARE_MIN),
    "product_name": FieldRule(
        "reconcile.order_line_product_name", LINE_NAMES["product_name"], "text", SHARE_MIN
    ),
    "quantity": FieldRule(
        "reconcile.order_line_quantity", LINE_NAMES["quantity"], "amount", SHARE_MIN
    ),
    "unit_price": FieldRule(
        "reconcile.order_line_unit_price", LINE_NAMES["unit_price"], "amount", SHARE_MIN
    ),
    "line_total": FieldRule(
        "reconcile.order_line_total", LINE_NAMES["line_total"], "amount", SHARE_MIN
    ),
    "discount": FieldRule(
        "reconcile.order_line_discount", LINE_NAMES["discount"], "amount", SHARE_MIN
    ),
}
"""How the columns of the fields are recognized."""
LINE_QUESTIONS: Final = {name: rule.question for name, rule in LINE_RULES.items()}
"""The question about each field: the key of its setting."""
_NEEDED: Final = ("product", "quantity", "unit_price", "line_total")
"""Fields of which two columns that fit and differ are a question, and for which columns of any name are offered."""
_NO_TOTALS: Final = pd.DataFrame()
AMOUNTS: Final = ("quantity", "unit_price", "line_total", "discount")
PRODUCT: Final = ("product", "product_name")


@dataclass(frozen=True, slots=True)
class LineFields:
    """Columns of the raw order lines by what they hold; None where none is known.

    Attributes:
        product: its most specific id or code.
        product_name: what it is called.
        quantity: pieces; `ONE` where each line is one.
        unit_price: of a piece.
        line_total: the amount of the line.
        discount: of the line, see `transforms.orders.line_discounts`.
    """

    product: str | None = None
    product_name: str | None = None
    quantity: str | None = None
    unit_price: str | None = None
    line_total: str | None = None
    discount: str | None = None

    def columns(self) -> dict[str, str]:
        """The known columns by field."""
        named = {one.name: getattr(self, one.name) for one in fields(self)}
        return {name: value for name, value in named.items() if value not in (None, ONE)}

    @property
    def have_amounts(self) -> bool:
        """Whether it is known what a line comes to."""
        has_price = self.quantity is not None and self.unit_price is not None
        return has_price or self.line_total is not None


@dataclass(frozen=True, slots=True)
class LineChoice:
    """The fields to use, with findings about the choice.

    Attributes:
        fields: their columns.
        amounts: what the values of the columns of amounts prove about their notation, by field.
        findings: the columns of `FINDINGS`.
        questions: about the fields.
    """

    fields: LineFields = LineFields()
    amounts: Mapping[str, AmountEvidence] = field(default_factory=dict)
    findings: pd.DataFrame = field(default_factory=lambda: frame(FINDINGS))
    questions: Sequence[Question] = ()


def choose_line_fields(
    lines: LineColumns, answers: Mapping[str, Answer], totals: pd.DataFrame = _NO_TOTALS
) -> LineChoice:
    """Decides which columns hold the fields of a line: as answered, else the first of their names that has values.

    Another column that has such a name, fits and differs is a question. Of prices and of amounts, the one is proposed
    with which more orders come to their totals.

    Args:
        lines: their columns.
        answers: in force, by the id of their question.
        totals: columns of some orders that may be the total, as numbers, with the ids of the orders as the index.
    """
    columns = ExaminedColumns.of(lines, LINE_RULES, answers, {})
    asked = _asked(lines, columns, answers, totals)
    used = LineFields(**{name: one.value for name, one in asked.items()})
    needed = _needed(used)
    amounts = {
        name: columns.facts[column].amounts
        for name, column in used.columns().items()
        if name in AMOUNTS
    }
    findings = _findings(asked, needed, columns) if columns.rows else ()
    return LineChoice(used, amounts, combine_findings([*findings]), [*_questions(asked, needed)])


def _asked(
    lines: LineColumns,
    columns: ExaminedColumns,
    answers: Mapping[str, Answer],
    totals: pd.DataFrame,
) -> dict[str, Question]:
    """The question about each field."""
    asked: dict[str, Question] = {}
    for name, rule in LINE_RULES.items():
        answer = answers.get(rule.question)
        evidence = _evidence(name, columns, answer)
        if name in ("unit_price", "line_total"):
            evidence = _compared(name, lines, columns, evidence, asked["quantity"].value, totals)
        if name == "line_total" and evidence.proposal is not None and _is_priced_before(asked):
            evidence = replace(evidence, is_only_proposed=answer is None)
        asked[name] = question(evidence, answer)
    return asked


def _questions(asked: Mapping[str, Question], needed: Sequence[str]) -> Iterator[Question]:
    """The questions to keep: about fields that are used, needed or proposed."""
    for name, one in asked.items():
        if one.value is not None or name in needed or one.evidence.is_only_proposed:
            yield one


def _evidence(name: str, columns: ExaminedColumns, answer: Answer | None) -> Evidence:
    """The evidence about a field: the first column with one of its names and any value is proposed."""
    filled = [column for column in columns.named(name) if _has_values(name, columns, column)]
    proposal = filled[0] if filled else None
    listed = filled or columns.named(name)
    if not listed and name in _NEEDED:
        listed = columns.others(name)
    others = [column for column in columns.fitting[name] if column != proposal]
    evidence = Evidence(
        LINE_RULES[name].question,
        tuple(columns.choices(name, listed, proposal, None if _is_one(answer) else answer)),
        proposal,
        is_proven=not any(_is_rival(name, columns, proposal, other) for other in others),
        reason=NOT_PROVEN,
    )
    return _or_one_piece(evidence, columns, answer) if name == "quantity" else evidence


def _has_values(name: str, columns: ExaminedColumns, column: str) -> bool:
    """Whether a column has a value; of ids and discounts, one that is not 0."""
    facts = columns.facts[column]
    return facts.is_nonzero if name == "discount" else facts.given > facts.zeros


def _or_one_piece(evidence: Evidence, columns: ExaminedColumns, answer: Answer | None) -> Evidence:
    """The evidence about the quantity: without a column and with prices, each line may be one piece."""
    choices = (*evidence.choices, Choice(ONE, "each line is one piece"))
    is_priced = any(columns.facts[one].given for one in columns.named("unit_price"))
    if evidence.proposal is None and answer is None and is_priced:
        return replace(evidence, choices=choices, proposal=ONE, is_only_proposed=True)
    return replace(evidence, choices=choices)


def _compared(
    name: str,
    lines: LineColumns,
    columns: ExaminedColumns,
    evidence: Evidence,
    quantity: str | None,
    totals: pd.DataFrame,
) -> Evidence:
    """The evidence about a column of prices or amounts where several differ: with which the orders add up."""
    if evidence.is_proven or evidence.proposal is None or not len(totals.columns):
        return evidence
    counts: dict[str, int] = {}
    for column in dict.fromkeys([evidence.proposal, *columns.fitting[name]]):
        read = {name: column}
        if name == "unit_price" and quantity not in (None, ONE):
            read["quantity"] = str(quantity)
        some = lines.sample(read)
        amounts = {field: money(some[field]) for field in read}
        if quantity == ONE:
            amounts["quantity"] = constant(Decimal(1), some.index, MONEY)
        rows = pd.DataFrame(amounts).assign(order_id=some["order_id"])
        counts[column] = orders_that_add_up(rows[rows["order_id"].isin(totals.index)], totals)
    best = max(counts, key=lambda column: counts[column])
    is_better = counts[best] >= ORDERS_MIN and counts[best] > 2 * counts[evidence.proposal]
    choices: list[Choice] = []
    for choice in evidence.choices:
        words = choice.evidence
        if choice.value in counts:
            added_up = (
                f"the lines of {counts[choice.value]} of {len(totals)} orders add up to the total"
            )
            words += f"; with it {added_up}"
        choices.append(replace(choice, evidence=words))
    proposal = best if is_better else evidence.proposal
    choices.sort(key=lambda choice: choice.value != proposal)
    return replace(evidence, choices=tuple(choices), proposal=proposal)


def _is_rival(name: str, columns: ExaminedColumns, proposal: str | None, other: str) -> bool:
    """Whether another column that fits may be meant: one of amounts that differ, or of another kind of products."""
    if name not in _NEEDED or proposal is None:
        return False
    pairs = columns.table.distinct([proposal, other])
    return bool((texts_of(pairs[proposal]) != texts_of(pairs[other])).any())


def _is_priced_before(asked: Mapping[str, Question]) -> bool:
    """Whether earlier runs read quantity and price: another amount of the line replaces them by an answer alone."""
    answers = [asked[name].answer for name in ("quantity", "unit_price")]
    return all(one is not None and one.is_own_assumption for one in answers)


def _is_one(answer: Answer | None) -> bool:
    return answer is not None and answer.value == ONE


def _needed(used: LineFields) -> list[str]:
    """The fields without which products, pieces or amounts of lines are not known."""
    needed: list[str] = []
    if used.product is None and used.product_name is None:
        needed.append("product")
    if used.quantity is None:
        needed.append("quantity")
    if used.line_total is None and used.unit_price is None:
        needed.append("unit_price")
    return needed


def _findings(
    asked: Mapping[str, Question], needed: Sequence[str], columns: ExaminedColumns
) -> Iterator[pd.DataFrame]:
    """The answers that are contradicted, and the fields that are not known."""
    for name, one in asked.items():
        subject = f"line_{name.removeprefix('line_')}"
        if one.state == "contradicted":
            detail = to_answer(f"{subject}: {one.reason}", one.id)
            yield table_finding("orders", "field_changed", detail, subject)
        elif name in needed:
            names = ", ".join(columns.names) or "none"
            detail = to_answer(f"{name}: columns of the lines: {names}", one.id)
            yield table_finding("order_lines", "field_not_found", detail, subject)
