"""The end of a file: notes below the table, and a last line that may be cut off.

In: the last lines of a file, and how its rows are. Out: which of them are no rows, and whether the last one is whole.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from typing import Final, Literal

from orderbridge.sources.files.cell_types import type_of
from orderbridge.sources.files.dialect import Dialect, lines_of
from orderbridge.sources.files.records import is_blank, reader

MAX_FOOTNOTES: Final = 20
_DELIMITED: Final = re.compile(r"[;\t|]|,(?![ \d])")
"""A delimiter of any kind, not a comma of prose or of a number."""
_RECORDS: Final = (
    "(?:rows?|records?|filas?|registros?|zeilen?|datens(?:ä|ae)tze?|lignes?|enregistrements?|righe|linhas?|registos?"
    "|artículos|articles|artikel|articoli|artigos|items|clientes?|kunden|clients|clienti|customers)"
)
_CLOSING: Final = (
    r"(?i:\W*(grand total|sub-?total|total|suma|sum|rows?|filas?|registros|records|end|fin|eof|fuente|source|[-=_*]{3,}"
    r"|(?:anzahl|numero|número|nombre|number|n\.?[ºo°])\W+(?:(?:de|di|of|d)\W+)?"
    + _RECORDS
    + r"|\d+ "
    + _RECORDS
    + r")\b)"
)
"""Compiled where the last line of a file has one cell: it takes 10 ms."""
MIN_ALIKE: Final = 50
"""Rows whose last cell has one form, such as two decimals, before another form is proof of a cut."""
_CODE_DIGITS: Final = 6
"""Whole numbers of so many digits, all of one length, are codes, days or phones."""
_INTEGER: Final = re.compile(r"\d+(?=[.,]\d)")
_LAST_DIGITS: Final = re.compile(r"9+(?=[.,]?$)")
_DIGIT: Final = re.compile(r"\d")
_LETTER: Final = re.compile(r"[^\W\d_]")


def footnotes(lines: Sequence[tuple[int, list[str] | None]], width: int) -> tuple[int, ...]:
    """The lines at the end that are notes: text in the first cell only, after a blank line or with a closing word.

    A note has no delimiter of any kind and is not like a code; what is otherwise shorter than a row is a broken row.
    The cells of a line are None if they are uncertain. `Total;;` is a line of totals, not a note.
    """
    filled = [(line, cells) for line, cells in lines if cells is None or not is_blank(cells, width)]
    begin = len(filled)
    while begin > 1 and _may_be_note(filled[begin - 1][1], width):
        begin -= 1
    after_blank = False
    notes: list[int] = []
    for at in range(begin, len(filled)):
        line, cells = filled[at]
        after_blank = after_blank or filled[at - 1][0] < line - 1
        is_closing = len(cells or ()) == 1 and re.match(_CLOSING, (cells or [""])[0])
        notes = [*notes, line] if after_blank or is_closing else []
    return tuple(notes)


def _may_be_note(cells: list[str] | None, width: int) -> bool:
    if cells is None or not cells[0] or any(cells[1:]) or width < (2 if len(cells) == 1 else 3):
        return False
    text = cells[0].strip()
    kind = type_of(text)
    is_text = kind == "text" or (" " in text and kind not in ("number", "date"))
    return is_text and not _DELIMITED.search(text) and text.count(",") != width - 1


def text_footnotes(tail: str, dialect: Dialect, width: int) -> tuple[int, list[int]]:
    """The number of characters at the end of a text that are no rows, and its footnotes; the last line is 1.

    The first line of `tail` may be incomplete; the width includes empty cells at the end of each line.
    """
    texts = list(lines_of(tail))[1:][-2 * MAX_FOOTNOTES :]
    lines = [(number, _cells(text, dialect)) for number, text in enumerate(texts)]
    notes = footnotes(lines, width)
    return sum(map(len, texts[notes[0] :])) if notes else 0, [len(texts) - line for line in notes]


def _cells(line: str, dialect: Dialect) -> list[str] | None:
    """The cells of a line; None if it may be within a quoted cell."""
    if dialect.quote and line.count(dialect.quote) % 2:
        return None
    try:
        return next(reader([line], dialect), [])
    except csv.Error:
        return None


def last_line_state(
    tail: str, dialect: Dialect, records: Sequence[Sequence[str]], width: int
) -> Literal["whole", "cut off", "unknown"]:
    """Whether the last line of a file is whole, if it has no line end.

    If the last cells of the other rows all have one form, as dates or amounts with two decimals, the beginning of such
    a cell is not whole. A longer cell, an empty one and whole numbers of a few digits prove nothing: they are usual.

    Args:
        tail: the end of the file.
        dialect: of the file.
        records: the cells of others, from the beginning of the file.
        width: the number of cells of a row.
    """
    *_, last = lines_of(tail)
    cells = _cells(last, dialect)
    is_quoted = bool(dialect.quote) and last.endswith(dialect.quote)
    if cells is None or len(cells) != width or is_quoted:
        return "whole"  # or rejected as no row
    same = [cells[-1] for cells in reversed(records) if len(cells) == width]
    forms = set(map(_form, same[:MIN_ALIKE]))
    if len(same) < MIN_ALIKE or len(forms) > 1:
        return "unknown"
    form = _form(cells[-1])
    usual = forms.pop()
    if form == usual:
        return "whole"
    return "cut off" if _is_beginning(form, usual) else "unknown"


def _is_beginning(form: str, whole: str) -> bool:
    """Whether a form is the beginning of another one, which is not that of short numbers.

    Of an amount that is cut before its decimals, the digits are those before a point.
    """
    is_short_number = len(whole) < _CODE_DIGITS and whole == "9" * len(whole)
    beginnings = {form, _LAST_DIGITS.sub("9", form)} - {""}
    return not is_short_number and any(map(whole.startswith, beginnings))


def _form(cell: str) -> str:
    """A cell with 9 for each digit and the whole of a number before its decimals, and a for each letter."""
    digits = _DIGIT.sub("9", _INTEGER.sub("9", cell))
    return _LETTER.sub("a", digits)
