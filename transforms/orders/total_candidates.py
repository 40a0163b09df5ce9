"""Which of several columns holds the total of an order, and in which unit: their values compared with its lines.

In: some of the listed orders with the columns that may be it, and what their lines come to. Out: what each column
holds, which of them disagree, and the evidence about the total. Taxes, shipping and discounts make a total differ from
its lines, but not by half.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from orderbridge.transforms.chance import Share
from orderbridge.transforms.frames import Bools
from orderbridge.transforms.orders.field_evidence import NOT_PROVEN, ExaminedColumns
from orderbridge.transforms.orders.names import RELATED_NAMES
from orderbridge.transforms.questions import Answer, Choice, Evidence

Holding = Literal["amount", "cents", "pieces", "other"]
"""What a column of numbers is: the amount, a hundred times that, the number of pieces, or none of these."""
LINE_SUMS: Final = {"line_amount": pa.float64(), "line_pieces": pa.float64()}
"""Of an order: quantity × price of its lines, and their quantity; null where a line lacks them."""
SUM_OF_LINES: Final = "sum_of_lines"
"""The answer that the total of an order is what its lines come to, and no column."""
SUM_OF_PAYMENTS: Final = "sum_of_payments"
"""The answer that the total of an order is the sum of its payments, and no column."""
SUMS: Final = (SUM_OF_PAYMENTS, SUM_OF_LINES)
"""Totals that no column has; what was paid before the lines, which may have neither tax nor shipping."""
ORDERS_MIN: Final = 3
SHARE_MIN: Final = 0.8
"""How many orders, and which share of them, show what a column holds."""
ADDS_UP_MIN: Final = 0.9
"""The least share of orders that are what their lines come to, for the others to be a finding: else there is more."""
_ROUNDING: Final = 0.05
_SAME: Final = 0.0005
_CENT: Final = 0.01
_MULTIPLE_MIN: Final = 0.9
"""The least share of orders in which one column is a multiple of another one, for that to be shown."""
_FAR: Final = 2.0
_DIFFER_MIN: Final = 0.05
Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TotalCandidates:
    """Columns that may hold the total.

    Attributes:
        holdings: what a column holds, as the lines show it; no key where they do not.
        values: of each column, and of `SUM_OF_PAYMENTS` where that may be the total.
        line_amount: what the lines come to.
        prices: of the lines.
    """

    holdings: Mapping[str, Holding] = field(default_factory=dict)
    values: Mapping[str, Numbers] = field(default_factory=dict)
    line_amount: Numbers = field(default_factory=lambda: np.empty(0))
    prices: Numbers = field(default_factory=lambda: np.empty(0))

    @classmethod
    def of(cls, orders: pd.DataFrame, prices: Numbers) -> TotalCandidates:
        """Those of a frame of numbers, which has the columns of `LINE_SUMS` too."""
        numbers = {str(name): orders[name].to_numpy(np.float64, na_value=np.nan) for name in orders}
        amount, pieces = (numbers.pop(name) for name in LINE_SUMS)
        found = {name: _holding(values, amount, pieces) for name, values in numbers.items()}
        return cls(
            {name: holding for name, holding in found.items() if holding is not None},
            numbers,
            amount,
            prices,
        )

    def proposed(self, names: Sequence[str]) -> tuple[str | None, str]:
        """The first of the columns that the lines prove, else the first; None, and why, where they disagree by far."""
        for wanted in ("amount", "cents"):
            proven = [name for name in names if self.holdings.get(name) == wanted]
            if proven:
                return proven[0], ""
        if not names:
            return None, ""
        first = names[0]
        rivals = [other for other in names[1:] if self.is_far(first, other)]
        if rivals:
            return None, f"{first} and {' and '.join(rivals)} disagree, and no lines decide"
        if self.holdings.get(first) == "pieces":
            return None, f"{first} is the number of pieces"
        return first, ""

    def is_rival(self, proposal: str | None, other: str) -> bool:
        """Whether another column that fits may be the total instead: as likely by the lines, and not always equal."""
        if proposal is None:
            return True
        is_as_likely = self.holdings.get(other) in (None, self.holdings.get(proposal))
        count, _ = self._unequal(proposal, other)
        return is_as_likely and count + self._zero_in_one(proposal, other) > 0

    def summed(self, name: str) -> Share:
        """The orders of which a sum is known: that of their lines, or of their payments."""
        values = self.line_amount if name == SUM_OF_LINES else self.values.get(name, np.empty(0))
        return Share(int((~np.isnan(values)).sum()), len(values))

    def is_summed(self, name: str) -> bool:
        """Whether a sum is known of enough orders to be the total."""
        share = self.summed(name)
        return share.part >= SHARE_MIN and share.hits >= ORDERS_MIN

    def is_far(self, name: str, other: str) -> bool:
        """Whether two columns are not the same amount in most orders, whatever taxes and shipping are."""
        ratio = self._ratio(name, other)
        return bool(_is_far(ratio).sum() > len(ratio) / 2)

    def differing(self, name: str) -> dict[str, str]:
        """The columns that differ from one of them in more than a few orders, with counts."""
        result: dict[str, str] = {}
        for other in self.values:
            if other == name or name not in self.values:
                continue
            count, compared = self._unequal(name, other)
            if count > _DIFFER_MIN * compared:
                result[other] = f"{count} of {compared}"
        return result

    def multiple_of(self, name: str, other: str) -> str:
        """How many times another, smaller column one is, in words; empty where that varies from order to order."""
        values, others = self._both(name, other)
        if not len(values):
            return ""
        factor = float(np.median(values / others))
        tolerance = np.maximum(_CENT * max(1.0, abs(factor)), _SAME * np.abs(values))
        count = int((np.abs(values - factor * others) <= tolerance).sum())
        shown = round(factor, 4)
        if shown < 1 or count < _MULTIPLE_MIN * len(values):
            return ""
        multiple = f"{shown:g} × {other}" if shown != 1 else f"the same as {other}"
        return f"{multiple} in {count} of {len(values)} orders"

    def like_lines(self, name: str) -> str:
        """In how many orders a column is what the lines come to, and both sums; empty where no lines say so."""
        is_known, unlike = self._compared(name)
        count = int(is_known.sum())
        if not count:
            return ""
        values = self.values[name][is_known]
        amounts = self.line_amount[: len(is_known)][is_known]
        like = (
            f"{count - int(unlike.sum())} of {count} are what the lines add up to, quantity × price"
        )
        sums = f"these orders sum to {values.sum():,.2f}, their lines to {amounts.sum():,.2f}"
        return f"{like}; {sums}"

    def words(self, name: str) -> str:
        """What a column is beside the others and the lines: ratios that are constant, counts and sums."""
        others = [other for other in self.values if other != name]
        parts = [*(self.multiple_of(name, other) for other in others), self.like_lines(name)]
        return "; ".join(filter(None, parts))

    def unlike_lines(self, name: str) -> str:
        """In how many orders a column is not what the lines come to; empty where that is not so in nearly all."""
        _, unlike = self._compared(name)
        is_usual = not unlike.any() or (~unlike).sum() < ADDS_UP_MIN * len(unlike)
        return "" if is_usual else f"{unlike.sum()} of {len(unlike)}"

    def _compared(self, name: str) -> tuple[Bools, Bools]:
        """Which orders have a value and an amount of their lines, and of these those that differ."""
        unit = 100 if self.holdings.get(name) == "cents" else 1
        values = self.values.get(name, np.empty(0)) / unit
        amounts = self.line_amount[: len(values)]
        is_known: Bools = ~np.isnan(values) & ~np.isnan(amounts)
        unlike: Bools = np.abs(values - amounts)[is_known] > _ROUNDING
        return is_known, unlike

    def _unequal(self, name: str, other: str) -> tuple[int, int]:
        """In how many orders two columns differ, and how many have both."""
        ratio = self._ratio(name, other)
        return int((np.abs(ratio - 1) > _SAME).sum()), len(ratio)

    def _zero_in_one(self, name: str, other: str) -> int:
        """In how many orders only one of two columns is 0, such as the total after a refund."""
        values, others = self.values[name], self.values[other]
        is_known = ~np.isnan(values) & ~np.isnan(others)
        return int((is_known & ((values == 0) != (others == 0))).sum())

    def _ratio(self, name: str, other: str) -> Numbers:
        values, others = self._both(name, other)
        ratio: Numbers = values / others
        return ratio

    def _both(self, name: str, other: str) -> tuple[Numbers, Numbers]:
        """The values of two columns in the orders that have one other than 0 in both."""
        values, others = self.values[name], self.values[other]
        is_both = (np.nan_to_num(values) != 0) & (np.nan_to_num(others) != 0)
        return values[is_both], others[is_both]


def total_evidence(
    columns: ExaminedColumns, totals: TotalCandidates, answer: Answer | None
) -> Evidence:
    """The evidence about the total. A sum of payments or lines is proposed where no column fits, and not used."""
    fitting = columns.fitting["total"]
    proposal, dispute = totals.proposed(fitting)
    others = [name for name in fitting if name != proposal]
    is_proven = not any(totals.is_rival(proposal, name) for name in others)
    listed = [*sorted(fitting, key=lambda name: name != proposal), *columns.named("total")]
    if not fitting:
        listed += columns.others("total", RELATED_NAMES["total"])
    answered = "" if answer is None else answer.value
    of_columns = None if answered in SUMS else answer
    choices = _column_choices(columns, totals, listed, proposal, of_columns)
    sums = [name for name in SUMS if totals.summed(name).hits or name == answered]
    choices += [_sum(name, totals, proposal) for name in sums]
    if answer is None and not fitting:
        proposal = next(filter(totals.is_summed, SUMS), None)
    return Evidence(
        columns.rules["total"].question,
        tuple(choices),
        proposal,
        is_proven,
        dispute,
        NOT_PROVEN,
        is_only_proposed=proposal in SUMS,
    )


def _column_choices(
    columns: ExaminedColumns,
    totals: TotalCandidates,
    listed: Sequence[str],
    proposal: str | None,
    answer: Answer | None,
) -> list[Choice]:
    """The columns that may be the total; one that is the number of pieces cannot be used."""
    notes = {name: totals.words(name) for name in totals.values}
    choices: list[Choice] = []
    for choice in columns.choices("total", [*dict.fromkeys(listed)], proposal, answer, notes):
        is_used = answer is not None and choice.value == answer.value
        if is_used and totals.holdings.get(choice.value) == "pieces":
            against = f"{choice.value} is the number of pieces, {_instead(proposal)}"
            choices.append(replace(choice, against=against, is_possible=False))
        else:
            choices.append(choice)
    return choices


def _instead(proposal: str | None) -> str:
    return f"{proposal or 'no column'} is used"


def _sum(name: str, totals: TotalCandidates, proposal: str | None) -> Choice:
    """The choice that the total is the sum of the lines, or of the payments."""
    one = "line" if name == SUM_OF_LINES else "payment"
    share = totals.summed(name)
    words = f"the {one}s of {share.hits} of {share.rows} orders have amounts to add up"
    if not share.hits:
        against = f"no {one} has an amount, {_instead(proposal)}"
        return Choice(name, words, share, against, is_possible=False)
    notes = totals.words(name) if name in totals.values else ""
    return Choice(name, "; ".join(filter(None, [words, notes])), share)


def _is_far(ratio: Numbers) -> Bools:
    return (ratio < 1 / _FAR) | (ratio > _FAR)


def _holding(values: Numbers, amount: Numbers, pieces: Numbers) -> Holding | None:
    is_known = (amount > 0) & (np.nan_to_num(values) != 0)
    count = int(is_known.sum())
    if count < ORDERS_MIN:
        return None
    ratio = values[is_known] / amount[is_known]
    is_whole = values[is_known] == np.floor(values[is_known])
    cases: tuple[tuple[Holding, Any], ...] = (
        ("amount", ~_is_far(ratio)),
        ("cents", ~_is_far(ratio / 100) & is_whole),
        ("pieces", values[is_known] == pieces[is_known]),
    )
    return next((name for name, holds in cases if holds.sum() >= SHARE_MIN * count), "other")
