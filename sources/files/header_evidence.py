"""What shows that a line has the names of columns, or that it is a row or a title.

In: the cells of a line, and those of the rows below it. Out: yes or no; what follows from it is decided elsewhere
(header.py, layout_checks.py).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from orderbridge.sources.files.cell_types import (
    VALUES,
    column_kinds,
    column_types,
    is_data,
    type_of,
)
from orderbridge.sources.files.records import Record

YEAR: Final = re.compile(r"(?:19|20)\d\d")
TYPED_ROWS: Final = 8
"""Later ones may be those of another table."""
_NUMBERED: Final = re.compile(
    r"(field|fld|column|col|campo|columna|coluna|colonna|colonne|champ|feld|spalte)[ _]?(\d+)",
    re.IGNORECASE,
)
_WORD_AND_DIGIT: Final = re.compile(r"[^\W\d_]+\d")


def first_types(rows: Sequence[list[str]], width: int) -> tuple[str, ...]:
    """The types of the columns in the first rows."""
    whole = [cells for cells in rows if len(cells) >= width][:TYPED_ROWS]
    return column_types(column_kinds(whole, width))


def is_like(cells: Sequence[str], types: Sequence[str]) -> bool:
    """Whether a line has data of the same types as the rows, in as many columns as it has others."""
    alike = different = 0
    for cell, kind in zip(cells, types, strict=False):
        own = type_of(cell)
        alike += own == kind and is_data(own)
        different += bool(own) and own != kind and (is_data(own) or is_data(kind))
    return alike > 0 and alike >= different


def count_above_data(names: Sequence[str], rows: Sequence[list[str]], width: int) -> int:
    """The number of columns with a text in a line and numbers, dates or codes in the rows below it."""
    pairs = zip(names, first_types(rows, width), strict=False)
    return sum(type_of(name) == "text" and is_data(kind) for name, kind in pairs)


def are_proven_names(names: Sequence[str], types: Sequence[str]) -> bool:
    """Whether a line has no dates or numbers, and no cell of the type of the data below it."""
    if any(type_of(name) in VALUES for name in names):
        return False
    pairs = zip(map(type_of, names), types, strict=False)
    data = [(own, kind) for own, kind in pairs if is_data(kind)]
    return bool(data) and all(own not in ("", kind) for own, kind in data)


def is_line_of_names(record: Record, width: int) -> bool:
    """Whether a line has another text in each column, and no date, number, year or address."""
    cells = [cell.strip() for cell in (record.cells or [])[:width]]
    are_texts = all(type_of(cell) == "text" or _WORD_AND_DIGIT.fullmatch(cell) for cell in cells)
    return len(set(cells)) == width and are_texts


def is_series(cells: Sequence[str]) -> bool:
    """Whether a line has names, then dates up to its end: columns of days, not labels with a date each."""
    own = list(map(type_of, cells))
    return own.count("date") > 1 and set(own[own.index("date") :]) == {"date"}


def has_labels(filled: Sequence[str], width: int) -> bool:
    """Whether a line above a table of this width has labels (`Date:`) with a value each, not names that end so."""
    labels = sum(cell.endswith(":") for cell in filled)
    return labels > 0 and (len(filled) < width or labels < len(filled) <= 2 * labels)


def has_row_names(filled: Sequence[Record], at: int, width: int) -> bool:
    """Whether the first line has a name for all columns but the first, whose rows have names, as R writes them."""
    first, *others = (filled[at].cells or [])[:width]
    are_names = len(others) == width - 1 and all(type_of(cell) == "text" for cell in others)
    if first or at > 0 or not are_names:
        return False
    rows = [row.cells for row in filled[1:]]
    return bool(rows) and all(cells and cells[0] for cells in rows)


def has_numbered_names(names: Sequence[str], rows: Sequence[list[str]]) -> bool:
    """Whether a line has years in a row beside names (2022, 2023), or Field1, Field2, and none of them is a cell."""
    if not _are_years(names) and not _are_numbered_fields(names):
        return False
    pairs = (pair for cells in rows for pair in zip(names, cells, strict=False))
    return not any(name.strip() and name == cell for name, cell in pairs)


def _are_years(names: Sequence[str]) -> bool:
    """Whether some names are years, one after or before the other, and the others are texts."""
    years = [int(name) for name in names if YEAR.fullmatch(name)]
    words = [name for name in names if name.strip() and not YEAR.fullmatch(name)]
    steps = {later - year for year, later in pairwise(years)}
    return steps in ({1}, {-1}) and bool(words) and all(type_of(word) == "text" for word in words)


def _are_numbered_fields(names: Sequence[str]) -> bool:
    """Whether all names are one word for a field, with numbers that follow each other."""
    matches = [_NUMBERED.fullmatch(name.strip()) for name in names]
    found = [(match[1].casefold(), int(match[2])) for match in matches if match]
    if len(found) < len(names) or len(found) < 2:
        return False
    numbers = [count for _, count in found]
    is_one_word = len({word for word, _ in found}) == 1
    return is_one_word and numbers == [*range(numbers[0], numbers[0] + len(numbers))]
