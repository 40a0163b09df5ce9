"""What cells hold: numbers, dates, addresses, codes or texts; and which of these a column has.

In: the text of cells. Out: a type for each, as evidence of what is a name and what is data. No cell is changed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Final

VALUES: Final = ("number", "date", "address")
"""Types that no code has."""
_NUMBER: Final = re.compile(r"[+-]?[€$£]? ?\d[\d.,' ]*(?:[%€$£]| [A-Z]{3})?")
_DOTTED_DATE: Final = re.compile(r"\d{1,2}\.\d{1,2}\.\d{4}")
"""It has the signs of a number."""
_DATE: Final = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}(?:[ T]\d.*)?")
_DIGITS: Final = re.compile(r"\d+")
_LETTERS: Final = re.compile(r"[^\W\d_]+")
_CODE: Final = re.compile(r"\S*\d\S*")
_REMEMBERED: Final = 4096
"""Cells whose type is not found anew: the first rows are looked at in several ways."""
_KEPT_AS_TEXT: Final = re.compile('="(.*)"')


@lru_cache(_REMEMBERED)
def type_of(cell: str) -> str:
    """number, date, address, text, the pattern of a code such as `a9`, or "" for an empty cell."""
    cell = cell.strip()
    if not cell:
        return ""
    if _NUMBER.fullmatch(cell):
        return "date" if _DOTTED_DATE.fullmatch(cell) else "number"
    if _DATE.fullmatch(cell):
        return "date"
    if "@" in cell or "://" in cell:
        return "address"
    if _CODE.fullmatch(cell):
        return _LETTERS.sub("a", _DIGITS.sub("9", cell))
    return "text"


_DIGITS_FORM: Final = r"(?:[0-9][0-9,' ]*(?:\.[0-9,' ]*)?|[0-9]{1,3}(?:\.[0-9]{3})+(?:,[0-9]*)?)"
"""With one dot, or with groups of three digits: others may be a date."""
_FORMS: Final = {
    "number": rf"^[+-]?[€$£]? ?{_DIGITS_FORM}(?:[%€$£]| [A-Z]{{3}})?$",
    "date": r"^(?:[0-9]{1,4}[-/][0-9]{1,2}[-/][0-9]{1,4}|[0-9]{1,2}\.[0-9]{1,2}\.[0-9]{4})$",
    "address": "^[^ /]+@",
}


def form_of(kind: str) -> str:
    """An expression of RE2 that only cells of this type of data match; not all of them do."""
    if kind in _FORMS:
        return _FORMS[kind]
    parts = {"a": "[A-Za-z]+", "9": "[0-9]+"}  # all letters would be slow to compile
    return "^" + "".join(parts.get(sign, re.escape(sign)) for sign in kind) + "$"


@cache
def compiled_form(kind: str) -> re.Pattern[str]:
    """`form_of` a type of data, for single cells."""
    return re.compile(form_of(kind), re.ASCII)


def is_data(kind: str) -> bool:
    """Whether a type is that of data, not of names."""
    return kind not in ("", "text")


def column_kinds(rows: Sequence[list[str]], width: int) -> list[Counter[str]]:
    """How often each type occurs in each column."""
    return [
        Counter(filter(None, (type_of(cells[column]) for cells in rows))) for column in range(width)
    ]


def column_types(kinds: Sequence[Counter[str]]) -> tuple[str, ...]:
    """The type of most cells in each column; "" if no type prevails."""
    usual = (found.most_common(1)[0] if found else ("", 1) for found in kinds)
    return tuple(
        kind if count > 0.6 * found.total() else ""
        for (kind, count), found in zip(usual, kinds, strict=True)
    )


def unmarked(cell: str) -> str:
    """A cell without the formula that keeps it a text in a spreadsheet: `="A1"` is `A1`."""
    kept = _KEPT_AS_TEXT.fullmatch(cell) if cell.startswith('="') else None
    return kept[1] if kept else cell
