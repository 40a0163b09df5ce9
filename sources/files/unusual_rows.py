"""Which rows of whole columns `RowShape.fit` has to check, so that the others need no look at each.

In: columns of cells, and the shape of the rows. Out: a mark for each row that may be none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from orderbridge.sources.files.cell_types import form_of, is_data
from orderbridge.sources.files.row_shape import RowShape

_UNUSUAL: Final = "(?i)total|sum|gesamt|som[am]|^(--|==|__)"
"""What the first cell of totals and rules contains."""
_UNUSUAL_LATER: Final = _UNUSUAL + r"|^\W*\pL{0,8}[²³23]?(/\pL{1,3}[²³23]?)?\W*$"
"""The same where the first column is empty, or a unit."""
_DATA: Final = "[0-9@/]|^$"
"""In every cell that is no text, and in an empty one."""
_DATA_CELL: Final = r"^\s*\S*\d\S*\s*$|@|://|^\s*[+-]?[€$£]? ?\d[\d.,' \x{a0}]*\D*$|^\s*\d+[-/.]\d"
"""Every cell that is data as a whole, and some texts."""


_Marks: TypeAlias = npt.NDArray[np.bool_]


def unusual_rows(columns: Sequence[pa.ChunkedArray], shape: RowShape) -> _Marks:
    """Marks the rows that `RowShape.fit` has to check, by their cells in and outside the table.

    Marked are blank rows, rows that may be totals, a rule, a title or a header, and rows with cells outside the table.
    """
    width = len(shape.columns)
    unusual = _may_be_words(columns, shape)
    unusual |= _may_be_names_or_moved(columns, shape)
    for at in _always_filled(shape):
        unusual |= np.asarray(pc.equal(columns[at], ""))
    if width > 2 and shape.pattern.types:
        unusual |= _are_alone(columns[1:width])
    for column in columns[width:]:
        unusual |= np.asarray(pc.not_equal(column, ""))
    return unusual


def _may_be_words(columns: Sequence[pa.ChunkedArray], shape: RowShape) -> _Marks:
    """Rows whose first cell that is not empty may be one of totals, a rule, units, a title or a header."""
    words = pa.array(_own_words(shape))
    first = pc.utf8_trim_whitespace(columns[0])
    is_word = pc.is_in(columns[0], words)
    unusual = np.asarray(pc.or_(is_word, pc.match_substring_regex(first, _UNUSUAL)))
    is_blank = pc.equal(first, "")
    if pc.any(is_blank).as_py():
        others = (pc.utf8_trim_whitespace(column.filter(is_blank)) for column in columns)
        filled = (pc.if_else(pc.equal(cells, ""), None, cells) for cells in others)
        later = pc.coalesce(*filled)
        is_unusual = pc.or_(pc.match_substring_regex(later, _UNUSUAL_LATER), pc.is_in(later, words))
        unusual[np.asarray(is_blank)] = np.asarray(pc.fill_null(is_unusual, True))
    return unusual


def _own_words(shape: RowShape) -> set[str]:
    """The names of columns in any case, and the first words of titles."""
    words: set[str] = set()
    for name in shape.columns:
        words |= {name, name.upper(), name.lower(), name.title()}
    return words | {next(filter(None, title)) for title in shape.titles}


def _always_filled(shape: RowShape) -> set[int]:
    """The first and the last of the columns that no row leaves empty."""
    filled = shape.pattern.filled
    return {*filled[:1], *filled[-1:]}


def _may_be_names_or_moved(columns: Sequence[pa.ChunkedArray], shape: RowShape) -> _Marks:
    """Rows with another cell than usual in a column with data, which have names there, or data in another column."""
    usual = shape.pattern.usual
    data = _DATA if shape.header else "[0-9@]"
    with_names = _columns_of_names(shape)
    is_odd = np.zeros(len(columns[0]), np.bool_)
    for at in with_names.union(shape.pattern.marks):
        is_usual = at < len(usual) and is_data(usual[at])
        is_odd |= ~_matches(columns[at], form_of(usual[at]) if is_usual else data)
    places = np.flatnonzero(is_odd)
    if not places.size:
        return is_odd
    is_kept = np.zeros(len(places), np.bool_)
    for at in with_names:
        is_kept |= ~_matches(columns[at].take(places), data)
    for at in (at for at, kind in enumerate(usual) if kind):
        cells = columns[at].take(places)
        is_moved = _matches(cells, _DATA_CELL)
        if is_data(usual[at]):
            is_moved &= ~_matches(cells, form_of(usual[at]))
        is_kept |= is_moved
    is_odd[places] = is_kept
    return is_odd


def _columns_of_names(shape: RowShape) -> set[int]:
    """Columns with data: one in which another table has a name, and the first if it has them."""
    columns = shape.pattern.steady or shape.pattern.data_columns
    first = (0,) if shape.pattern.has_codes else ()
    return {*columns[:1], *first}


def _matches(cells: pa.ChunkedArray, pattern: str) -> _Marks:
    return np.asarray(pc.match_substring_regex(cells, pattern))


def _are_alone(others: Sequence[pa.ChunkedArray]) -> _Marks:
    """Rows whose cells but the first are empty."""
    first, *rest = others
    is_alone = pc.equal(first, "")
    for column in rest:
        if not pc.any(is_alone).as_py():
            break
        is_alone = pc.and_(is_alone, pc.equal(column, ""))
    return np.asarray(is_alone)
