"""What the values of the columns of orders are: filled, amounts, currencies, words; and their texts and amounts.

In: columns of the raw orders of any type, part by part. Out: counts of the values that fit a field of an
order, and what the values prove about the notation of amounts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any, Final, Literal, Protocol

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from orderbridge.transforms.chance import Share
from orderbridge.transforms.frames import BIGINT, BOOLEAN, MONEY, TEXT, Column, Ints, array, column
from orderbridge.transforms.orders.cancelled import STATUSES_MAX, TEST_TAGS, means_cancelled
from orderbridge.transforms.values.currencies import CURRENCIES
from orderbridge.transforms.values.keys import clean_text
from orderbridge.transforms.values.numbers import (
    COMMA,
    POINT,
    Notation,
    NotationEvidence,
    plain_numbers,
)

_DOUBLE: Final = pa.float64()
SCALARS: Final = (TEXT, BIGINT, MONEY, _DOUBLE)
"""Types of columns that may hold a field."""
Kind = Literal["amount", "currency", "words", "tags", "text"]
"""What the values of a column have to be: amounts, codes of currencies, words of a few kinds, tags, or anything."""
_AMOUNT: Final = r"-?[0-9]{1,20}(\.[0-9]+)?"
"""An amount. The sum of a billion of them fits into MONEY: Arrow's sums overflow without an error."""
_SCIENTIFIC: Final = r"-?[0-9]+(\.[0-9]+)?[eE][+-]?[0-9]{1,3}"
"""An amount as programs write a number that is very large or very small: with an exponent."""
_AMOUNT_LIMIT: Final = pa.scalar(Decimal(10) ** 20, MONEY)
_BILLIONTH: Final = Decimal("1e-9")
_EVERY_DIGIT: Final = Context(prec=MONEY.precision)
_TEN_DECIMALS: Final = pa.decimal128(38, 10)
_EXAMPLES: Final = 3
_LOOKED_AT: Final = 100
_EXAMPLE: Final = re.compile(r"[\w.,:+/-]{1,32}|[0-9][\w .,:+/-]{1,31}")
"""A value that can be shown: a number, code, time or word; neither an e-mail address nor a name of several words."""
_THOUSANDS_OR_DECIMALS: Final = r"-?[1-9][0-9]{0,2}[.,][0-9]{3}"


class RawColumns(Protocol):
    """The columns of a raw table, which are read as they are needed; rows of listed orders are counted."""

    @property
    def kinds(self) -> Mapping[str, pa.DataType]:
        """The type of each column."""

    @property
    def keys(self) -> Sequence[str]:
        """The columns that name a row, and hold no field."""

    @property
    def rows(self) -> int:
        """The number of rows of listed orders."""

    def parts(self, columns: Iterable[str]) -> Iterable[pd.DataFrame]:
        """These columns of all rows and `is_missing`, in parts."""

    def distinct(self, names: Sequence[str]) -> pd.DataFrame:
        """The distinct values of these columns together, and `row_count`: how many rows of listed orders have them."""

    def filled_by_run(self, column: str, after: datetime) -> Sequence[Share]:
        """The rows that have a value in a column, by the run that first saw them after an instant, the last first."""


class LineColumns(RawColumns, Protocol):
    """The columns of the raw lines of orders."""

    def sample(self, columns: Mapping[str, str]) -> pd.DataFrame:
        """The lines of some of the orders: `order_id`, and columns by the name that they get."""


class OrderColumns(RawColumns, Protocol):
    """The columns of the raw orders."""

    @property
    def discount(self) -> str | None:
        """The column of the lines that has a discount; None where none has."""

    @property
    def have_payments(self) -> bool:
        """Whether they have payments with amounts."""

    def sample(self, names: Sequence[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
        """`id` and these columns of some of the orders; and their lines: `order_id`, `line_kind`, the fields of lines.

        `SUM_OF_PAYMENTS` is one of the columns of orders that have payments.
        """


class AmountEvidence:
    """What the values of a column of amounts prove about its notation. They are added part by part.

    Attributes:
        certain: how many values of listed orders are decimal numbers in any notation.
        either: how many are texts such as `1.234`, which may be thousands or decimals.
        written: how many are numbers in each of the two notations.
    """

    def __init__(self) -> None:
        self._evidence = NotationEvidence()
        self.certain = 0
        self.either = 0
        self.written: Counter[Notation] = Counter()

    def add(self, values: Column[Any], others: Column[Any] | None = None) -> None:
        """Examines values of any type; others, of orders that are missing, prove a notation and are not counted."""
        if array(values).type != TEXT:
            self.certain += int(money(values, self).count())
            return
        # each distinct text is read once, in up to three ways
        found = pc.value_counts(array(texts_of(values).dropna()))
        texts = column(found.field("values"))
        rows = found.field("counts").to_numpy()
        self._evidence.add(array(texts))
        if others is not None:
            self._evidence.add(pc.unique(array(texts_of(others))))
        is_either = has_form(texts, _THOUSANDS_OR_DECIMALS)
        self.either += _number_of(is_either, rows)
        self.certain += _number_of(_amounts(texts.mask(is_either)).notna(), rows)
        for notation in (COMMA, POINT):
            self.written[notation] += _number_of(_amounts(_plain(texts, notation)).notna(), rows)

    @property
    def notation(self) -> Notation | None:
        """The notation that is proven; None where none is."""
        return {"comma": COMMA, "point": POINT}.get(self._evidence.proof)

    @property
    def is_ambiguous(self) -> bool:
        """Whether there are texts such as `1.234`, and none proves a decimal point or comma."""
        return bool(self.either) and self._evidence.proof == "ambiguous"

    @property
    def readable(self) -> int:
        """How many values of listed orders can be read."""
        notation = self.notation
        return self.certain if notation is None else max(self.certain, self.written[notation])


class ColumnFacts:
    """What the values of a column are. They are added part by part.

    Attributes:
        rows: of listed orders.
        given: how many of them have a value that is not blank.
        zeros: how many of these are `0`, which as an id or a text is no value.
        is_nonzero: any of them has a digit other than zero.
        currencies: how many have each code of a currency, in upper case.
        amounts: those that are amounts.
        words: the distinct texts; of tags, those that say that an order is a test.
        examples: a few of the texts.
    """

    def __init__(self, kinds: Collection[Kind]) -> None:
        """Of a column whose values may be of these kinds."""
        self._kinds = kinds
        self._reads_texts = not {"words", "tags", "currency"}.isdisjoint(kinds)
        self.rows = self.given = 0
        self.zeros = 0
        self.is_nonzero = False
        self.currencies: Counter[str] = Counter()
        self.examples: list[str] = []
        self.amounts = AmountEvidence()
        self.words: set[str] = set()

    def add(self, values: Column[Any], others: Column[Any]) -> None:
        """Examines values of any type; `others` are of orders that are missing."""
        is_number = array(values).type in (BIGINT, MONEY, _DOUBLE)
        texts = texts_of(values) if self._reads_texts or not is_number else values
        self.rows += len(values)
        self.given += int(texts.count())
        if len(self.examples) < _EXAMPLES:
            self.examples = examples_of(texts_of(values.dropna().head(_LOOKED_AT)))
        if "amount" in self._kinds:
            self.amounts.add(values, others)
            is_nonzero = values != 0 if is_number else texts.str.contains("[1-9]")
            self.is_nonzero = self.is_nonzero or bool(is_nonzero.any())
        if "text" in self._kinds:
            is_zero = values == 0 if is_number else texts == "0"
            self.zeros += int(is_zero.sum())
        if "words" in self._kinds:
            self.words.update(texts.dropna().unique())
        if "tags" in self._kinds:
            tags = texts[texts.str.contains(TEST_TAGS).fillna(False)].unique()
            self.words.update(text for text in tags if means_cancelled(text, "tags"))
        if "currency" in self._kinds:
            codes = texts.str.upper()
            counts = codes[codes.isin(CURRENCIES)].value_counts()
            self.currencies.update({str(code): int(count) for code, count in counts.items()})

    def fitting(self, kind: Kind, rows: int) -> tuple[int, str]:
        """How many values are of a kind, and the evidence; `rows` is the number of rows."""
        if kind == "amount":
            return self._fitting_amounts(rows)
        if kind == "currency":
            count = self.currencies.total()
            return count, f"{count} of {rows} are codes of currencies"
        if kind == "words":
            distinct = len(self.words)
            evidence = f"{self.given} of {rows} have one of {distinct} values"
            return self.given if distinct <= STATUSES_MAX else 0, evidence
        count = self.given - self.zeros
        return count, f"{count} of {rows} have a value"

    def _fitting_amounts(self, rows: int) -> tuple[int, str]:
        if self.amounts.is_ambiguous:
            return 0, "texts such as 1.234, thousands or decimals"
        count = self.amounts.readable
        return count, f"{count} of {rows} are decimal numbers"


def examples_of(texts: Column[Any]) -> list[str]:
    """A few different texts of a column: numbers, codes, times and words, but no name or address."""
    shown: list[str] = []
    for text in texts.dropna().head(_LOOKED_AT).unique():
        if _EXAMPLE.fullmatch(text):
            shown.append(text)
        if len(shown) == _EXAMPLES:
            break
    return shown


def first_examples(texts: Column[Any]) -> list[str]:
    """The same of texts in any order, such as those of a query that groups, whose order is that of threads."""
    plain = array(texts.dropna())
    first = pc.select_k_unstable(plain, _LOOKED_AT, [("", "ascending")])
    return examples_of(column(plain.take(first)))


def texts_of(values: Column[Any]) -> Column[Any]:
    """A column of text, of numbers or of anything else as text; null where blank. Whole doubles have no exponent."""
    plain = array(values)
    if plain.type == MONEY:
        # has 9 decimals
        text = pc.replace_substring_regex(plain.cast(TEXT), r"(\.[0-9]*?)0+$", r"\1")
        plain = pc.if_else(pc.equal(plain, 0), "0", pc.replace_substring_regex(text, r"\.$", ""))
    if plain.type == _DOUBLE:
        is_whole = pc.and_(pc.equal(pc.floor(plain), plain), pc.less(pc.abs(plain), 2.0**53))
        whole = pc.if_else(is_whole, plain, None).cast(BIGINT).cast(TEXT)
        return column(pc.coalesce(whole, plain.cast(TEXT)), values.index)
    return clean_text(column(plain.cast(TEXT), values.index))


def _number_of(where: Column[Any], rows: Ints) -> int:
    """How many rows have the texts for which this holds."""
    return int(rows[where.to_numpy(np.bool_)].sum())


def has_form(texts: Column[Any], pattern: str) -> Column[Any]:
    """Whether each text as a whole has the form of a pattern; a null has none."""
    return texts.str.fullmatch(pattern).fillna(False)


def money(values: Column[Any], evidence: AmountEvidence | None = None) -> Column[Any]:
    """Numbers and texts of numbers as MONEY, null where they are none or have more than 20 digits before the point.

    Each number of JSON is read, with an exponent or many decimals too; beyond nine decimals it is rounded half up. A
    double is taken as the shortest decimal that it is read from. Texts such as `1.234`, `1.234,50` and `1,234.50` are
    null unless the column proves a decimal point or comma; `evidence` is that of the column that these values are a
    part of, None: they are all of it.
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
        if evidence.notation is None:
            texts = texts.mask(has_form(texts, _THOUSANDS_OR_DECIMALS))
        else:
            texts = _plain(texts, evidence.notation)
    return _amounts(texts)


def _plain(texts: Column[Any], notation: Notation) -> Column[Any]:
    """Numbers of a notation with a decimal point and no separator of thousands; other texts as they are."""
    numbers, _ = plain_numbers(array(texts), notation)
    return column(numbers, texts.index).fillna(texts)


def _amounts(texts: Column[Any]) -> Column[Any]:
    """The amounts of texts, see `money`, with a decimal point in each."""
    plain = array(texts.where(has_form(texts, _AMOUNT)))
    # Half of the last decimal is rounded up whatever follows the tenth.
    short = pc.replace_substring_regex(plain, r"(\.[0-9]{10})[0-9]+", r"\1")
    amounts = pc.round(short.cast(_TEN_DECIMALS), 9, "half_towards_infinity").cast(MONEY)
    is_scientific = array(has_form(texts, _SCIENTIFIC))
    if pc.any(is_scientific).as_py():
        read = [_scientific_amount(text) for text in array(texts).filter(is_scientific).to_pylist()]
        amounts = pc.replace_with_mask(amounts, is_scientific, pa.array(read, MONEY))
    return column(amounts, texts.index)


def _scientific_amount(text: str) -> Decimal | None:
    number = Decimal(text)
    if abs(number) >= _AMOUNT_LIMIT.as_py():
        return None
    return number.quantize(_BILLIONTH, ROUND_HALF_UP, _EVERY_DIGIT)
