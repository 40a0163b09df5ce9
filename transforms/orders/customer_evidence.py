"""Which column of the raw orders names the customer who ordered: the evidence of each column that may.

In: the columns of the raw orders, and the known customers. Out: the evidence about the column. It fits if its values
are known customers in half of the orders and 90 % of the values. Columns that fit and refer to different customers are
a question.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple, cast

import pandas as pd

from orderbridge.transforms.frames import Column
from orderbridge.transforms.orders.columns import OrderColumns, first_examples, texts_of
from orderbridge.transforms.orders.customer_index import (
    MATCHED_SHARE_MIN,
    CustomerIndex,
    CustomerMatch,
    CustomerNotation,
    same_customers,
)
from orderbridge.transforms.orders.field_evidence import NOT_PROVEN, ExaminedColumns
from orderbridge.transforms.orders.names import CUSTOMER_NAME, RIVAL_NAME
from orderbridge.transforms.questions import Answer, Evidence

CUSTOMER: Final = "reconcile.order_customer_id"
NOTATION: Final = "reconcile.order_customer_notation"
"""The questions about the column of the customer, and about how it names customers."""
CUSTOMER_ROWS_MIN: Final = 0.5
"""Share of the orders that must be of a known customer; the others may be of guests."""
_RIVAL_CUSTOMERS_MIN: Final = 0.5
"""Minimum share of customers that a column of accounts must refer to, to be a rival: staff accounts refer to few."""
_PREFERRED_IDS: Final = ("customer_id", "customer__id")


def customer_evidence(
    orders: OrderColumns,
    index: CustomerIndex,
    columns: ExaminedColumns,
    answers: Mapping[str, Answer],
) -> Evidence:
    """The evidence about the column of the customer. Keeps that of each column in `columns`."""
    named = [
        name
        for name in columns.names
        if CUSTOMER_NAME.fullmatch(name) or RIVAL_NAME.fullmatch(name)
    ]
    # that an address names the customer is for a person to say
    candidates = _Candidates(orders, replace(index, emails=None), _given_notation(answers))
    for name in named:
        columns.evidence[name], columns.examples[name] = candidates.examine(name)
    proposed = candidates.proposed()
    proposal = proposed.column
    listed = sorted(named, key=lambda name: (name != proposal, name not in candidates.fitting))
    if proposal is None and not proposed.rivals:
        listed = [*_of_other_names(orders, index, columns, named), *listed]
    choices = columns.choices("customer_id", listed, proposal, answers.get(CUSTOMER))
    return Evidence(
        CUSTOMER,
        tuple(choices),
        proposal,
        is_proven=proposal is not None and not proposed.rivals,
        dispute=proposed.dispute,
        reason=NOT_PROVEN,
        rivals=proposed.rivals,
    )


def _of_other_names(
    orders: OrderColumns, index: CustomerIndex, columns: ExaminedColumns, named: Sequence[str]
) -> list[str]:
    """The columns whose values are known customers, though their names do not say so: they are offered to people."""
    candidates = _Candidates(orders, index, None)
    for name in columns.names:
        if name not in named:
            words, examples = candidates.examine(name)
            if name in candidates.fitting:
                columns.evidence[name] = words
                columns.examples[name] = examples
    return [*candidates.fitting]


def _given_notation(answers: Mapping[str, Answer]) -> CustomerNotation | None:
    """How the column names customers, as a person said; an assumption does not decide between columns."""
    notation = answers.get(NOTATION)
    if notation is None or notation.is_assumption:
        return None
    return cast(CustomerNotation, notation.value)


class _Proposed(NamedTuple):
    """The column that is proposed; None: none is.

    `rivals` are the columns that fit and refer to different customers, the proposed one among them.
    """

    column: str | None = None
    rivals: tuple[str, ...] = ()

    @property
    def dispute(self) -> str:
        """Why none is proposed although several fit."""
        if self.column is not None or not self.rivals:
            return ""
        return f"{' and '.join(self.rivals)} refer to different customers"


class _Candidates:
    """Columns that may name the customers.

    Attributes:
        fitting: those whose values are known customers, by name.
    """

    def __init__(
        self, orders: OrderColumns, index: CustomerIndex, notation: CustomerNotation | None
    ) -> None:
        self._orders = orders
        self._index = index
        self._notation = notation
        self.fitting: dict[str, CustomerMatch] = {}

    def examine(self, name: str) -> tuple[str, list[str]]:
        """Reads a column. Returns its evidence in counts, and a few of its values."""
        values = self._orders.distinct([name])
        found = self._match(name, values, self._notation)
        hits = found.codes if found.is_by_code or found.bare else found.ids
        is_known = found.named_count > 0 and hits >= MATCHED_SHARE_MIN * found.named_count
        if is_known and hits >= CUSTOMER_ROWS_MIN * self._orders.rows:
            self.fitting[name] = found
        return found.evidence, first_examples(texts_of(values[name]))

    def proposed(self) -> _Proposed:
        """The column, and those that fit as well and refer to other customers.

        An id is preferred where all refer to the same customers. Otherwise the codes are, if these agree: codes are
        texts that somebody chose, ids are small numbers that many columns hold by chance.
        """
        own = [name for name in self.fitting if CUSTOMER_NAME.fullmatch(name)]
        by_code = [name for name in own if self.fitting[name].is_by_code]
        by_id = sorted(set(own) - {*by_code}, key=lambda name: (name not in _PREFERRED_IDS, name))
        preferred = [*by_id, *by_code]
        if not preferred:
            return _Proposed()
        passed_over: list[str] = []
        if not self._agree(preferred):
            if not by_code or not self._agree(by_code):
                return _Proposed(None, tuple(by_id or by_code))
            passed_over = by_id
            preferred = by_code
        first = preferred[0]
        if others := self._others(first, is_by_code=bool(by_code)):
            return _Proposed(None, (first, *others))
        return _Proposed(first, (first, *passed_over) if passed_over else ())

    def _agree(self, names: Sequence[str]) -> bool:
        """Whether all columns refer to the same customers as the first."""
        return all(self._refer_to_same(name, names[0]) for name in names[1:])

    def _others(self, chosen: str, *, is_by_code: bool) -> list[str]:
        """The columns of accounts that refer to enough customers, and to others than the chosen column."""
        customers = self.fitting[chosen].customer_id.nunique()
        found: list[str] = []
        for name, match in self.fitting.items():
            if CUSTOMER_NAME.fullmatch(name):
                continue
            is_comparable = match.is_by_code or not is_by_code
            is_large = match.customer_id.nunique() >= _RIVAL_CUSTOMERS_MIN * customers
            if is_comparable and is_large and not self._refer_to_same(name, chosen):
                found.append(name)
        return found

    def _refer_to_same(self, name: str, other: str) -> bool:
        values = self._orders.distinct([name, other])
        customers: list[Column[Any]] = []
        for one in (name, other):
            match = self._match(one, values, self.fitting[one].notation)
            customers.append(match.customer_id)
        return same_customers(customers[0], customers[1], values["row_count"])

    def _match(
        self, name: str, values: pd.DataFrame, notation: CustomerNotation | None
    ) -> CustomerMatch:
        return self._index.match(texts_of(values[name]), name, notation, values["row_count"])
