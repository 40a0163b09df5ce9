"""How the rows of a table look, by the first ones: which lines further down are no rows.

In: the cells of the first rows. Out: `RowPattern`, and what it says of a line: that it has amounts alone, a heading or
a label, or cells that stand in the columns of their neighbours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from orderbridge.sources.files.cell_types import (
    VALUES,
    column_kinds,
    column_types,
    compiled_form,
    is_data,
    type_of,
)

MIN_REGULAR: Final = 3
"""Of fewer rows that begin alike, no column is known to be always filled."""
REGULAR: Final = 2 / 3
"""The share of the rows that must begin alike."""
MIN_USUAL: Final = 10
"""Of fewer rows, none may have another type than the others."""
RARE: Final = 20
"""Of so many rows, one may have another type than the others."""


class RowPattern(NamedTuple):
    """What the first rows of a table have in common.

    Attributes:
        types: of the columns; "" where none prevails.
        steady: the columns with numbers, dates or codes in nine of ten rows.
        filled: the columns that no row leaves empty, of those that begin as most do.
        usual: the type of nearly all cells of each column, if none else may be empty; "" if there is no such type.
        marks: the first and the last column of which nearly all cells are data of one type.
    """

    types: tuple[str, ...] = ()
    steady: tuple[int, ...] = ()
    filled: tuple[int, ...] = ()
    usual: tuple[str, ...] = ()
    marks: tuple[int, ...] = ()

    @property
    def has_codes(self) -> bool:
        """Whether the first column has numbers, dates or codes."""
        return bool(self.types) and is_data(self.types[0])

    @property
    def data_columns(self) -> tuple[int, ...]:
        """The columns with numbers, dates or codes in most rows."""
        return tuple(at for at, kind in enumerate(self.types) if is_data(kind))

    def begins_otherwise(self, cells: Sequence[str]) -> bool:
        """Whether the first cell is empty, or a text instead of a code, as in no row."""
        if not cells[0].strip():
            return 0 in self.filled
        is_code = self.marks[:1] == (0,) and self._is_certain(0, cells[0])
        return not is_code and self.has_codes and type_of(cells[0]) == "text"

    def has_amounts_alone(self, cells: Sequence[str]) -> bool:
        """Whether a line has numbers alone, in columns of numbers or dates, after an empty cell or a word.

        After a word it also lacks cells that all rows have.
        """
        amounts = [at for at in _filled(cells) if at > 0]
        are_amounts = all(type_of(cells[at]) == "number" for at in amounts)
        if not are_amounts or any(self.types[at] not in ("number", "date") for at in amounts):
            return False
        missing = set(self.filled).difference(amounts) - {0}
        return bool(amounts) and (not cells[0].strip() or len(missing) > 1)

    def is_heading(self, cells: Sequence[str], names: Sequence[str]) -> bool:
        """Whether a line has a heading alone, or a label and its value, and lacks cells that all rows have."""
        if len(cells) < 3 or all(cells):
            return False
        places = _filled(cells)
        if any(type_of(cells[at]) not in ("text", "date") for at in places):
            return False
        missing = set(self.filled).difference(places) - {0}
        if self.begins_otherwise(cells):
            is_short = len(places) == 1 or places == [0, 1]
            return places == [0] or (is_short and bool(missing))
        is_label = ":" in cells[0] or cells[0].strip() in names
        return is_label and len(missing) > 1 and places in ([0], [0, 1])

    def is_shifted(self, cells: Sequence[str]) -> bool:
        """Whether several cells are not as nearly all rows have them, and one of them is data as another has it."""
        if all(self._is_certain(at, cells[at]) for at in self.marks):
            return False
        own = list(map(type_of, cells))
        odd = [at for at, usual in enumerate(self.usual) if usual and own[at] != usual]
        wanted = [self.usual[at] for at in odd]
        return len(odd) > 1 and any(is_data(own[at]) and own[at] in wanted for at in odd)

    def _is_certain(self, at: int, cell: str) -> bool:
        """Whether a cell has the form of a column with data, without a look at its type, which takes longer."""
        return compiled_form(self.usual[at]).match(cell) is not None


def pattern_of(rows: Sequence[list[str]], width: int) -> RowPattern:
    """The pattern of some rows, each with at least this many cells."""
    kinds = column_kinds(rows, width)
    types = column_types(kinds)
    steady = steady_columns(kinds) if len(rows) > 1 else []
    marks = [0] if is_data(types[0]) else steady
    regular = [cells for cells in rows if _is_regular(cells, marks)]
    if len(regular) < max(MIN_REGULAR, REGULAR * len(rows)):
        return RowPattern(types, tuple(steady))
    filled = [at for at in range(width) if all(cells[at].strip() for cells in regular)]
    found = column_kinds(regular, width)
    usual = [_usual_type(one, len(regular)) for one in found]
    data = [at for at, kind in enumerate(usual) if is_data(kind)]
    marks = data[:1] + data[1:][-1:]
    return RowPattern(types, tuple(steady), tuple(filled), tuple(usual), tuple(marks))


def _usual_type(found: Counter[str], count: int) -> str:
    """The type of nearly all cells of a column; "" if there is none."""
    others = max(1, count // RARE) if count >= MIN_USUAL else 0
    kind, cells = found.most_common(1)[0] if found else ("", 0)
    is_plain = kind in ("text", *VALUES) or "a" in kind  # 9-9-9 may be a date
    return kind if is_plain and cells >= count - others else ""


def _is_regular(cells: Sequence[str], marks: Sequence[int]) -> bool:
    """Whether a row has a first cell, another one, and data in one of the columns with data if there are any."""
    has_data = any(is_data(type_of(cells[at])) for at in marks)
    return bool(cells[0].strip()) and (has_data if marks else len(_filled(cells)) > 1)


def steady_columns(kinds: Sequence[Counter[str]]) -> list[int]:
    """The columns with numbers, dates or codes in nine of ten rows."""
    return [at for at, found in enumerate(kinds) if 10 * found["text"] <= found.total() > 0]


def _filled(cells: Sequence[str]) -> list[int]:
    """The places of the cells that are not empty."""
    return [at for at, cell in enumerate(cells) if cell.strip()]
