"""Which of several columns holds the total of an order, and in which unit: their values compared with its lines.

In: some of the listed orders with the columns that may be it, and what their lines come to. Out: what each column
holds, and which of them disagree. Taxes, shipping and discounts make a total differ from its lines, but not by half.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from orderbridge.transforms.frames import Bools

Holding = Literal["amount", "cents", "pieces", "other"]
"""What a column of numbers is: the amount, a hundred times that, the number of pieces, or none of these."""
LINE_SUMS: Final = {"line_amount": pa.float64(), "line_pieces": pa.float64()}
"""Of an order: quantity × price of its lines, and their quantity; null where a line lacks them."""
ORDERS_MIN: Final = 3
SHARE_MIN: Final = 0.8
"""How many orders, and which share of them, show what a column holds."""
ADDS_UP_MIN: Final = 0.9
"""The least share of orders that are what their lines come to, for the others to be a finding: else there is more."""
_ROUNDING: Final = 0.05
_FAR: Final = 2.0
_DIFFER_MIN: Final = 0.05
Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TotalCandidates:
    """Columns that may hold the total.

    Attributes:
        holdings: what a column holds, as the lines show it; no key where they do not.
        values: of each column.
        line_amount: what the lines come to.
    """

    holdings: Mapping[str, Holding] = field(default_factory=dict)
    values: Mapping[str, Numbers] = field(default_factory=dict)
    line_amount: Numbers = field(default_factory=lambda: np.empty(0))

    @classmethod
    def of(cls, orders: pd.DataFrame) -> TotalCandidates:
        """Those of a frame of numbers, which has the columns of `LINE_SUMS` too."""
        numbers = {str(name): orders[name].to_numpy(np.float64, na_value=np.nan) for name in orders}
        amount, pieces = (numbers.pop(name) for name in LINE_SUMS)
        found = {name: _holding(values, amount, pieces) for name, values in numbers.items()}
        return cls(
            {name: holding for name, holding in found.items() if holding is not None},
            numbers,
            amount,
        )

    def choose(self, names: Sequence[str]) -> tuple[str | None, str]:
        """The first of the columns, or the first that the lines prove; None, and the reason, where it is in dispute."""
        for wanted in ("amount", "cents"):
            if proven := [name for name in names if self.holdings.get(name) == wanted]:
                return proven[0], ""
        for name in names[:1]:
            if rivals := [other for other in names[1:] if self.is_far(name, other)]:
                return None, f"{name} and {' and '.join(rivals)} disagree, and no lines decide"
            if self.holdings.get(name) == "pieces":
                return None, f"{name} is the number of pieces"
        return (names[0] if names else None), ""

    def is_far(self, name: str, other: str) -> bool:
        """Whether two columns are not the same amount in most orders, whatever taxes and shipping are."""
        ratio = self._ratio(name, other)
        return bool(_is_far(ratio).sum() > len(ratio) / 2)

    def differing(self, name: str) -> dict[str, str]:
        """The columns that differ from one of them in more than a few orders, with counts."""
        result = {}
        for other in (other for other in self.values if other != name and name in self.values):
            ratio = self._ratio(name, other)
            count = int((np.abs(ratio - 1) > 0.0005).sum())
            if count > _DIFFER_MIN * len(ratio):
                result[other] = f"{count} of {len(ratio)}"
        return result

    def like_lines(self, name: str) -> str:
        """In how many orders a column is what the lines come to, in words; empty where no lines say so."""
        is_known, unlike = self._compared(name)
        count = int(is_known.sum())
        if not count:
            return ""
        return f"{count - int(unlike.sum())} of {count} are what quantity and price of the lines come to"

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

    def _ratio(self, name: str, other: str) -> Numbers:
        values, others = self.values[name], self.values[other]
        is_both = (np.nan_to_num(values) != 0) & (np.nan_to_num(others) != 0)
        ratio: Numbers = values[is_both] / others[is_both]
        return ratio


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
