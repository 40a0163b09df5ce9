"""Whether amounts of orders are in units of their currency, or in the smallest unit, which platforms call cents.

In: the totals of some orders, what their lines come to, and the currencies. Out: the question about the unit. A total
of 1999 is 19.99 on Stripe and Medusa, and 1,999 elsewhere; where nothing shows which, a person is asked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from orderbridge.transforms.frames import MONEY, TEXT, Column, array, column, constant
from orderbridge.transforms.orders.total_candidates import Holding, Numbers
from orderbridge.transforms.questions import (
    Answer,
    Choice,
    Evidence,
    Question,
    answer_about,
    question,
)
from orderbridge.transforms.values.currencies import DECIMALS, DECIMALS_USUAL, PRICED_WITH_DECIMALS

UNIT: Final = "reconcile.order_total_unit"
CENTS: Final = "cents"
UNITS: Final = "units"
_OF_CENTS: Final = re.compile(r"(^|_)(cents?|centavos?|centimos?|minor)(_|$)")
"""Names of columns that say it: `total_cents`, `total_price__cent_amount`."""
_FACTOR: Final = pa.decimal128(29, 9)
_PART: Final = pa.decimal128(5, 4)
_ORDERS_MIN: Final = 20
"""So many whole totals are no chance."""
_TYPICAL_MIN: Final = 1000
"""The least median of totals that look like cents: ten units."""
_BROKEN_MIN: Final = 0.1
"""The least share of totals that look like cents and are no multiple of a hundred: prices such as 19.99."""


def unit_question(
    total: str,
    holding: Holding | None,
    values: Numbers,
    prices: Numbers,
    currencies: Mapping[str, int],
    answer: Answer | None,
) -> Question | None:
    """The question what the totals are in; None where there are none.

    Whole totals that look like cents are open. Of few orders they are assumed to be in units, and shown as a question:
    the assumption stays when there are more.

    Args:
        total: the column of the totals.
        holding: what it holds, as the lines show it.
        values: totals of some orders.
        prices: of their lines, as far as they are known. What lines come to has decimals where a discount has.
        currencies: how many orders have each code.
        answer: in force.
    """
    answer = answer_about(answer, total)
    given = values[np.nan_to_num(values) != 0]
    if not len(given) and (answer is None or answer.is_assumption):
        return None
    are_whole = _are_whole(given) and _are_whole(prices)
    doubt = _looks_like_cents(given, currencies) if are_whole else ""
    shown = _shown_unit(total, holding, doubt, len(given))
    if not shown.words and answer is not None and answer.value == CENTS:
        shown = _Shown(None, UNITS, "")
    against = "" if answer is None else _against(total, holding, answer, are_whole=are_whole)
    evidence = Evidence(
        UNIT,
        _choices(shown, answer, against),
        shown.proposal,
        shown.is_proven,
        reason=doubt,
        about=total,
    )
    return question(evidence, answer)


class _Shown(NamedTuple):
    """What shows the unit of the totals.

    Attributes:
        proposal: the unit; None: nothing is decisive.
        unit: what the words speak for.
        words: by what it is shown; empty: by nothing.
        is_proven: there is no other choice.
    """

    proposal: str | None
    unit: str
    words: str
    is_proven: bool = False


def _shown_unit(total: str, holding: Holding | None, doubt: str, count: int) -> _Shown:
    """The unit that the name of the column shows, else the lines, else the values: the first that says it.

    Args:
        total: the column.
        holding: what it holds, as the lines show it.
        doubt: why its values may be in cents.
        count: how many values there are.
    """
    if _is_named(total):
        return _Shown(CENTS, CENTS, f"the name of {total} says so", is_proven=True)
    if holding == "cents":
        return _Shown(CENTS, CENTS, f"{total} is a hundred times what the lines come to")
    if doubt:
        return _Shown(UNITS if count < _ORDERS_MIN else None, CENTS, doubt)
    words = f"{total} is about what the lines come to" if holding == "amount" else ""
    return _Shown(UNITS, UNITS, words, is_proven=True)


def _is_named(total: str) -> bool:
    """Whether the name of the column says that it is in cents."""
    return _OF_CENTS.search(total) is not None


def _choices(shown: _Shown, answer: Answer | None, against: str) -> tuple[Choice, ...]:
    """The two units, the proposed one first: with what shows each, and what contradicts the answer."""
    choices: list[Choice] = []
    for value in (CENTS, UNITS) if shown.proposal == CENTS else (UNITS, CENTS):
        is_answer = answer is not None and value == answer.value
        words = shown.words if value == shown.unit else ""
        choices.append(Choice(value, words, against=against if is_answer else ""))
    return tuple(choices)


def in_units(amounts: Column[Any], currencies: Column[Any] | None) -> Column[Any]:
    """Amounts in cents as amounts in units of their currency (MONEY).

    Args:
        amounts: MONEY.
        currencies: the code of each, in upper case: yen have no cents. None: all are hundredths.
    """
    if currencies is None:
        currencies = constant(None, amounts.index, TEXT)
    codes = pc.index_in(array(currencies), pa.array([*DECIMALS], TEXT), skip_nulls=True)
    decimals = [*DECIMALS.values(), DECIMALS_USUAL]
    parts = pa.array([Decimal(1).scaleb(-count) for count in decimals], _PART)
    part = parts.take(pc.fill_null(codes, len(DECIMALS)))
    made = pc.multiply(array(amounts).cast(_FACTOR), part)
    return column(pc.round(made, 9).cast(MONEY), amounts.index)


def _looks_like_cents(given: Numbers, currencies: Mapping[str, int]) -> str:
    """Why whole totals may be in cents, in words; empty where they do not look so."""
    orders = sum(currencies.values())
    names = [code for code in currencies if code in PRICED_WITH_DECIMALS]
    with_decimals = sum(currencies[code] for code in names)
    if not len(given) or orders > 2 * with_decimals:
        return ""
    broken = float(np.mean(given % 100 != 0))
    if np.median(given) < _TYPICAL_MIN or broken < _BROKEN_MIN:
        return ""
    shown = f"which {' and '.join(sorted(names)[:3])} has" if names else "and no known currency"
    return f"{len(given)} of {len(given)} amounts have no decimals, {shown}"


def _are_whole(given: Numbers) -> bool:
    return bool((given == np.floor(given)).all())


def _against(total: str, holding: Holding | None, answer: Answer, *, are_whole: bool) -> str:
    """What contradicts an answer; an assumption of units is contradicted by another proposal alone."""
    if answer.value == UNITS and holding == "cents" and not answer.is_assumption:
        return f"{total} is a hundred times what the lines come to now"
    is_of_lines = answer.is_own_assumption or not are_whole
    if answer.value == CENTS and holding == "amount" and is_of_lines and not _is_named(total):
        return f"{total} was in hundredths and is not any more"
    return ""
