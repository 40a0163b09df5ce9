"""Cells of a sheet as columns of text, a whole block of rows at a time.

In: rows of cells from calamine, and the number formats of the sheet. Out: `SheetColumn`s. Numbers have the 15 digits
that a spreadsheet keeps (no `.0`, no exponent if digits suffice) and the leading zeros of their format; dates are
ISO 8601.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from enum import IntEnum
from functools import lru_cache
from itertools import compress
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sources.files.number_formats import NumberFormat

Cell = int | float | str | bool | dt.time | dt.date | dt.datetime | dt.timedelta
DIGITS: Final = 15
"""The digits that a spreadsheet keeps of a number; further ones are lost."""
_TEXT: Final = pa.string()


class CellKind(IntEnum):
    """What a cell holds. The last two are numbers that the sheet shows in another form."""

    TEXT = 0
    NUMBER = 1
    LOGICAL = 2
    DATE = 3
    PERCENTAGE = 4
    OTHER_FORM = 5


_KINDS: Final[Mapping[type, CellKind]] = {
    str: CellKind.TEXT,
    int: CellKind.NUMBER,
    float: CellKind.NUMBER,
    bool: CellKind.LOGICAL,
    dt.time: CellKind.DATE,
    dt.date: CellKind.DATE,
    dt.datetime: CellKind.DATE,
    dt.timedelta: CellKind.DATE,
}
_CODES: Final = {kind: code for code, kind in enumerate(_KINDS)}
_KIND_OF_CODE: Final = np.array(list(_KINDS.values()), np.int8)


class SheetColumn(NamedTuple):
    """The cells of a column.

    Attributes:
        texts: the cells as text: a `pa.Array` of strings.
        kinds: a `CellKind` per cell.
    """

    texts: pa.Array
    kinds: npt.NDArray[np.int8]


def column_of(
    cells: Sequence[Cell], numbers: npt.NDArray[np.int32] | None = None, known_formats: Sequence[NumberFormat] = ()
) -> SheetColumn:
    """Converts the cells of a column.

    Args:
        cells: of consecutive rows.
        numbers: the number of each cell's format in `known_formats`, from 1 on; 0 for none.
        known_formats: number formats.
    """
    types = set(map(type, cells))
    if len(types) == 1:
        kind = types.pop()
        texts, kinds = _CONVERSIONS[kind](cells), np.full(len(cells), _KINDS[kind], np.int8)
    else:
        codes = np.fromiter(map(_CODES.__getitem__, map(type, cells)), np.int8, len(cells))
        texts = pa.nulls(len(cells), _TEXT)
        for kind in types:
            is_kind = codes == _CODES[kind]
            converted = _CONVERSIONS[kind](list(compress(cells, is_kind.tolist())))
            texts = pc.replace_with_mask(texts, is_kind, converted)
        kinds = _KIND_OF_CODE[codes]
    if numbers is not None:
        for number in np.unique(numbers[numbers > 0]).tolist():
            texts = _formatted(texts, kinds, numbers == number, known_formats[number - 1])
    return SheetColumn(texts, kinds)


def _numbers(cells: Sequence[Cell]) -> pa.Array:
    """`number_text` of floats: whole numbers and those with few digits by Arrow, whose shortest text is the same."""
    numbers = np.array(cells, np.float64)
    is_small = np.abs(numbers) < 10**DIGITS
    is_whole = is_small & (numbers == np.trunc(numbers))
    texts = pc.cast(pa.array(np.where(is_whole, numbers, 0).astype(np.int64)), _TEXT)
    if is_whole.all():
        return texts
    short = pc.cast(pa.array(numbers), _TEXT)
    is_short = is_small & (np.abs(numbers) >= 1e-4) & (np.asarray(pc.utf8_length(short)) <= DIGITS + 1)  # with a point
    texts = pc.if_else(is_whole, texts, short)
    others = ~(is_whole | is_short)
    return pc.replace_with_mask(texts, others, pa.array([number_text(x) for x in numbers[others].tolist()], _TEXT))


@lru_cache(1 << 16)
def number_text(cell: float) -> str:
    """A number with 15 digits; a longer one gets an exponent, which is rejected both as a code and as a number."""
    if abs(cell) < 10**DIGITS and cell == (whole := int(cell)):
        return str(whole)
    short = format(cell, f".{DIGITS}g")
    if "e+" in short:
        return format(cell, ".16E")  # different numbers keep different texts
    return format(Decimal(short), "f") if "e" in short and abs(cell) > 1e-7 else short


def _datetimes(cells: Sequence[dt.datetime]) -> pa.Array:
    texts = pc.replace_substring(pc.cast(pa.array(cells, pa.timestamp("us")), _TEXT), " ", "T")
    return pc.replace_substring_regex(texts, r"\.000000$", "")


def _duration(cell: dt.timedelta) -> str:
    minutes, seconds = divmod(cell.total_seconds(), 60)
    return f"{int(minutes // 60)}:{int(minutes % 60):02}:{format(Decimal(repr(seconds)).normalize(), 'f'):0>2}"


_CONVERSIONS: Final[Mapping[type, Callable[[Sequence[Any]], pa.Array]]] = {
    str: lambda cells: pa.array(cells, _TEXT),
    float: _numbers,
    int: lambda cells: pa.array(map(number_text, cells), _TEXT),
    bool: lambda cells: pa.array(["TRUE" if cell else "FALSE" for cell in cells], _TEXT),
    dt.date: lambda cells: pc.cast(pa.array(cells, pa.date32()), _TEXT),
    dt.datetime: _datetimes,
    dt.time: lambda cells: pa.array([cell.isoformat() for cell in cells], _TEXT),
    dt.timedelta: lambda cells: pa.array(map(_duration, cells), _TEXT),
}


def _formatted(
    texts: pa.Array, kinds: npt.NDArray[np.int8], has_format: npt.NDArray[np.bool_], number_format: NumberFormat
) -> pa.Array:
    """Applies a number format: returns the texts with leading zeros, and sets `kinds` of numbers in another form."""
    if number_format.kind == "percent":
        kinds[has_format & (kinds != CellKind.TEXT)] = CellKind.PERCENTAGE
        return texts
    is_number = has_format & (kinds == CellKind.NUMBER)
    if number_format.kind == "padded":
        is_padded = is_number & np.asarray(pc.ascii_is_decimal(texts))
        texts = pc.replace_with_mask(texts, is_padded, number_format.shown(texts.filter(pa.array(is_padded))))
        is_number &= ~is_padded
    kinds[is_number] = CellKind.OTHER_FORM
    return texts
