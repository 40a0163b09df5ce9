"""Single values of undocumented records: what each counts as, and how a column of a kind holds it.

In: parsed values (`rows.parse`). Out: a `Count`, or the value as its column has it, None where the column cannot.
"""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Context, Decimal
from enum import IntEnum, auto
from typing import Final

from orderbridge.sources.contract import INT64_MAX
from orderbridge.sources.decode.column_kinds import ColumnKind
from orderbridge.sources.decode.json_numbers import Number, canonical, exact
from orderbridge.sources.decode.table_schema import DECIMAL

NUMERIC_TEXT: Final = r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?$"
"""A text that is a number, without the zeros or signs of a code."""
WHOLE_TEXT: Final = r"^-?(0|[1-9][0-9]{0,17})$"
DECIMAL_TEXT: Final = r"^-?(0|[1-9][0-9]{0,28})(\.[0-9]+)?$"
"""Numbers in texts that a column of whole numbers, and one of decimals, holds, there rounded to its nine decimals."""
DIGITS: Final = 25
"""More than a number of 64 bits has."""
_NUMERIC: Final = re.compile(NUMERIC_TEXT.replace("$", r"\Z"))
_WHOLE_TEXT: Final = re.compile(WHOLE_TEXT.replace("$", r"\Z"))
_DECIMAL_TEXT: Final = re.compile(DECIMAL_TEXT.replace("$", r"\Z"))
_INDEX: Final = re.compile(r"0|[1-9][0-9]*")
_CONTEXT: Final = Context(prec=DECIMAL.precision + DIGITS, rounding=ROUND_HALF_UP)
_UNIT: Final = Decimal(1).scaleb(-DECIMAL.scale)
_LIMIT: Final = Decimal(10) ** (DECIMAL.precision - DECIMAL.scale)


class Count(IntEnum):
    """What is counted at a place. Numbers in texts are counted apart: they are numbers only among numbers.

    A number is `WHOLE` if it is written without a point or an exponent and has up to 64 bits, `DECIMAL` if a decimal
    column holds it, rounded to its nine decimals, and `LARGE` if it has too many digits before the point for one.
    """

    WHOLE = auto()
    DECIMAL = auto()
    LARGE = auto()
    WHOLE_TEXT = auto()
    DECIMAL_TEXT = auto()
    LARGE_TEXT = auto()
    TEXT = auto()
    EMPTY_TEXT = auto()
    TRUE = auto()
    FALSE = auto()
    OBJECT = auto()
    KEYED_OBJECT = auto()  # its names are whole numbers: a list, where others are lists
    # all its fields are null; in a batch an empty object cannot be told from it
    NULL_OBJECT = auto()
    EMPTY_OBJECT = auto()
    LIST = auto()
    LIST_OF_ONE = auto()  # an array of a single object
    EMPTY_LIST = auto()
    OBJECT_ITEM = auto()
    OTHER_ITEM = auto()


def scalar_count(value: object) -> Count:
    """What a scalar is counted as."""
    if isinstance(value, bool):
        return Count.TRUE if value else Count.FALSE
    if isinstance(value, Number):
        return _number_count(value)
    if not isinstance(value, str) or not _NUMERIC.fullmatch(value):
        return Count.TEXT if value else Count.EMPTY_TEXT
    if _WHOLE_TEXT.fullmatch(value):
        return Count.WHOLE_TEXT
    return Count.DECIMAL_TEXT if _DECIMAL_TEXT.fullmatch(value) else Count.LARGE_TEXT


def _number_count(number: Number) -> Count:
    is_short = len(number) < DIGITS and number.lstrip("-").isdigit()
    if is_short and -INT64_MAX - 1 <= int(number) <= INT64_MAX:
        return Count.WHOLE
    value = exact_decimal(number)
    return Count.LARGE if value is None or round_decimal(value) is None else Count.DECIMAL


def list_count(value: list[object]) -> Count:
    """What a list is counted as."""
    if all(item is None for item in value):
        return Count.EMPTY_LIST
    return Count.LIST_OF_ONE if len(value) == 1 and isinstance(value[0], dict) else Count.LIST


def coerced(kind: ColumnKind, value: object) -> object:
    """A scalar as a column of this kind holds it; None if it does not. Decimals may be rounded."""
    if kind == "text":
        return plain_text(value)
    if kind == "boolean":
        return value if isinstance(value, bool) else None
    number = exact_decimal(value)
    if number is None:
        return None
    if kind == "bigint":
        is_whole = number == number.to_integral_value()
        return int(number) if is_whole and -INT64_MAX - 1 <= number <= INT64_MAX else None
    return round_decimal(number)


def plain_text(value: object) -> str | None:
    """A scalar as text, a number in plain form; None if it is none."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Number):
        return canonical(value) or str(value)
    return value if isinstance(value, str) else None


def exact_decimal(number: object) -> Decimal | None:
    """The value of a number, or of a text of one; None where it is none, or its plain form is too long."""
    if not isinstance(number, str) or not (
        isinstance(number, Number) or _NUMERIC.fullmatch(number)
    ):
        return None
    return exact(Number(number))


def round_decimal(value: Decimal) -> Decimal | None:
    """A number with the decimals of a column; None if it is too large for one."""
    if abs(value) >= _LIMIT:
        return None
    rounded = value.quantize(_UNIT, context=_CONTEXT)
    return rounded if abs(rounded) < _LIMIT else None


def is_nothing(value: object, kind: ColumnKind) -> bool:
    """Whether a value that is not of its place's kind is empty: nothing is lost where it is left out."""
    if (
        value is None
        or value == {}
        or (isinstance(value, list) and list_count(value) == Count.EMPTY_LIST)
    ):
        return True
    if value == "" and not isinstance(value, Number):
        return True
    return value is False and kind in ("object", "table", "list")


def is_keyed(value: dict[str, object]) -> bool:
    """Whether all names of an object are whole numbers, as in a list that PHP writes after it removed an item."""
    return bool(value) and all(map(_INDEX.fullmatch, value))
