"""Types of cells, which distinguish a header from rows: numbers, dates, addresses, codes, texts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

_NUMBER: Final = re.compile(r"[+-]?[€$£]? ?\d[\d.,' ]*(?:[%€$£]| [A-Z]{3})?")
_DATE: Final = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}(?:[ T]\d.*)?")
_DIGITS: Final = re.compile(r"\d+")
_LETTERS: Final = re.compile(r"[^\W\d_]+")
_CODE: Final = re.compile(r"\S*\d\S*")


def column_types(rows: Sequence[list[str]], width: int) -> list[str]:
    """The type of most cells in each column; "" if no type prevails."""
    types = []
    for column in range(width):
        kinds = Counter(kind for cells in rows if (kind := type_of(cells[column])))
        kind, count = kinds.most_common(1)[0] if kinds else ("", 0)
        types.append(kind if count > 0.6 * kinds.total() else "")
    return types


def type_of(cell: str) -> str:
    """number, date, address, text, the pattern of a code such as `a9`, or "" for an empty cell."""
    cell = cell.strip()
    if not cell:
        return ""
    if _NUMBER.fullmatch(cell):
        return "number"
    if _DATE.fullmatch(cell):
        return "date"
    if "@" in cell or "://" in cell:
        return "address"
    if _CODE.fullmatch(cell):
        return _LETTERS.sub("a", _DIGITS.sub("9", cell))
    return "text"


def is_data(kind: str) -> bool:
    """Whether a type is that of data, not of names."""
    return kind not in ("", "text")
