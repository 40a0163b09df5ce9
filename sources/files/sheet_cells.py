"""Cells of a sheet as columns of text, a whole block of rows at a time.

In: rows of cells from calamine, and the number formats of the sheet (`00000`, `"ART-"0000`, `0%`): a code typed as
00038 is stored as the number 38, and only the format shows that there were zeros. Out: `SheetColumn`s. Numbers have the
15 digits that a spreadsheet keeps (no `.0`, no exponent if digits suffice); dates are ISO 8601.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import IntEnum
from functools import cache, lru_cache
from itertools import compress, groupby
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

BUILTIN: Final[Mapping[str | None, str]] = {
    "9": "0%", "10": "0.00%", "11": "0.00E+00", "12": "# ?/?", "13": "# ??/??", "48": "##0.0E+0",
}  # fmt: skip
"""Built-in formats by id that change the digits; the others show the number, a date or a time."""
_TOKEN: Final = re.compile(
    r'"([^"]*)"|\\(.)|_.|\*.|\[\$[^\]]*\]|\[(?:[A-Za-z]+|Color ?\d+)\]|(\[[^\]]*\])|(General|.)',
    re.IGNORECASE | re.DOTALL,
)
_LITERALS: Final = "$-+/(): !^&'~{}<>="
Cell = int | float | str | bool | dt.time | dt.date | dt.datetime | dt.timedelta
DIGITS: Final = 15
"""The digits that a spreadsheet keeps of a number; further ones are lost."""
_TEXT: Final = pa.string()


@dataclass(frozen=True)
class NumberFormat:
    """What a format shows of a whole number that is not negative.

    Attributes:
        kind: `digits` shows the number itself, `padded` shows leading zeros or a fixed text, `percent` a percentage;
            `other` something else, e.g. a currency or a fraction.
        parts: of a padded format, texts and "" for each digit, from the left.
    """

    kind: Literal["digits", "padded", "percent", "other"]
    parts: tuple[str, ...] = ()

    def shown(self, digits: pa.Array) -> pa.Array:
        """Whole numbers, as texts of digits, as a padded format shows them."""
        places = left = self.parts.count("")
        digits = pc.utf8_lpad(digits, places, "0")
        shown: list[str | pa.Array] = []
        for is_text, parts in groupby(self.parts, bool):
            texts = list(parts)
            if is_text:
                shown += texts
            else:
                start = -left if left < places else 0  # surplus digits are shown at the first place
                left -= len(texts)
                shown.append(pc.utf8_slice_codeunits(digits, start, -left if left else None))
        return pc.binary_join_element_wise(*shown, "")


@cache
def number_format(code: str) -> NumberFormat:
    """What a format code means for numbers; dates and times are recognized by the reader of the cells."""
    tokens = _tokens(code)
    if tokens is None:
        return NumberFormat("other")
    kinds = [kind for kind, _ in tokens]
    if "%" in kinds or any("%" in text for kind, text in tokens if kind == "text"):
        return NumberFormat("percent")
    if _shows_digits([kind for kind, text in tokens if kind != "text" or text.strip()]):
        return NumberFormat("digits")
    if _is_padded(kinds):
        parts = ("" if kind == "0" else text for kind, text in tokens if kind != "#")
        return NumberFormat("padded", tuple(parts))
    return NumberFormat("other")


def _tokens(code: str) -> list[tuple[str, str]] | None:
    """The first section of a format code: `text`, `0` or the character itself, with its text; None for a condition."""
    tokens: list[tuple[str, str]] = []
    for match in _TOKEN.finditer(code):
        text, escaped, condition, char = match.groups()
        if condition:
            return None
        if char == ";":
            break
        is_fraction = char == "/" and "?" in code
        if text or escaped:
            tokens.append(("text", text or escaped))
        elif char and char in _LITERALS and not is_fraction:
            tokens.append(("text", char))
        elif char:
            tokens.append((char.lower(), char))
    return tokens


def _shows_digits(kinds: list[str]) -> bool:
    """Whether a format shows the digits of a number as they are, perhaps rounded or in groups."""
    if set(kinds) <= {"general", "@"}:
        return True
    whole = kinds[: kinds.index(".")] if "." in kinds else kinds
    is_number = set(kinds) <= {"0", "#", "?", ".", ","} and whole.count("0") <= 1
    return is_number and kinds[-1] != ","


def _is_padded(kinds: list[str]) -> bool:
    """Whether a format fills a number with zeros, and has texts only before, after or between them."""
    if "0" not in kinds or not set(kinds) <= {"0", "#", "text"}:
        return False
    first = kinds.index("0")
    if "#" in kinds[first:]:
        return False
    return "#" not in kinds or "text" not in kinds[kinds.index("#") : first]


class CellKind(IntEnum):
    """What a cell holds. The last two are numbers that the sheet shows in another form."""

    TEXT = 0
    NUMBER = 1
    LOGICAL = 2
    DATE = 3
    PERCENTAGE = 4
    OTHER_FORM = 5


class SheetColumn(NamedTuple):
    """The cells of a column.

    Attributes:
        texts: the cells as text: a `pa.Array` of strings.
        kinds: a `CellKind` per cell.
    """

    texts: pa.Array
    kinds: npt.NDArray[np.int8]


def column_of(
    cells: Sequence[Cell],
    numbers: npt.NDArray[np.int32] | None = None,
    known_formats: Sequence[NumberFormat] = (),
) -> SheetColumn:
    """Converts cells of a column; `numbers` of their formats in `known_formats` begin with 1, and 0 is none."""
    types = set(map(type, cells))
    if len(types) == 1:
        kind, convert = _TYPES[types.pop()]
        texts = convert(cells)
        kinds = np.full(len(cells), kind, np.int8)
    else:
        codes = np.fromiter(map(_CODES.__getitem__, map(type, cells)), np.int8, len(cells))
        texts = pa.nulls(len(cells), _TEXT)
        for one in types:
            is_one = codes == _CODES[one]
            converted = _TYPES[one][1](list(compress(cells, is_one.tolist())))
            texts = pc.replace_with_mask(texts, is_one, converted)
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
    # with a point
    is_short = (
        is_small & (np.abs(numbers) >= 1e-4) & (np.asarray(pc.utf8_length(short)) <= DIGITS + 1)
    )
    texts = pc.if_else(is_whole, texts, short)
    others = ~(is_whole | is_short)
    return pc.replace_with_mask(
        texts, others, pa.array([number_text(x) for x in numbers[others].tolist()], _TEXT)
    )


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
    minutes, rest = divmod(cell, dt.timedelta(minutes=1))
    fraction = f".{rest.microseconds:06}".rstrip("0.")
    return f"{minutes // 60}:{minutes % 60:02}:{rest.seconds:02}{fraction}"


_TYPES: Final[Mapping[type, tuple[CellKind, Callable[[Sequence[Any]], pa.Array]]]] = {
    str: (CellKind.TEXT, lambda cells: pa.array(cells, _TEXT)),
    float: (CellKind.NUMBER, _numbers),
    int: (CellKind.NUMBER, lambda cells: pa.array(map(number_text, cells), _TEXT)),
    bool: (
        CellKind.LOGICAL,
        lambda cells: pa.array(["TRUE" if cell else "FALSE" for cell in cells], _TEXT),
    ),
    dt.date: (CellKind.DATE, lambda cells: pc.cast(pa.array(cells, pa.date32()), _TEXT)),
    dt.datetime: (CellKind.DATE, _datetimes),
    dt.time: (CellKind.DATE, lambda cells: pa.array([cell.isoformat() for cell in cells], _TEXT)),
    dt.timedelta: (CellKind.DATE, lambda cells: pa.array(map(_duration, cells), _TEXT)),
}
"""What cells of a type hold, and how they become texts."""
_CODES: Final = {kind: code for code, kind in enumerate(_TYPES)}
_KIND_OF_CODE: Final = np.array([kind for kind, _ in _TYPES.values()], np.int8)


def _formatted(
    texts: pa.Array,
    kinds: npt.NDArray[np.int8],
    has_format: npt.NDArray[np.bool_],
    number_format: NumberFormat,
) -> pa.Array:
    """Applies a number format: returns the texts with leading zeros, and sets `kinds` of numbers in another form."""
    if number_format.kind == "percent":
        kinds[has_format & (kinds != CellKind.TEXT)] = CellKind.PERCENTAGE
        return texts
    is_number = has_format & (kinds == CellKind.NUMBER)
    if number_format.kind == "padded":
        is_padded = is_number & np.asarray(pc.ascii_is_decimal(texts))
        texts = pc.replace_with_mask(
            texts, is_padded, number_format.shown(texts.filter(pa.array(is_padded)))
        )
        is_number &= ~is_padded
    kinds[is_number] = CellKind.OTHER_FORM
    return texts
